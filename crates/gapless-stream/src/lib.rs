//! The sequencer: many publishers in, one total order out.
//!
//! | module | what lives there |
//! |---|---|
//! | [`tier`] | [`Tier`]: how durable a released frame is |
//! | [`sequencer`] | [`Sequencer`]: the decision on each frame; no I/O, no clock |
//! | [`ingress`] | [`Ingress`]: the agent that moves frames from publishers' rings into the window |
//! | [`journaler`] | [`Journaler`]: the agent that moves them from the window into the journal |
//! | [`syncer`] | the helper thread that puts the journal on the device |
//! | [`handshake`] | what publisher and doorman say to each other before the rings |
//! | [`doorman`] | [`Doorman`]: the thread that lets publishers in and notices when they are gone |
//! | [`link`] | what sequencer, doorman and service pass to each other inside the process |
//! | [`mailbox`] | [`mailbox::Mailbox`]: how they pass it |
//! | [`client`] | [`Client`]: the publisher's side |
//!
//! A frame's walk: [`Client::send`] → ring → [`Ingress`] → window → [`Journaler`] → released.

#![forbid(unsafe_code)]

pub mod client;
pub mod doorman;
pub mod error;
pub mod handshake;
pub mod ingress;
pub mod journaler;
pub mod link;
pub mod mailbox;
pub mod sequencer;
pub mod syncer;
pub mod tier;

pub use client::{Client, ClientOptions, Incoming, Reply, SessionKey};
pub use doorman::Doorman;
pub use error::StreamError;
pub use ingress::{Ingress, IngressOptions};
pub use journaler::Journaler;
pub use link::{ConnectionId, ForService, LinkOptions};
pub use sequencer::{Decision, Sequencer};
pub use tier::Tier;
