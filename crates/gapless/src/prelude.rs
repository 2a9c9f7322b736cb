//! Items that nearly every service and client needs.

pub use crate::client::{
    CallError, Client, ClientError, ClientOptions, Incoming, MessageType, Outcome, OwnedReply, PolledClient,
    QueryError, Reply, SavedSession, SessionKey, blocking,
};
#[cfg(feature = "cluster")]
pub use crate::cluster::ClusterConfig;
pub use crate::host::Host;
pub use crate::message::{Message, NoRefusal, Request};
pub use crate::schema::{Decode, Direct, Encode, MessageSchema, Protobuf, Sbe};
pub use crate::service::{
    Context, EngineError, Handlers, NoticesFull, OnPanic, OnUnhandled, Persistence, Policy, QueryContext, Reject,
    Service, StateHandlers, StateService, Threads,
};
pub use crate::state::State;
pub use crate::stream::{
    AnyLink, Encoding, EventStream, EventStreamOptions, NodeEvent, NodeState, SharedMemoryLink, SharedMemoryOptions,
    Start, StreamConfig, StreamError, StreamNode, StreamNodeOptions, Tier,
};
pub use gapless_transport::token::random_token;
pub use std::time::Duration;
