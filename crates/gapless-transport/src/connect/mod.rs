//! Connecting to a service that lets publishers in.

pub mod shared_memory;
pub mod tcp;

use crate::TransportError;
use crate::link::{RingSizes, ring_size_reason};
use crate::seen::Seen;
use gapless_log::StreamIdentity;
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
