//! Gapless puts messages in one total order, never loses one, and runs services on them.
//!
//! This crate is the one that an application imports: [`prelude`] covers nearly every service and client, the other
//! modules have the rest by subject. The other crates are not part of the interface.
//!
//! | module | what lives there |
//! |---|---|
//! | [`prelude`] | items that nearly every service and client needs |
//! | [`host`] | runs a service, a replicated state or aggregates: in memory, in a directory, on a cluster, on a stream of others |
//! | [`mod@service`] | services, event-sourced or state-replicated |
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
//! use gapless::Host;
//! use gapless::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Default, Serialize, Deserialize, State)]
//! struct Tickets {
//!     given: u64,
//! }
//!
//! #[derive(Serialize, Deserialize, Message)]
//! #[message(reply = u64)]
//! struct Take;
//!
//! #[gapless::service]
//! impl Tickets {
//!     #[command]
//!     fn take(&mut self, _: Take) -> u64 {
//!         self.given += 1;
//!         self.given
//!     }
//! }
//!
//! let host = Host::in_memory().service(Tickets::default()).start()?;
//! let mut client = host.polled_client(ClientOptions::default())?;
//! let session = client.open_session(random_token(), 16)?;
//! assert_eq!(client.call_request(session, &Take, Duration::from_secs(5))?, Ok(1));
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
pub mod host;
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

pub use client::{CallError, Client, blocking};
pub use gapless_engine::store_object;
/// Makes a service of the methods of a derived state, and its typed client.
///
/// ```
/// use gapless::Host;
/// use gapless::prelude::*;
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
/// let host = Host::in_memory().service(Tickets::default()).start()?;
/// let tickets = TicketsClient::new(host.client()?);
/// // A task awaits the calls instead.
/// assert_eq!((tickets.take(Take).wait()?, tickets.take(Take).wait()?), (1, 2));
/// assert_eq!(tickets.take(Take).wait(), Err(CallError::Refused(SoldOut)));
/// host.stop()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub use gapless_macros::face_service as service;
pub use host::{Host, Running};
pub use message::Message;

/// Compiles and runs the code of the project's README with the examples of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
