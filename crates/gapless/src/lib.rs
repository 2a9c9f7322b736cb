//! Gapless puts messages in one total order, never loses one, and runs services on them.
//!
//! This crate is what an application imports. [`prelude`] brings in what nearly every service needs;
//! the modules below it are the house behind the face.
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
//! | feature | what it adds | what it costs to build |
//! |---|---|---|
//! | – | services and streams, in one process or between processes and machines | |
//! | `cluster` | replicated clusters: [`prelude`]`::Replica`, and the crate `cluster` | consensus: 28 foreign crates more |
//! | `tls` | mutual TLS between the members of a cluster | a C compiler |
//! | `fault-injection` | named crash points, for tests | |

#![forbid(unsafe_code)]

#[cfg(feature = "cluster")]
pub use gapless_cluster as cluster;
pub use {
    gapless_agent as agent, gapless_client as client, gapless_engine as engine, gapless_journal as journal,
    gapless_log as log, gapless_schema as schema, gapless_stream as stream, gapless_transport as transport,
    gapless_wire as wire,
};

/// What nearly every service and client needs.
pub mod prelude {
    pub use gapless_client::client::{MessageType, Outcome, OwnedReply, SavedSession};
    pub use gapless_client::node::{AnyLink, NodeEvent, NodeState, Start, StreamNode};
    pub use gapless_client::session_key::CommandNumber;
    pub use gapless_client::{Client, ClientError, ClientOptions, Incoming, Reply, SessionKey};
    pub use gapless_engine::{
        Context, EngineError, Handlers, OnPanic, OnUnhandled, Persistence, Policy, Reject, Service, ServiceHost,
        ServiceHostOptions, StateHandlers, StateService, StreamService, StreamServiceOptions, Threads,
    };
    pub use gapless_schema::{Direct, Encode, Message, Protobuf, Sbe};
    pub use gapless_stream::event_stream::EventStream;
    pub use gapless_stream::options::EventStreamOptions;
    pub use gapless_stream::{StreamConfig, StreamError};
    pub use gapless_transport::Tier;
    pub use gapless_transport::token::random_token;
    pub use gapless_wire::Encoding;
    pub use std::time::Duration;
    #[cfg(feature = "cluster")]
    pub use {
        gapless_cluster::config::ClusterConfig,
        gapless_engine::{Replica, ReplicaOptions, StateOptions},
    };
}
