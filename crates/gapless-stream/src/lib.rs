//! The sequencer: many publishers in, one total order out.
//!
//! | module | what lives there |
//! |---|---|
//! | [`member_service`] | a service on a cluster member's stream, where the cluster decides on releases |
//! | [`logger`] | [`Logger`](logger::Logger): a stream as readable text, or as JSON |
//! | [`event_stream`] | [`EventStream`](event_stream::EventStream): the sequencer and everything that serves it, assembled and running |
//! | [`ingress`] | [`Ingress`]: the agent that moves frames from publishers' rings into the window |
//! | [`stream_time`] | the stream's time, monotonic across restarts and changes of leader |
//! | [`manual_time`] | a stream time moved by its owner, for tests |
//! | [`journaler`] | [`Journaler`]: the agent that copies frames from the window into the journal |
//! | [`syncer`] | the helper thread that syncs the journal to the device |
//! | [`transactions`] | speculative execution: a service that runs its handlers before commands enter the stream |
//! | [`preparer_thread`] | the thread that prepares segments before the journal's writer needs them |
//! | [`relay`] | the agent that takes the sequencer's place in a relayed stream |
//! | `fragments` | unfinished messages |
//! | `deferred` | sessions whose next command the service cannot run yet |
//! | [`handled_commands`] | [`HandledCommands`](handled_commands::HandledCommands): the typed commands of a service |
//! | `ingress_links` | the connections of an [`Ingress`] |
//! | [`options`] | [`EventStreamOptions`](options::EventStreamOptions): configuration of an event stream |
//! | [`network`] | serving nodes and clients of other machines |
//! | [`acceptor`] | [`Acceptor`]: the thread that admits publishers |
//! | [`control_server`] | the acceptor's handling of requests to halt, resume, roll over or end the stream |
//! | [`node_status`] | nodes connected over networks, and their state |
//! | [`history_check`] | comparison of a stream with the history that a peer has seen |
//! | [`persistence`] | [`Persistence`]: storage of the journal, and opening it |
//! | [`responder`] | the agent that sends publishers the outcome of frames that are not simply appended |
//! | [`egress`] | [`Egress`](egress::Egress): writes answers into publishers' rings |
//! | [`messages`] | messages between sequencer, acceptor and service inside the process |
//! | [`sequencer_recovery`] | rebuilding a sequencer's state at a sequence |
//! | [`sequencer_state_writer`] | the thread that writes a sequencer's state to files |
//! | [`retention_watermark`] | the part of a journal that all its users allow to delete |
//! | [`sequencer_state`] | the file with a sequencer's state |
//! | [`sequencer`] | [`Sequencer`]: the decision on each frame; no I/O, no clock |
//! | [`locked_directory`] | a stream's directory, locked against other processes |
//! | [`directory_record`] | kind, format and last writer of a directory |
//! | [`agent_role`] | [`AgentRole`]: the agents that a stream's process may have |
//! | `counters` | the counters of agents, as structs with their labels |
//! | [`error`] | [`StreamError`] |
//!
//! The path of a frame: [`gapless_client::PolledClient::send`] → ring → [`Ingress`] → window → [`Journaler`] → released.

#![forbid(unsafe_code)]

pub mod acceptor;
pub mod agent_role;
pub mod control_server;
mod counters;
mod deferred;
pub mod directory_record;
pub mod egress;
pub mod error;
pub mod event_stream;
mod fragments;
pub mod handled_commands;
pub mod history_check;
pub mod ingress;
mod ingress_links;
pub mod journaler;
pub mod locked_directory;
pub mod logger;
pub mod manual_time;
pub mod member_service;
pub mod messages;
pub mod network;
pub mod node_status;
pub mod options;
pub mod persistence;
pub mod preparer_thread;
pub mod relay;
pub mod responder;
pub mod retention_watermark;
pub mod sequencer;
pub mod sequencer_recovery;
pub mod sequencer_state;
pub mod sequencer_state_writer;
pub mod stream_time;
pub mod syncer;
pub mod transactions;

pub use acceptor::Acceptor;
pub use agent_role::AgentRole;
pub use error::StreamError;
pub use ingress::{Ingress, IngressOptions};
pub use journaler::Journaler;
pub use messages::ResponderMessage;
pub use persistence::Persistence;
pub use sequencer::{Decision, Sequencer};
