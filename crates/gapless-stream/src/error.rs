//! What can go wrong in a stream.

use gapless_client::ClientError;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_transport::TransportError;

/// What can go wrong in a stream.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// What its publishers and readers are told, or a relay, which is both.
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
        /// What was being done, with the path where there is one.
        action: String,
        source: std::io::Error,
    },
    /// An option that makes no sense.
    #[error("{option}: {reason}")]
    Option {
        option: &'static str,
        /// What is wrong and what is allowed.
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
    /// What a leader is said to have stamped, or a change of roles, that does not fit this member's stream.
    #[error("the stream ends at {last_sequence} in term {term}: {reason}")]
    Follow {
        /// The last sequence here.
        last_sequence: u64,
        term: u64,
        /// What does not fit.
        reason: String,
    },
}
