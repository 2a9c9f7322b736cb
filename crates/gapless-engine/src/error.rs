//! Errors of services: `EngineError`.

use gapless_agent::AgentFailure;
use gapless_client::ClientError;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_stream::StreamError;
use gapless_wire::mark::FaultRules;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Error of a service.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A ring, a handshake or the sequencer failed.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The journal cannot be opened, read or written; the service accepts no more input.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A window or ring failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A thread, a clock or a counter failed.
    #[error(transparent)]
    Agent(#[from] gapless_agent::Error),
    /// An agent failed, and the host has stopped. Remove the cause and start again.
    #[error("the service has stopped: {0}")]
    Stopped(AgentFailure),
    /// The cluster member that runs the service failed.
    #[cfg(feature = "cluster")]
    #[error(transparent)]
    Cluster(Box<gapless_cluster::ClusterError>),
    /// A file could not be read or written. Remove the cause and start again.
    #[error("{action}: {source}")]
    System {
        /// Attempted operation, with the path.
        action: String,
        source: std::io::Error,
    },
    /// The snapshot is damaged, of another stream, or refused by the service. A start without it needs an older
    /// snapshot or the whole journal.
    #[error("snapshot {path} is unusable: {reason}")]
    Snapshot { path: PathBuf, reason: String },
    /// The directory cannot start a new history.
    #[error("{directory} is not restored: {reason}")]
    Restore { directory: PathBuf, reason: String },
    #[error(
        "the frames {first} to {last} must be replayed, but another program has handled them: different handlers would \
         change history. Start that program and stop it cleanly, so that a snapshot covers them; then start this one; \
         or let the policy warn (OnOtherProgram::Warn)"
    )]
    OtherProgram {
        /// First frame after the newest snapshot.
        first: u64,
        last: u64,
    },
    #[error(
        "a replay of the frames {first} to {last} gives other outputs than recorded in {path}, from {place} on: the \
         handlers have changed, or are not deterministic. Start the program that handled them and stop it cleanly, so \
         that a snapshot covers them; then start this one; or let the policy accept it (OnOtherOutputs::Warn) until a \
         snapshot covers them"
    )]
    OtherOutputs {
        /// First frame of the record.
        first: u64,
        /// Last frame of the record.
        last: u64,
        /// Frames among which the first difference lies.
        at: RangeInclusive<u64>,
        /// The same range in words, with the command if it is one frame.
        place: String,
        path: PathBuf,
    },
    /// Correct the option.
    #[error("option {option}: {reason}")]
    Option { option: &'static str, reason: String },
    /// The policy stops the service at a panic.
    #[error(
        "the handler of {message} panicked at sequence {sequence} (session {session}, session_seq {session_seq}): \
         {reason}; none of its outputs were sent; fix the handler, or skip this sequence (`gapless journal skip \
         DIRECTORY {sequence}`; on a cluster `gapless cluster skip`), and start again"
    )]
    HandlerPanicked {
        /// Schema and template, or the timer with its due time.
        message: String,
        sequence: u64,
        session: u64,
        session_seq: u64,
        reason: String,
    },
    /// The policy checks for this fault.
    #[error(
        "the handler of {message} changed the state and then refused, at sequence {sequence} (session {session}, \
         session_seq {session_seq}): {reason}; a refused command must not change the state. Check first, then change. \
         To continue with the handler as it is, set policy.check_refusals to Never"
    )]
    RefusalWithEffect {
        /// Schema and template, or the timer with its due time.
        message: String,
        sequence: u64,
        session: u64,
        session_seq: u64,
        reason: String,
    },
    /// The policy stops the service at such a message. Start a program with a handler for it, or skip the sequence.
    #[error(
        "no handler takes {message} at sequence {sequence} (session {session}, session_seq {session_seq}): {reason}"
    )]
    Unhandled {
        /// Schema and template.
        message: String,
        sequence: u64,
        session: u64,
        session_seq: u64,
        reason: String,
    },
    /// Members with different programs would else have different states, and instances on an event stream different
    /// outputs under the same numbers.
    #[error(
        "this program lacks a message that another program of the service handles, {message} at sequence {sequence} \
         (session {session}, session_seq {session_seq}): {reason}; start a program that has it"
    )]
    MissingMessage {
        /// Name, or its key if this program has no such message; or the timer with its due time.
        message: String,
        sequence: u64,
        session: u64,
        session_seq: u64,
        /// With the contract.
        reason: String,
    },
    #[error(
        "from sequence {sequence} on the service acts as version {version}, but this program has only {first} to \
         {last}; start a program that has this version"
    )]
    Version {
        version: u32,
        /// First frame of that version, or the last frame of the snapshot that has it.
        sequence: u64,
        /// Lowest version of the service.
        first: u32,
        /// Highest version of the service.
        last: u32,
    },
    #[error(
        "frame {sequence} is of {found} service, and this one is {expected}; start the directory with a service of its \
         kind, and this service with its own directory"
    )]
    Kind {
        /// First frame that shows the kind.
        sequence: u64,
        found: &'static str,
        expected: &'static str,
    },
    /// The rules decide how a replay handles faults, so that they are fixed for the life of a stream.
    #[error(
        "option policy: the stream says for its whole life that {}, and this start that {}: start with the rules of the stream, or \
         begin another stream", describe_rules(*fixed), describe_rules(*asked)
    )]
    FaultRules { fixed: FaultRules, asked: FaultRules },
    /// A start reads the file and compares it with the stream.
    #[error(
        "the stream says at sequence {mark} that sequence {sequence} is skipped, but the file `skips` next to the \
         journal does not: `gapless journal skip DIRECTORY {sequence}` writes it again; a copy of the service needs \
         the sequence in skip_sequences"
    )]
    NotSkipped { sequence: u64, mark: u64 },
    /// Nothing was changed.
    #[error("sequence {sequence} of {directory} is not skipped: {reason}")]
    Skip { directory: PathBuf, sequence: u64, reason: String },
    /// The stream has a frame that no sequencer appends: it is damaged, or another version of the program wrote it.
    #[error("the stream is corrupt at sequence {sequence}: {reason}")]
    Corrupt { sequence: u64, reason: String },
}

fn describe_rules(rules: FaultRules) -> String {
    let FaultRules { panic_is_dead_letter, unhandled_stops } = rules;
    let panic = if panic_is_dead_letter {
        "is a dead letter (on_panic DeadLetter)"
    } else {
        "stops the service (on_panic Stop)"
    };
    let unhandled = if unhandled_stops {
        "stops the service (on_unhandled Stop)"
    } else {
        "is a dead letter (on_unhandled DeadLetter)"
    };
    format!("a panic {panic}, and a message without a handler {unhandled}")
}

#[cfg(feature = "cluster")]
impl From<gapless_cluster::ClusterError> for EngineError {
    fn from(error: gapless_cluster::ClusterError) -> Self {
        match error {
            gapless_cluster::ClusterError::Service(source) => match source.downcast::<Self>() {
                Ok(own) => *own,
                Err(source) => Self::Cluster(Box::new(gapless_cluster::ClusterError::Service(source))),
            },
            other => Self::Cluster(Box::new(other)),
        }
    }
}

impl From<ClientError> for EngineError {
    fn from(error: ClientError) -> Self {
        Self::Stream(error.into())
    }
}

impl EngineError {
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let action = action.into();
        move |source| Self::System { action, source }
    }
}
