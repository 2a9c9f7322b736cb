//! The errors of a stream.

use gapless_client::ClientError;
use gapless_config::ConfigError;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_transport::TransportError;

#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// A publisher, a reader or a relay failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The configuration file cannot be read, or a key of it is refused. Correct the file.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A connection, socket or handshake failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// A window or ring failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The journal cannot be opened, read or written; the stream accepts no more input.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The operating system refused. Remove the cause and start again.
    #[error("{action}: {source}")]
    System { action: String, source: std::io::Error },
    /// Correct the option.
    #[error("{option}: {reason}")]
    Option { option: &'static str, reason: String },
    /// The file is missing, damaged, or does not fit the journal or the options. Follow the advice of the message.
    #[error("{}: {reason}", path.display())]
    State { path: std::path::PathBuf, reason: String },
    /// An agent failed, and the stream has stopped. Remove the cause and start again.
    #[error(transparent)]
    Stopped(#[from] gapless_agent::AgentFailure),
    /// A thread, a clock or a counter failed.
    #[error(transparent)]
    Agent(#[from] gapless_agent::Error),
    /// A leader's frame, or a change of roles, does not fit the stream of this member. Frames before it were taken.
    #[error("the stream ends at {last_sequence} in term {term}: {reason}")]
    Follow { last_sequence: u64, term: u64, reason: String },
}
