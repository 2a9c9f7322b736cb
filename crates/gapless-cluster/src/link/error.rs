//! Errors of links: `LinkError` when links are made, `SendError` for one message, `DisconnectReason` for one
//! connection.

use super::wire::{LinkRefusal, LinkRefusalCode, MemberNumber, WireError};
use gapless_transport::sockets::TlsError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Links cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// An option contradicts another one, or is out of range. Correct it.
    #[error("the options of the links are invalid: {rule}")]
    Option { rule: &'static str },
    /// Correct the entry of the member in the cluster file.
    #[error("member {member} cannot be a peer: {rule}")]
    Peer { member: MemberNumber, rule: &'static str },
    #[error(
        "{address:?} of member {member} is not an address; expected a host and a port, such as 10.0.0.5:9100, or shm: \
         and an absolute path of at most 107 bytes, such as shm:/run/orders/member-2"
    )]
    Address { member: MemberNumber, address: String },
    /// The port is in use, or the address is not one of this machine. Stop the other program, or correct the address.
    #[error("cannot listen for other members at {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    /// A certificate or key cannot be used. Correct the TLS settings.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The multicast group cannot be used. Check the group and the interface, or list the addresses of all members.
    #[error("cannot discover other members in {group} on interface {interface}: {source}")]
    Discovery { group: SocketAddr, interface: String, source: io::Error },
    /// The socket cannot be made. Check that the directory exists and is writable.
    #[error("cannot listen for other members of this host at {}: {source}", path.display())]
    ListenShared { path: PathBuf, source: io::Error },
}

/// No part of the message was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The peer does not read fast enough; the message was dropped, and counted.
    #[error("too much waits for the member already")]
    Full,
    #[error("the member is not connected")]
    NotConnected,
    #[error("the cluster has no such member")]
    UnknownMember,
    /// A part of the message is longer than the protocol allows.
    #[error("the message is longer than a link takes")]
    TooLong,
}

/// End of a connection to a peer.
#[derive(Debug, thiserror::Error)]
pub enum DisconnectReason {
    #[error("it has closed the connection")]
    Closed,
    #[error("the connection broke: {0}")]
    Broken(io::Error),
    #[error("nothing has come from it for {silence_ms} ms")]
    Silent { silence_ms: u64 },
    #[error("it sends what is no message: {0}")]
    Garbage(WireError),
    #[error("it refuses: {0}")]
    Refused(LinkRefusal),
    #[error("it has connected anew")]
    Replaced,
}

/// A change of a peer's connection.
#[derive(Debug)]
pub enum LinkEvent {
    /// Messages over an earlier connection may or may not have arrived.
    Connected(MemberNumber),
    Disconnected(MemberNumber, DisconnectReason),
    /// The peer refuses; retried at the longest backoff.
    Refused(MemberNumber, LinkRefusal),
    /// This side refuses the member at the peer's address, has told it, and retries; or the peer has dialled with
    /// another directory than before.
    NotWanted(MemberNumber, LinkRefusal),
}

impl LinkRefusal {
    pub(super) fn new(code: LinkRefusalCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}
