//! Gapless puts messages in one total order, never loses one, and runs services on them.
//!
//! This crate is the one that an application imports: [`prelude`] covers nearly every service and client, the other
//! modules have the rest by subject. The other crates are not part of the interface.
//!
//! | module | what lives there |
//! |---|---|
//! | [`prelude`] | items that nearly every service and client needs |
//! | [`mod@service`] | services, and the process that runs them |
//! | [`mod@message`] | typed messages: one derive for commands, events, requests, replies and refusals |
//! | [`mod@state`] | the state of a service in snapshots, by serde |
//! | [`store`] | the state of a state-replicated service |
//! | [`client`] | clients of a service: sessions, commands, replies |
//! | [`stream`] | event streams: a sequencer, and nodes that publish and read |
//! | `cluster` | services and streams on a replicated cluster, with the feature `cluster` |
//! | `rpc` | calls: services by name, in one process and between processes, with the feature `rpc` |
//! | `cqrs` | the command bus: commands, aggregates, and an event store that is the stream, with the feature `cqrs` |
//! | [`journal`] | reading a journal, and replaying a copy of it |
//! | [`schema`] | messages of a schema: SBE and protobuf; a build script generates them with the crate `gapless-schema` |
//! | [`threads`] | threads, cores, clocks, counters |
//!
//! ```
//! use gapless::prelude::*;
//!
//! /// Counts the bytes that it is sent.
//! #[derive(Default)]
//! struct Meter(u64);
//!
//! const MEASURE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
//!
//! impl Service for Meter {
//!     fn handlers(handlers: &mut Handlers<Self>) {
//!         handlers.on_bytes(MEASURE.schema, |meter, payload, context| {
//!             meter.0 += payload.len() as u64;
//!             context.reply_with(MEASURE, &meter.0.to_le_bytes())
//!         });
//!     }
//!     fn snapshot(&self, state: &mut Vec<u8>) {
//!         state.extend_from_slice(&self.0.to_le_bytes());
//!     }
//!     fn restore(&mut self, state: &[u8]) -> Result<(), String> {
//!         self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes are expected")?);
//!         Ok(())
//!     }
//! }
//!
//! let host = ServiceHost::start(Meter::default(), ServiceHostOptions::in_memory())?;
//! let mut client = host.connect(ClientOptions::default())?;
//! let session = client.open_session(random_token(), 16)?;
//! let reply = client.call(session, MEASURE, b"twelve bytes", Duration::from_secs(5))?;
//! assert_eq!(reply.payload, 12u64.to_le_bytes());
//! host.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | feature | adds | cost of the build |
//! |---|---|---|
//! | – | services and streams, in one process or between processes and machines | |
//! | `cluster` | replicated clusters: the module `cluster` | consensus: 22 foreign crates more |
//! | `rpc` | calls without a stream: the module `rpc` | |
//! | `cqrs` | the command bus: the module `cqrs` | 1 foreign crate more |
//! | `tls` | mutual TLS between the members of a cluster | a C compiler |

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod client;
#[cfg(feature = "cluster")]
pub mod cluster;
#[cfg(feature = "cqrs")]
pub mod cqrs;
pub mod journal;
pub mod message;
pub mod prelude;
#[cfg(feature = "rpc")]
pub mod rpc;
pub mod schema;
pub mod service;
pub mod state;
pub mod store;
pub mod stream;
pub mod threads;

pub use gapless_engine::store_object;
/// Makes a service of the methods of a derived state.
///
/// ```
/// use gapless::prelude::*;
/// use gapless::state::State;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Default, Serialize, Deserialize, State)]
/// struct Tickets {
///     given: u64,
/// }
///
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(reply = u64, refusal = SoldOut)]
/// struct Take;
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
/// struct SoldOut;
///
/// #[gapless::service]
/// impl Tickets {
///     #[command]
///     fn take(&mut self, _: Take) -> Result<u64, SoldOut> {
///         if self.given == 2 {
///             return Err(SoldOut);
///         }
///         self.given += 1;
///         Ok(self.given)
///     }
/// }
///
/// let host = ServiceHost::start(Tickets::default(), ServiceHostOptions::in_memory())?;
/// let mut client = host.connect(ClientOptions::default())?;
/// let session = client.open_session(random_token(), 16)?;
/// let mut take = || client.call_request(session, &Take, Duration::from_secs(5));
/// assert_eq!([take()?, take()?, take()?], [Ok(1), Ok(2), Err(SoldOut)]);
/// host.stop()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub use gapless_macros::face_service as service;
pub use message::Message;

/// Compiles and runs the code of the project's README with the examples of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
