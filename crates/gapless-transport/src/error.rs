//! The errors before frames move between two processes, and on their way.

use crate::handshake::Status;
use crate::seen::Seen;
use gapless_log::LogError;

/// The errors before frames move between two processes, and on their way.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{action}: {source}")]
    System {
        /// The attempted action, with the path where there is one.
        action: String,
        source: std::io::Error,
    },
    /// The other side refused the connection, or is something else.
    #[error("handshake with {peer}: {reason}")]
    Handshake {
        /// The socket's path, or the address.
        peer: String,
        /// The status of its answer, if it refused.
        status: Option<Status>,
        reason: String,
    },
    #[error("no answer from {peer} to {request} within {timeout_ms} ms")]
    TimedOut {
        /// The socket's path, or the address.
        peer: String,
        request: String,
        timeout_ms: u64,
    },
    /// The stream there does not contain what was seen of it.
    #[error("{}", seen.is_missing_at(peer, *released_sequence))]
    OtherHistory {
        /// The service, the sequencer or the relay.
        peer: String,
        seen: Seen,
        /// How far its stream is; 0 if that is not known.
        released_sequence: u64,
    },
}

impl TransportError {
    /// The operating system's answer to `action`.
    pub fn system(action: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Self {
        let action = action.into();
        move |errno| Self::System { action, source: errno.into() }
    }
}
