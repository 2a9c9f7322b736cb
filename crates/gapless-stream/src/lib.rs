//! The sequencer: many publishers in, one total order out.
//!
//! | module | what lives there |
//! |---|---|
//! | [`sequencer`] | [`Sequencer`]: the decision on each frame; no I/O, no clock |
//! | [`stream_time`] | the time that it stamps with, over restarts and changes of leader |
//! | [`ingress`] | [`Ingress`]: the agent that moves frames from publishers' rings into the window |
//! | [`journaler`] | [`Journaler`]: the agent that moves them from the window into the journal |
//! | [`syncer`] | the helper thread that puts the journal on the device |
//! | [`acceptor`] | [`Acceptor`]: the thread that lets publishers in and notices when they are gone |
//! | [`control_desk`] | what the acceptor does with a request to halt, resume, roll over or end the stream |
//! | [`retention_watermark`] | what may go from a journal that several need |
//! | [`messages`] | what sequencer, acceptor and service pass to each other inside the process |
//! | [`member_service`] | a service on a stream of which another decides what is released |
//! | [`transactions`] | a service that runs its handlers before commands enter the stream |
//! | [`network`] | where nodes and clients of other machines are served |
//! | [`logger`] | [`Logger`](logger::Logger): a stream as readable text, or as JSON |
//! | [`config`] | [`StreamConfig`]: one file that configures a whole stream |
//!
//! A frame's walk: [`gapless_client::Client::send`] → ring → [`Ingress`] → window → [`Journaler`] → released.

#![forbid(unsafe_code)]

pub mod acceptor;
pub mod config;
pub mod control_desk;
pub mod egress;
pub mod error;
pub mod event_stream;
mod fragments;
pub mod ingress;
mod ingress_links;
pub mod journaler;
pub mod logger;
pub mod member_service;
pub mod messages;
pub mod network;
pub mod past;
pub mod persistence;
pub mod preparing;
pub mod relay;
mod relay_feeds;
mod relay_limits;
mod relay_openings;
pub mod responder;
pub mod retention_watermark;
pub mod sequencer;
pub mod sequencer_recovery;
pub mod sequencer_state;
pub mod state_keeper;
pub mod stream_time;
pub mod syncer;
pub mod taken_directory;
pub mod transactions;

pub use acceptor::Acceptor;
pub use config::StreamConfig;
pub use error::StreamError;
pub use ingress::{Ingress, IngressOptions};
pub use journaler::Journaler;
pub use messages::ForService;
pub use persistence::Persistence;
pub use sequencer::{Decision, Sequencer};
