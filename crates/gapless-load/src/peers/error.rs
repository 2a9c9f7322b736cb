//! Errors of a system under comparison.

pub type Result<T> = std::result::Result<T, PeerError>;

/// An error of a system under comparison; its message is one line.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("{program} is not on the PATH: {install}")]
    Missing { program: &'static str, install: &'static str },
    /// The system refused an action.
    #[error("cannot {action}: {source}")]
    Io {
        /// The attempted action, as a verb with its object.
        action: String,
        source: std::io::Error,
    },
    /// The broker did not start, or has ended.
    #[error("{program} {what}{}{last_words}", if last_words.is_empty() { "" } else { ": " })]
    Broker { program: &'static str, what: String, last_words: String },
    /// The other side violated its protocol.
    #[error("{protocol}: expected {expected}, found {found}")]
    Protocol { protocol: &'static str, expected: String, found: String },
    /// No answer within the allowed time.
    #[error("{protocol}: no {what} within {seconds} s")]
    Silence { protocol: &'static str, what: &'static str, seconds: u64 },
}

impl PeerError {
    pub(crate) fn io(action: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Self::Io { action: action.into(), source: source.into() }
    }

    pub(crate) fn protocol(protocol: &'static str, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Protocol { protocol, expected: expected.into(), found: found.into() }
    }
}
