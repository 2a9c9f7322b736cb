//! Discovery of the processes of a domain, exchange of shared memory between them, and detection of deaths. No call
//! passes here: only descriptions of routes, descriptors and notices.
//!
//! A domain is a directory. A serving process has a socket there, and a lock for as long as it lives; a calling process
//! watches the directory and connects to every socket. There is no broker.
//!
//! | module | what lives there |
//! |---|---|
//! | [`io_thread`] | [`IoThread`]: the one thread for each process and domain, and [`IoHandle`]: commands to it |
//! | `liveness` | [`Liveness`]: liveness of the serving processes |
//! | `callers` | the serving half of that thread: connected callers |
//! | `instances` | the calling half: instances found in the domain |
//! | `reactor` | the descriptors that the thread sleeps on, and the pidfds of peers |
//! | `watch` | new sockets in the directory |
//! | `instance_files` | socket and lock of a serving process, and the removal of dead ones' files |
//! | [`callbacks`] | [`ServingSide`] and [`CallingSide`]: callbacks of the thread |
//! | `connection` | one connection: packets with descriptors, a bounded queue |
//! | [`directory`] | [`DomainDirectory`]: its place, and its permissions |
//! | `peer` | the process at the other end of a connection |
//! | [`packets`] | the bytes on a connection |
//! | [`error`] | [`RegistryError`] |
//!
//! Modules without a link are private.

pub mod callbacks;
mod callers;
mod connection;
pub mod directory;
pub mod error;
mod instance_files;
mod instances;
pub mod io_thread;
mod liveness;
pub mod packets;
mod peer;
mod reactor;
mod watch;

#[cfg(test)]
mod tests;

pub use callbacks::{
    AttachAnswer, AttachMemory, CallerNumber, CallingSide, InstanceNumber, PeerProcess, ServingSide, UnknownServer,
};
pub use callers::ATTACHMENTS_MAX;
pub use directory::{DOMAIN_VARIABLE, DomainDirectory, DomainLocation, InstanceId};
pub use error::RegistryError;
pub use io_thread::{IoHandle, IoThread};
pub use liveness::Liveness;
pub use packets::{
    Attach, AttachRefusal, AttachRefusalReason, INSTANCE_NAME_LENGTH_MAX, INSTANCES_MAX, Instance, PROTOCOL_VERSION,
    RouteDescription, RouteState, TypeDescription, packet_again,
};
