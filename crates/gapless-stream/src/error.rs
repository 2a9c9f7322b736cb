//! The errors of a stream.

use gapless_client::ClientError;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_transport::TransportError;

/// The errors of a stream.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// An error of its publishers and readers, or of a relay, which is both.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Where processes and machines meet.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// A window or ring failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The journal failed; the stream takes no more input.
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{action}: {source}")]
    System {
        /// The attempted action, with the path where there is one.
        action: String,
        source: std::io::Error,
    },
    /// An option that makes no sense.
    #[error("{option}: {reason}")]
    Option {
        option: &'static str,
        /// The fault, and the allowed values.
        reason: String,
    },
    /// The sequencer's state in its file cannot be used.
    #[error("{}: {reason}", path.display())]
    State {
        /// The file or its directory.
        path: std::path::PathBuf,
        reason: String,
    },
    /// An agent has failed and stopped the process's stream.
    #[error(transparent)]
    Stopped(#[from] gapless_agent::AgentFailure),
    /// The threads or counters could not be made.
    #[error(transparent)]
    Agent(#[from] gapless_agent::Error),
    /// A stamp of a leader, or a change of roles, that does not fit this member's stream.
    #[error("the stream ends at {last_sequence} in term {term}: {reason}")]
    Follow {
        /// The last sequence here.
        last_sequence: u64,
        term: u64,
        /// The contradiction.
        reason: String,
    },
}
