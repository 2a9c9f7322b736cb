//! The sequencer: many publishers in, one total order out.
//!
//! | module | what lives there |
//! |---|---|
//! | [`member_service`] | a service on a stream of which another decides what is released |
//! | [`logger`] | [`Logger`](logger::Logger): a stream as readable text, or as JSON |
//! | [`event_stream`] | [`EventStream`](event_stream::EventStream): the sequencer and everything that serves it, put together and run |
//! | [`ingress`] | [`Ingress`]: the agent that moves frames from publishers' rings into the window |
//! | [`stream_time`] | the time that it stamps with, over restarts and changes of leader |
//! | [`manual_time`] | the time of a stream that its owner moves, for tests |
//! | [`journaler`] | [`Journaler`]: the agent that moves them from the window into the journal |
//! | [`syncer`] | the helper thread that puts the journal on the device |
//! | [`transactions`] | speculative execution: a service that runs its handlers before commands enter the stream |
//! | [`preparer_thread`] | the thread that prepares segments before the journal's writer needs them |
//! | [`relay`] | the agent that stands where the sequencer would, where a stream is passed on |
//! | `fragments` | messages of which not every part is there yet |
//! | `deferred` | sessions whose next command its service cannot run yet |
//! | `ingress_links` | the connections of an [`Ingress`] |
//! | [`options`] | [`EventStreamOptions`](options::EventStreamOptions): how an event stream is run |
//! | [`network`] | where nodes and clients of other machines are served |
//! | [`acceptor`] | [`Acceptor`]: the thread that decides which publishers are let in |
//! | [`control_server`] | the acceptor's handling of a request to halt, resume, roll over or end the stream |
//! | [`node_status`] | nodes that are connected over networks, and their state |
//! | [`history_check`] | whether a stream contains what a peer has seen of it |
//! | [`persistence`] | [`Persistence`]: how the journal is kept, and opening it |
//! | [`responder`] | the agent that sends to publishers the fate of frames that are not simply appended |
//! | [`egress`] | [`Egress`](egress::Egress): answers on their way into publishers' rings |
//! | [`messages`] | the messages between sequencer, acceptor and service inside the process |
//! | [`sequencer_recovery`] | rebuilds a sequencer as its stream stood at a sequence |
//! | [`sequencer_state_writer`] | the thread that writes a sequencer's state into files |
//! | [`retention_watermark`] | the part that may go from a journal that several need |
//! | [`sequencer_state`] | the file with a sequencer's state |
//! | [`sequencer`] | [`Sequencer`]: the decision on each frame; no I/O, no clock |
//! | [`locked_directory`] | a stream's directory, locked against other processes |
//! | [`directory_record`] | what a directory is of, in which format, and who has written it |
//! | [`agent_role`] | [`AgentRole`]: the agents that a stream's process may have |
//! | `counters` | the counters of agents, as structs beside their labels |
//! | [`error`] | [`StreamError`] |
//!
//! A frame's walk: [`gapless_client::Client::send`] → ring → [`Ingress`] → window → [`Journaler`] → released.

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
