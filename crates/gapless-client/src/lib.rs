//! The publisher's and the subscriber's side of a stream: clients of a service, and nodes of an event stream.
//!
//! | module | what lives there |
//! |---|---|
//! | [`stream_file`] | [`StreamConfig`]: a stream's file as plain data, and how a node is run by it |
//! | [`node`] | [`StreamNode`](node::StreamNode): reads every message of a stream, and publishes |
//! | [`client`] | [`Client`]: sessions, commands and their replies |
//! | [`control`] | halting, resuming, rolling over and ending a stream, and asking for the connected nodes, from another process |
//! | [`replay_merge`] | [`ReplayMerge`](replay_merge::ReplayMerge): a replay from any frame on, from the journal, that goes over into the live window |
//! | `assembly` | fragments put together |
//! | [`node_progress`] | how a node on the sequencer's machine says how far it is |
//! | [`feed_sessions`] | [`Feeds`](feed_sessions::Feeds): which stretch of the stream belongs to which feed session |
//! | [`throttle`] | how much one publisher may send |
//! | [`stream_layout`] | [`StreamLayout`](stream_layout::StreamLayout): the paths in a stream's directory |
//! | `message_type` | [`MessageType`](client::MessageType), and messages that a schema describes |
//! | [`error`] | [`ClientError`] |
//! | [`control_messages`] | the messages of that control: requests, answers, rows of nodes |
//! | `quiet_polls` | when polls that find nothing ask whether the other side still lives |
//! | [`session_key`] | [`SessionKey`] and [`CommandNumber`]: names of sessions and commands |

#![forbid(unsafe_code)]

mod assembly;
pub mod client;
pub mod control;
pub mod control_messages;
pub mod error;
pub mod feed_sessions;
mod message_type;
pub mod node;
pub mod node_progress;
mod quiet_polls;
pub mod replay_merge;
pub mod session_key;
pub mod stream_file;
pub mod stream_layout;
pub mod throttle;

pub use client::{Client, ClientOptions, Incoming, Reply};
pub use error::ClientError;
pub use session_key::{CommandNumber, SessionKey};
pub use stream_file::StreamConfig;
