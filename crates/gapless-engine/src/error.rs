//! What can go wrong with a service.

use gapless_agent::AgentFailure;
use gapless_client::ClientError;
use gapless_journal::JournalError;
use gapless_log::LogError;
use gapless_stream::StreamError;
use gapless_wire::mark::FaultRules;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// What can go wrong with a service.
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
    /// An agent failed; the host has stopped.
    #[error("the service has stopped: {0}")]
    Stopped(AgentFailure),
    /// The member of a cluster that it was to run on.
    #[cfg(feature = "cluster")]
    #[error(transparent)]
    Cluster(Box<gapless_cluster::ClusterError>),
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
    /// A directory that is not made a history of its own.
    #[error("{directory} is not restored: {reason}")]
    Restore {
        /// The directory.
        directory: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// Frames are to be replayed that another program has handled, and the policy refuses that.
    #[error(
        "the frames {first} to {last} are to be replayed, and another program has handled them: if its handlers do anything \
         else, history is another one. Start that program, stop it in order, so that a snapshot covers them, and start \
         this one then; or let the policy warn (OnOtherProgram::Warn)"
    )]
    OtherProgram {
        /// The first frame behind the newest snapshot.
        first: u64,
        /// The last frame.
        last: u64,
    },
    /// A replay has put out something else than what was recorded.
    #[error(
        "the frames {first} to {last} put out something else now than when they were handled first ({path}), from {place} on: the \
         handlers have changed, or do not do the same each time. Start the program that handled them, stop it in order, so that a \
         snapshot covers them, and start this one then; or let the policy accept it (OnOtherOutputs::Warn) until a snapshot \
         stands behind them"
    )]
    OtherOutputs {
        /// The first frame of the record.
        first: u64,
        /// The last one.
        last: u64,
        /// One of these was the first that put out something else.
        at: RangeInclusive<u64>,
        /// Which that is, in words: with its command, if it is one frame.
        place: String,
        /// The file.
        path: PathBuf,
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
         nothing of it was sent; mend the handler, or skip this sequence (`gapless journal skip DIRECTORY {sequence}`; on a cluster \
         `gapless cluster skip`), and start again"
    )]
    HandlerPanicked {
        /// Schema and template, or the timer with its due time.
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
    /// A handler has changed the state and then refused, and the policy looks at that.
    #[error(
        "the handler of {message} has changed the state and then refused, at sequence {sequence} (session {session}, session_seq \
         {session_seq}): {reason}; its client was to hear that nothing happened. Check first, then change. To go on with the \
         handler as it is, set policy.check_refusals to Never: it decides whether anybody looks"
    )]
    RefusalWithEffect {
        /// Schema and template, or the timer with its due time.
        message: String,
        /// The frame.
        sequence: u64,
        /// Who sent it.
        session: u64,
        /// Its number there.
        session_seq: u64,
        /// What it refused with.
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
    /// The stream activates a version that the service cannot act as.
    #[error(
        "from sequence {sequence} on the service acts as version {version}, and this program has {first} to {last} only; \
         start it with a program that has this version"
    )]
    Version {
        /// The version.
        version: u32,
        /// Where it begins, or the snapshot that has it stands.
        sequence: u64,
        /// The lowest that the service has.
        first: u32,
        /// The highest.
        last: u32,
    },
    /// The stream is that of a service of the other kind: event-sourced or state-replicated.
    #[error(
        "frame {sequence} is of {found} service, and this one is {expected}: start the directory with a service of its kind, \
         and this service with a directory of its own"
    )]
    Kind {
        /// The first frame that tells.
        sequence: u64,
        /// Whose it is.
        found: &'static str,
        /// What the service is.
        expected: &'static str,
    },
    /// The stream has other rules for faults than the policy, for the rest of its life.
    #[error(
        "option policy: the stream says for its whole life that {}, and this start that {}: start with the rules of the stream, or \
         begin another stream", worded(*fixed), worded(*asked)
    )]
    FaultRules {
        /// The stream's.
        fixed: FaultRules,
        /// The policy's.
        asked: FaultRules,
    },
    /// The stream says that a command is skipped, and the file beside the journal that says so to a start does not.
    #[error(
        "the stream says at sequence {mark} that sequence {sequence} is skipped, and the file `skips` beside the journal does not: \
         `gapless journal skip DIRECTORY {sequence}` writes it again; a copy of the service needs the sequence in skip_sequences"
    )]
    NotSkipped {
        /// The command.
        sequence: u64,
        /// The mark.
        mark: u64,
    },
    /// A sequence that cannot be skipped.
    #[error("sequence {sequence} of {directory} is not skipped: {reason}")]
    Skip {
        /// The directory.
        directory: PathBuf,
        /// The sequence.
        sequence: u64,
        /// Why not, and what to do.
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

/// The rules in words, with their options.
fn worded(rules: FaultRules) -> String {
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
            // What the service itself has said needs no other name.
            gapless_cluster::ClusterError::Service(source) => match source.downcast::<Self>() {
                Ok(own) => *own,
                Err(source) => Self::Cluster(Box::new(gapless_cluster::ClusterError::Service(source))),
            },
            other => Self::Cluster(Box::new(other)),
        }
    }
}

/// What a node of a stream is told is the stream's.
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
