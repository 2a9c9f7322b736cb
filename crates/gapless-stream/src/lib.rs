//! The sequencer: many publishers in, one total order out.
//!
//! | module | what lives there |
//! |---|---|
//! | [`tier`] | [`Tier`]: how durable a released frame is |
//! | [`sequencer`] | [`Sequencer`]: the decision on each frame; no I/O, no clock |
//! | [`stream_time`] | the time that it stamps with, over restarts and changes of leader |
//! | [`ingress`] | [`Ingress`]: the agent that moves frames from publishers' rings into the window |
//! | [`journaler`] | [`Journaler`]: the agent that moves them from the window into the journal |
//! | [`syncer`] | the helper thread that puts the journal on the device |
//! | [`handshake`] | what publisher and doorman say to each other before the rings |
//! | [`doorman`] | [`Doorman`]: the thread that lets publishers in and notices when they are gone |
//! | [`control`] | halting, resuming, rolling over and ending a stream from another process |
//! | [`coverage`] | what may go from a journal that several need |
//! | [`ring_notes`] | what a node on the sequencer's machine says of itself |
//! | [`link`] | what sequencer, doorman and service pass to each other inside the process |
//! | [`mailbox`] | [`mailbox::Mailbox`]: how they pass it |
//! | [`member_service`] | a service on a stream of which another decides what is released |
//! | [`transactions`] | a service that runs its handlers before commands enter the stream |
//! | [`network`] | [`network::Datagrams`]: packets to and from other machines, by UDP or by a network in memory |
//! | [`client`] | [`Client`]: the publisher's side |
//! | [`config`] | [`StreamConfig`]: one file that configures a whole stream |
//! | [`logger`] | [`Logger`](logger::Logger): a stream as readable text, or as JSON |
//!
//! A frame's walk: [`Client::send`] → ring → [`Ingress`] → window → [`Journaler`] → released.

#![forbid(unsafe_code)]

mod addresses;
pub mod answer_desk;
pub mod client;
pub mod config;
mod connecting;
pub mod control;
pub mod coverage;
pub mod credentials;
pub mod doorman;
pub mod error;
pub mod event_stream;
pub mod feeds;
mod fragments;
pub mod handshake;
pub mod ingress;
mod ingress_links;
pub mod journaler;
pub mod late_reader;
pub mod link;
pub mod logger;
pub mod mailbox;
pub mod member_service;
pub mod messages;
pub mod network;
pub mod node;
pub mod outlets;
pub mod past;
pub mod persistence;
pub mod preparing;
pub mod publisher_link;
mod pump;
pub mod relay;
mod relay_feeds;
mod relay_limits;
mod relay_openings;
pub mod ring_notes;
pub mod seen;
pub mod sequencer;
pub mod sequencer_recovery;
pub mod sequencer_state;
pub mod state_keeper;
pub mod stream_layout;
pub mod stream_time;
pub mod syncer;
pub mod throttle;
pub mod tier;
pub mod token;
pub mod transactions;
pub mod transport;
pub mod warnings;

pub use client::{Client, ClientOptions, Incoming, Reply, SessionKey};
pub use config::StreamConfig;
pub use doorman::Doorman;
pub use error::StreamError;
pub use ingress::{Ingress, IngressOptions};
pub use journaler::Journaler;
pub use link::{ConnectionId, LinkOptions};
pub use messages::ForService;
pub use persistence::Persistence;
pub use sequencer::{Decision, Sequencer};
pub use tier::Tier;
