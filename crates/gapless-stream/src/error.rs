use gapless_client::ClientError;
use gapless_config::ConfigError;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_transport::TransportError;

#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// An error of the stream's publishers and readers, or of a relay, which is both.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The configuration file cannot be read, or a key of it is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A connection, socket or handshake failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error(transparent)]
    Log(#[from] LogError),
    /// The journal failed; the stream takes no more input.
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{action}: {source}")]
    System { action: String, source: std::io::Error },
    #[error("{option}: {reason}")]
    Option { option: &'static str, reason: String },
    #[error("{}: {reason}", path.display())]
    State { path: std::path::PathBuf, reason: String },
    #[error(transparent)]
    Stopped(#[from] gapless_agent::AgentFailure),
    #[error(transparent)]
    Agent(#[from] gapless_agent::Error),
    /// A leader's frame, or a change of roles, that does not fit this member's stream.
    #[error("the stream ends at {last_sequence} in term {term}: {reason}")]
    Follow { last_sequence: u64, term: u64, reason: String },
}
