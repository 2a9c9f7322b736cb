//! Errors of connecting two processes, and of the connection.

use crate::handshake::HandshakeStatus;
use crate::seen_frame::SeenFrame;
use gapless_log::LogError;

#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{action}: {source}")]
    System { action: String, source: std::io::Error },
    /// The other side refused the connection, or speaks another protocol.
    #[error("handshake with {peer}: {reason}")]
    Handshake {
        /// Path of the socket, or the address.
        peer: String,
        status: Option<HandshakeStatus>,
        reason: String,
    },
    #[error("no answer from {peer} to {request} within {timeout_ms} ms")]
    TimedOut {
        /// Path of the socket, or the address.
        peer: String,
        request: String,
        timeout_ms: u64,
    },
    /// The peer's stream does not contain the history that was seen.
    #[error("{}", seen.missing_reason(peer, *released_sequence))]
    OtherHistory {
        /// The service, the sequencer or the relay.
        peer: String,
        seen: SeenFrame,
        /// Last released sequence of the peer's stream; 0 if that is not known.
        released_sequence: u64,
    },
}

impl TransportError {
    pub fn system(action: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Self {
        let action = action.into();
        move |errno| Self::System { action, source: errno.into() }
    }
}
