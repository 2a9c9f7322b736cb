//! Discovery of the processes of a domain, exchange of shared memory between them, and detection of deaths. No call
//! passes here: only descriptions of routes, descriptors and notices.
//!
//! A domain is a directory. A serving process has a socket there, and a lock for as long as it lives; a calling process
//! watches the directory and connects to every socket. There is no broker.
//!
//! | module | what lives there |
//! |---|---|
//! | [`io_thread`] | [`IoThread`]: the one thread for each process and domain, and [`IoHandle`]: commands to it |
//! | `answers` | [`Answers`]: liveness of the serving processes |
//! | `callers` | the serving half of that thread: connected callers |
//! | `copies` | the calling half: instances found in the domain |
//! | `reactor` | the descriptors that the thread sleeps on, and the pidfds of peers |
//! | `watch` | new sockets in the directory |
//! | `copy_files` | socket and lock of a serving process, and the removal of dead ones' files |
//! | [`sides`] | [`ServingSide`] and [`CallingSide`]: callbacks of the thread |
//! | `connection` | one connection: packets with descriptors, a bounded queue |
//! | [`directory`] | [`DomainDirectory`]: its place, and its permissions |
//! | `peer` | the process at the other end of a connection |
//! | [`packets`] | the bytes on a connection |
//! | [`error`] | [`RegistryError`] |
//!
//! Modules without a link are private.
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
