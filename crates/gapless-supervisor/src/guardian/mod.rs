//! The guardian: parent and subreaper of all instances, without configuration or decisions, so it has few ways to fail.
//! It keeps exit statuses until acknowledged and starts a supervisor whenever none runs. It finishes one supervisor's
//! requests before it serves the next, so that a list of children is complete.

mod children;
mod client;
mod conversation;
mod detached;
mod keeper;
pub mod protocol;
mod service;
mod signals;

pub use client::GuardianClient;
pub use detached::{find_orphaned, start_detached, start_if_missing};
pub use service::run;
