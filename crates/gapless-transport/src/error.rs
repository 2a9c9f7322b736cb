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
        /// Socket path, or address.
        peer: String,
        status: Option<HandshakeStatus>,
        reason: String,
    },
    #[error("no answer from {peer} to {request} within {timeout_ms} ms")]
    TimedOut {
        /// Socket path, or address.
        peer: String,
        request: String,
        timeout_ms: u64,
    },
    /// The peer's stream does not contain the history that was seen.
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
