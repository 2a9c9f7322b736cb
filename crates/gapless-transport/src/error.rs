//! Errors of connecting two processes, and of the connection.

use crate::handshake::HandshakeStatus;
use crate::seen_frame::SeenFrame;
use gapless_log::LogError;

#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// Shared memory cannot be made, opened or used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The operating system refused. Check that the peer runs, the address and the permissions.
    #[error("{action}: {source}")]
    System { action: String, source: std::io::Error },
    /// The other side refused the connection, or speaks another protocol. Nothing was sent.
    #[error("handshake with {peer}: {reason}")]
    Handshake {
        /// Socket path, or address.
        peer: String,
        status: Option<HandshakeStatus>,
        reason: String,
    },
    /// The peer is stopped, slow or unreachable. Check that it runs, and retry.
    #[error("no answer from {peer} to {request} within {timeout_ms} ms")]
    TimedOut {
        /// Socket path, or address.
        peer: String,
        request: String,
        timeout_ms: u64,
    },
    /// The peer's stream lacks frames that this process has seen: it was restored from an older copy, or has lost
    /// frames.
    #[error("{}", seen.missing_reason(peer, *released_sequence))]
    OtherHistory {
        /// Service, sequencer or relay.
        peer: String,
        seen: SeenFrame,
        /// 0 if unknown.
        released_sequence: u64,
    },
}

impl TransportError {
    pub fn system(action: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Self {
        let action = action.into();
        move |errno| Self::System { action, source: errno.into() }
    }
}
