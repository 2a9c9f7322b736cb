//! The errors of a system beside which calls are measured.

/// The result of anything here that can fail.
pub type Result<T> = std::result::Result<T, PeerError>;

/// An error of this crate; its message is one line.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The broker is not installed.
    #[error("{program} is not on the PATH: {install}")]
    Missing {
        program: &'static str,
        /// How to install it.
        install: &'static str,
    },
    /// The system refused something.
    #[error("cannot {action}: {source}")]
    Io {
        /// The attempted action, as a verb with its object.
        action: String,
        source: std::io::Error,
    },
    /// The broker did not come up, or has ended.
    #[error("{program} {what}{}{last_words}", if last_words.is_empty() { "" } else { ": " })]
    Broker {
        program: &'static str,
        what: String,
        /// The end of its log.
        last_words: String,
    },
    /// The other side said something else than its protocol allows here.
    #[error("{protocol}: expected {expected}, found {found}")]
    Protocol { protocol: &'static str, expected: String, found: String },
    /// Nothing came within the time that an answer may take.
    #[error("{protocol}: no {what} within {seconds} s")]
    Silence { protocol: &'static str, what: &'static str, seconds: u64 },
}

impl PeerError {
    /// An error of the system with what was attempted.
    pub(crate) fn io(action: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Self::Io { action: action.into(), source: source.into() }
    }

    /// What was found in the place of what the protocol asks for.
    pub(crate) fn protocol(protocol: &'static str, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Protocol { protocol, expected: expected.into(), found: found.into() }
    }
}
