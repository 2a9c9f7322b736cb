//! What can go wrong with a node.

use gapless_agent::AgentFailure;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_stream::StreamError;
use std::path::PathBuf;

/// What can go wrong with a node.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Rings, handshake or sequencer.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A window or ring.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Threads, clocks, counters.
    #[error(transparent)]
    Agent(#[from] gapless_agent::Error),
    /// An agent failed; the node has stopped.
    #[error("the node has stopped: {0}")]
    Stopped(AgentFailure),
    /// A file could not be read or written.
    #[error("{action}: {source}")]
    System {
        /// What was being done, with the path.
        action: String,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// A snapshot is not what it should be.
    #[error("snapshot {path} is unusable: {reason}")]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// An option that makes no sense.
    #[error("option {option}: {reason}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A handler panicked, and the policy is to stop.
    #[error(
        "the handler of {message} panicked at sequence {sequence} (session {session}, session_seq {session_seq}): {reason}; \
         nothing of it was sent; mend the handler, or skip this sequence, and start again"
    )]
    HandlerPanicked {
        /// Schema and template, or "timer".
        message: String,
        /// The frame.
        sequence: u64,
        /// Who sent it.
        session: u64,
        /// Its number there.
        session_seq: u64,
        /// The panic's message.
        reason: String,
    },
    /// Nobody handles a message, and the policy is to stop.
    #[error(
        "no handler takes {message} at sequence {sequence} (session {session}, session_seq {session_seq}): {reason}"
    )]
    Unhandled {
        /// Schema and template.
        message: String,
        /// The frame.
        sequence: u64,
        /// Who sent it.
        session: u64,
        /// Its number there.
        session_seq: u64,
        /// Why nobody takes it.
        reason: String,
    },
    /// The stream holds what no sequencer appends.
    #[error("the stream is corrupt at sequence {sequence}: {reason}")]
    Corrupt {
        /// The frame.
        sequence: u64,
        /// What is wrong with it.
        reason: String,
    },
}

impl EngineError {
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let action = action.into();
        move |source| Self::System { action, source }
    }
}
