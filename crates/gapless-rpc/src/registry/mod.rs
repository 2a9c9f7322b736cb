//! Discovery of the processes of a domain, exchange of shared memory, and detection of deaths; no call passes here. A
//! domain is a directory where a serving process has a socket, and a lock for as long as it lives; a calling process
//! watches the directory and connects to every socket.

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
