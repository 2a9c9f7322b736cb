//! The guardian: parent and subreaper of all instances. It has no configuration and makes no decisions, so it has few
//! ways to fail.
//!
//! It forks launchers on request, keeps the exit status of each child until it is acknowledged, and starts a supervisor
//! whenever none runs. It serves one supervisor at a time and finishes its requests before the next, so that a list of
//! children is complete.
//!
//! | module | what lives there |
//! |---|---|
//! | `client` | [`GuardianClient`]: the supervisor's side |
//! | `detached` | starts a guardian as a daemon |
//! | `service` | main loop |
//! | `conversation` | connection of a supervisor |
//! | `keeper` | keeps a supervisor running |
//! | `children` | table of children |
//! | `signals` | signals of the guardian |
//! | [`protocol`] | requests and messages |

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
