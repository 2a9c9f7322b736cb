//! Connecting to a service that admits publishers.

pub mod shared_memory;
pub mod tcp;

use crate::TransportError;
use crate::link::{RingSizes, ring_size_reason};
use crate::seen_frame::SeenFrame;
use gapless_log::StreamIdentity;
use gapless_wire::mtu::Mtu;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct ConnectOptions {
    pub link: RingSizes,
    /// Required stream; zeros for any.
    pub identity: StreamIdentity,
    pub reads: bool,
    pub seen: SeenFrame,
    /// `None` takes the stream's.
    pub mtu: Option<Mtu>,
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

/// Refusal of a publisher that states `stated`; the same text for every transport.
#[must_use]
pub fn other_mtu(stream: Option<Mtu>, stated: Option<Mtu>) -> String {
    let stated = stated.map_or_else(|| "none".to_owned(), |mtu| mtu.to_string());
    match stream {
        Some(mtu) => format!("the stream's mtu is {mtu}, the node's {stated}: state the same, or none"),
        None => format!("the stream states no mtu, the node's is {stated}: state none"),
    }
}
