//! Connecting to a service that lets publishers in.

pub mod shared_memory;
pub mod tcp;

use crate::TransportError;
use crate::link::{RingSizes, ring_size_reason};
use crate::seen::Seen;
use gapless_log::StreamIdentity;
use gapless_wire::mtu::Mtu;
use std::time::Duration;

/// The request to the service.
#[derive(Clone, Copy, Debug)]
pub struct ConnectOptions {
    /// Sizes of the rings.
    pub link: RingSizes,
    /// The stream that must be there; zeros for any.
    pub identity: StreamIdentity,
    /// Whether the stream itself is to be read.
    pub reads: bool,
    /// The part of the stream seen so far.
    pub seen: Seen,
    /// The MTU that is stated; without one it is the stream's.
    pub mtu: Option<Mtu>,
    /// How long the other side may take to answer.
    pub timeout: Duration,
}

impl ConnectOptions {
    fn check(&self, peer: &str) -> Result<(), TransportError> {
        if self.link.is_valid() {
            return Ok(());
        }
        Err(TransportError::Handshake { peer: peer.to_owned(), status: None, reason: ring_size_reason(self.link) })
    }

    fn timed_out(&self, peer: &str) -> TransportError {
        let (peer, request) = (peer.to_owned(), "a hello".to_owned());
        TransportError::TimedOut { peer, request, timeout_ms: self.timeout.as_millis() as u64 }
    }
}

/// Why a publisher that states `stated` is not let in by a stream whose MTU is `stream`; the same by every transport.
#[must_use]
pub fn other_mtu(stream: Option<Mtu>, stated: Option<Mtu>) -> String {
    let stated = stated.map_or_else(|| "none".to_owned(), |mtu| mtu.to_string());
    match stream {
        Some(mtu) => format!("the stream's mtu is {mtu}, the node's {stated}: state the same, or none"),
        None => format!("the stream states no mtu, the node's is {stated}: state none"),
    }
}
