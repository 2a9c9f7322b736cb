//! What goes wrong with links: [`LinkError`] when they are made, [`SendError`] for one message, [`GoneReason`] for one
//! connection.

use super::wire::{MemberId, Refusal, RefusalCode, WireError};
use gapless_transport::sockets::TlsError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Links cannot be as they were asked for.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// An option contradicts another, or is out of range.
    #[error("the links cannot be made with these options: {rule}")]
    Option {
        /// What has to hold.
        rule: &'static str,
    },
    /// A peer cannot be one.
    #[error("member {member} cannot be a peer: {rule}")]
    Peer {
        /// The peer.
        member: MemberId,
        /// What has to hold.
        rule: &'static str,
    },
    /// An address is not one.
    #[error(
        "{address:?} of member {member} is no address; expected is a host and a port, as 10.0.0.5:9100, or shm: and an \
         absolute path of at most 107 bytes, as shm:/run/orders/member-2"
    )]
    Address {
        /// The peer.
        member: MemberId,
        /// What was given.
        address: String,
    },
    /// The port for the others cannot be opened.
    #[error("cannot listen for other members at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's word.
        source: io::Error,
    },
    /// Connections cannot be protected.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The group where members find each other cannot be used.
    #[error("cannot look for other members in {group} on interface {interface}: {source}")]
    Discovery {
        /// The group.
        group: SocketAddr,
        /// The interface's name.
        interface: String,
        /// The operating system's word.
        source: io::Error,
    },
    /// The socket for the others of this host cannot be opened.
    #[error("cannot listen for other members of this host at {}: {source}", path.display())]
    ListenShared {
        /// The socket's path.
        path: PathBuf,
        /// The operating system's word.
        source: io::Error,
    },
}

/// A message was not sent; nothing of it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The peer does not read as fast; the message was dropped, and counted.
    #[error("too much waits for the member already")]
    Full,
    /// There is no connection to the peer now.
    #[error("the member is not connected")]
    NotConnected,
    /// No peer has this number.
    #[error("the cluster has no such member")]
    UnknownMember,
    /// A part of the message is longer than the protocol allows.
    #[error("the message is longer than a link takes")]
    TooLong,
}

/// Why a peer is no longer connected.
#[derive(Debug, thiserror::Error)]
pub enum GoneReason {
    /// It has closed the connection, or its process has ended.
    #[error("it has closed the connection")]
    Closed,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(io::Error),
    /// Nothing has come for too long.
    #[error("nothing has come from it for {silence_ms} ms")]
    Silent {
        /// So long, ms.
        silence_ms: u64,
    },
    /// What it sends makes no sense.
    #[error("it sends what is no message: {0}")]
    Garbage(WireError),
    /// It does not want to talk.
    #[error("it refuses: {0}")]
    Refused(Refusal),
    /// It has connected anew.
    #[error("it has connected anew")]
    Replaced,
}

/// What is new about a peer.
#[derive(Debug)]
pub enum LinkEvent {
    /// It is connected. Whatever was sent before may or may not have arrived.
    Connected(MemberId),
    /// It is not connected any more.
    Gone(MemberId, GoneReason),
    /// It cannot be connected, because it does not want to. It is tried again, at the longest back-off.
    Refused(MemberId, Refusal),
    /// It cannot be connected, because who answers in its place is not wanted here, and was told this. It is tried again,
    /// too.
    NotWanted(MemberId, Refusal),
}

impl Refusal {
    pub(super) fn new(code: RefusalCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}
