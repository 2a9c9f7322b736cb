//! The guardian: the parent of all copies, and of whatever they leave behind. It has no configuration, decides nothing, and
//! so has little to die of.
//!
//! It forks what the supervisor asks for, keeps how each child ended until the supervisor has taken note, and starts a
//! supervisor whenever there is none. It serves one supervisor at a time: what one has asked for is done before the next is
//! heard, so that a list tells all.
//!
//! | module | what lives there |
//! |---|---|
//! | `client` | [`Client`]: the supervisor's end |
//! | `detached` | starting a guardian that is nobody's child |
//! | `service` | the role itself: its loop |
//! | `conversation` | one supervisor's connection, as the guardian sees it |
//! | `keeper` | that there is always a supervisor |
//! | `children` | the table of children |
//! | `signals` | the signals that it hears of |
//! | [`protocol`] | what is said on it |

mod children;
mod client;
mod conversation;
mod detached;
mod keeper;
pub mod protocol;
mod service;
mod signals;

pub use client::Client;
pub use detached::{find_lost, start_detached, start_if_missing};
pub use service::run;
