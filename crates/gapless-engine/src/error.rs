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
    /// Rings, handshake or sequencer.
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A window or ring.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Threads, clocks, counters.
    #[error(transparent)]
    Agent(#[from] gapless_agent::Error),
    /// An agent failed; the host has stopped.
    #[error("the service has stopped: {0}")]
    Stopped(AgentFailure),
    /// The cluster member that runs the service.
    #[cfg(feature = "cluster")]
    #[error(transparent)]
    Cluster(Box<gapless_cluster::ClusterError>),
    /// A file could not be read or written.
    #[error("{action}: {source}")]
    System { action: String, source: std::io::Error },
    /// A snapshot cannot be used.
    #[error("snapshot {path} is unusable: {reason}")]
    Snapshot { path: PathBuf, reason: String },
    /// A directory cannot start a new history.
    #[error("{directory} is not restored: {reason}")]
    Restore { directory: PathBuf, reason: String },
    /// Another program has handled the frames to be replayed, and the policy refuses that.
    #[error(
        "the frames {first} to {last} are to be replayed, and another program has handled them: if its handlers do anything \
         else, history is another one. Start that program, stop it in order, so that a snapshot covers them, and start \
         this one then; or let the policy warn (OnOtherProgram::Warn)"
    )]
    OtherProgram { first: u64, last: u64 },
    /// A replay produced other outputs than the recorded ones.
    #[error(
        "the frames {first} to {last} put out something else now than when they were handled first ({path}), from {place} on: the \
         handlers have changed, or do not do the same each time. Start the program that handled them, stop it in order, so that a \
         snapshot covers them, and start this one then; or let the policy accept it (OnOtherOutputs::Warn) until a snapshot \
         stands behind them"
    )]
    OtherOutputs { first: u64, last: u64, at: RangeInclusive<u64>, place: String, path: PathBuf },
    /// An option is invalid.
    #[error("option {option}: {reason}")]
    Option { option: &'static str, reason: String },
    /// A handler panicked, and the policy stops the service.
    #[error(
        "the handler of {message} panicked at sequence {sequence} (session {session}, session_seq {session_seq}): {reason}; \
         nothing of it was sent; mend the handler, or skip this sequence (`gapless journal skip DIRECTORY {sequence}`; on a cluster \
         `gapless cluster skip`), and start again"
    )]
    HandlerPanicked {
        /// Schema and template, or the timer with its due time.
        message: String,
        sequence: u64,
        session: u64,
        session_seq: u64,
        reason: String,
    },
    /// A handler changed the state and then refused, and the policy checks for that.
    #[error(
        "the handler of {message} has changed the state and then refused, at sequence {sequence} (session {session}, session_seq \
         {session_seq}): {reason}; its client was to hear that nothing happened. Check first, then change. To go on with the \
         handler as it is, set policy.check_refusals to Never: it decides whether anybody looks"
    )]
    RefusalWithEffect { message: String, sequence: u64, session: u64, session_seq: u64, reason: String },
    /// No handler takes a message, and the policy stops the service.
    #[error(
        "no handler takes {message} at sequence {sequence} (session {session}, session_seq {session_seq}): {reason}"
    )]
    Unhandled { message: String, sequence: u64, session: u64, session_seq: u64, reason: String },
    /// The stream activates a version that the service does not have.
    #[error(
        "from sequence {sequence} on the service acts as version {version}, and this program has {first} to {last} only; \
         start it with a program that has this version"
    )]
    Version { version: u32, sequence: u64, first: u32, last: u32 },
    /// The stream belongs to a service of the other kind: event-sourced or state-replicated.
    #[error(
        "frame {sequence} is of {found} service, and this one is {expected}: start the directory with a service of its kind, \
         and this service with a directory of its own"
    )]
    Kind { sequence: u64, found: &'static str, expected: &'static str },
    /// The stream has fixed other fault rules, for its whole life, than the policy has.
    #[error(
        "option policy: the stream says for its whole life that {}, and this start that {}: start with the rules of the stream, or \
         begin another stream", describe_rules(*fixed), describe_rules(*asked)
    )]
    FaultRules { fixed: FaultRules, asked: FaultRules },
    /// The stream marks a command as skipped, but the `skips` file next to the journal, which a start reads, lacks it.
    #[error(
        "the stream says at sequence {mark} that sequence {sequence} is skipped, and the file `skips` beside the journal does not: \
         `gapless journal skip DIRECTORY {sequence}` writes it again; a copy of the service needs the sequence in skip_sequences"
    )]
    NotSkipped { sequence: u64, mark: u64 },
    /// A sequence cannot be skipped.
    #[error("sequence {sequence} of {directory} is not skipped: {reason}")]
    Skip { directory: PathBuf, sequence: u64, reason: String },
    /// The stream has a frame that no sequencer appends.
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
