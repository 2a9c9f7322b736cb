//! The publisher's and the subscriber's side of a stream: clients of a service, and nodes of an event stream.
//!
//! | module | what lives there |
//! |---|---|
//! | [`stream_file`] | [`StreamConfig`]: a stream's file as plain data, and the node options from it |
//! | [`node`] | [`StreamNode`](node::StreamNode): reads every message of a stream, and publishes |
//! | [`shared`] | [`Client`]: commands of many tasks and threads over one connection; its blocking twin |
//! | [`polled`] | [`PolledClient`]: sessions, commands and their replies |
//! | [`control`] | halting, resuming, rolling over and ending a stream, and querying its nodes, from another process |
//! | [`replay_merge`] | [`ReplayMerge`](replay_merge::ReplayMerge): a replay of the journal from any frame that continues in the live window |
//! | `assembly` | reassembly of fragments |
//! | [`node_progress`] | progress reports of a node on the sequencer's machine |
//! | [`feed_sessions`] | [`Feeds`](feed_sessions::Feeds): the feed sessions of a stream |
//! | [`throttle`] | rate limit of a publisher |
//! | [`stream_layout`] | [`StreamLayout`](stream_layout::StreamLayout): paths in a stream's directory |
//! | `message_type` | [`MessageType`](polled::MessageType), and messages described by a schema |
//! | [`error`] | [`ClientError`], [`QueryError`] |
//! | [`control_messages`] | messages for that control: requests, answers, rows of nodes |
//! | `quiet_polls` | when empty polls check whether the other side is alive |
//! | [`session_key`] | [`SessionKey`] and [`CommandNumber`]: names of sessions and commands |

#![forbid(unsafe_code)]

mod assembly;
pub mod control;
pub mod control_messages;
pub mod error;
pub mod feed_sessions;
mod message_type;
pub mod node;
pub mod node_progress;
pub mod polled;
mod quiet_polls;
pub mod replay_merge;
pub mod session_key;
pub mod shared;
pub mod stream_file;
pub mod stream_layout;
pub mod throttle;

pub use error::{ClientError, QueryError};
pub use polled::{ClientOptions, Incoming, PolledClient, Reply};
pub use session_key::{CommandNumber, SessionKey};
pub use shared::{Call, CallError, Client, DurableClient, Kept, blocking};
pub use stream_file::StreamConfig;
