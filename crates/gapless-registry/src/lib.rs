//! How the processes of a domain find each other, hand each other memory, and learn of each other's death. No call passes
//! here: only descriptions of routes, descriptors and notices.
//!
//! A domain is a directory. A process that serves has a socket there, and a lock for as long as it lives; a process that
//! calls watches the directory and connects to every socket. There is no process in the middle.
//!
//! | module | what lives there |
//! |---|---|
//! | [`io_thread`] | [`IoThread`]: the one thread for each process and domain, and [`IoHandle`]: commands to it |
//! | `answers` | [`Answers`]: who answers now, and who does not |
//! | `callers` | the serving half of that thread: who is connected here, and what it is told |
//! | `copies` | the calling half: which copies there are, and what they have told |
//! | `reactor` | what the thread sleeps on, and the pidfds of peers |
//! | `watch` | new sockets in the directory |
//! | `copy_files` | socket and lock of a serving process, and the removal of what the dead have left |
//! | [`sides`] | [`ServingSide`] and [`CallingSide`]: whom the thread calls |
//! | `connection` | one connection: packets with descriptors, a bounded queue |
//! | [`directory`] | [`DomainDirectory`]: where it is, and who may come in |
//! | `peer` | the process at the other end of a connection |
//! | [`packets`] | the bytes on a connection |
//! | [`error`] | [`RegistryError`] |
//!
//! Those without a link are inside of the crate.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod answers;
mod callers;
mod connection;
mod copies;
mod copy_files;
pub mod directory;
pub mod error;
pub mod io_thread;
pub mod packets;
mod peer;
mod reactor;
pub mod sides;
mod watch;

#[cfg(test)]
mod tests;

pub use answers::Answers;
pub use callers::ATTACHMENTS_MAX;
pub use directory::{CopyId, DOMAIN_VARIABLE, DomainDirectory, Place};
pub use error::RegistryError;
pub use io_thread::{IoHandle, IoThread};
pub use packets::{
    Attach, INSTANCE_NAME_LENGTH_MAX, INSTANCES_MAX, Instance, PROTOCOL_VERSION, Refused, RefusedReason,
    RouteDescription, RouteState, TypeDescription, packet_again,
};
pub use sides::{AttachAnswer, AttachMemory, CallerNumber, CallingSide, CopyNumber, PeerProcess, ServingSide, Unheard};
