use crate::identity::Position;
use std::io;
use std::path::PathBuf;

/// Outcome of a command that was not accepted, and changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError<Refusal> {
    /// Refused by the aggregate or the handler, with its own reason.
    #[error("it was refused")]
    Refused(Refusal),
    /// The aggregate does not exist.
    #[error("there is no such aggregate")]
    NotFound,
    /// The aggregate exists already.
    #[error("there is such an aggregate already")]
    AlreadyExists,
    /// The aggregate has another version than the caller expected.
    #[error("the aggregate has version {found}, and {expected} was expected")]
    Conflict { expected: u64, found: u64 },
    /// The stream has an event, at this position, that the command's condition excludes.
    #[error("there is an event at {0} that the command's condition excludes")]
    ConditionFailed(Position),
    /// Another command had the same identifier.
    #[error("another command had the same identifier")]
    IdentifierReused,
    /// The aggregate, or a decision model, cannot be loaded from its events; others are not affected.
    #[error("the aggregate is set apart: {0}")]
    Quarantined(String),
    /// Refused by an interceptor, before the decision.
    #[error("an interceptor has refused it: {0}")]
    Intercepted(String),
    /// The writer does not know the command, its bytes do not decode, its events exceed a transaction, or *decide* or
    /// *apply* has panicked.
    #[error("{0}")]
    Failed(String),
    /// The bus has no outcome.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// The bus has no outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The command cannot be encoded, or its identifier or headers are too long.
    #[error("the command was not sent: {0}")]
    NotSent(String),
    /// The writer is gone; the command may have had its effect or not.
    #[error("the bus is gone; the command may have had its effect or not")]
    Disconnected,
    /// The stream has forgotten the sending session; the command may have had its effect or not.
    #[error("the stream has forgotten the sender; the command may have had its effect or not")]
    Forgotten,
    /// The command may still have its effect.
    #[error("there was no outcome in time; the command may still have its effect")]
    TimedOut,
    /// A handler, or the polling thread, would have waited for itself; a sent command goes on.
    #[error("nobody waits here for an outcome: this thread has to make it")]
    CalledInHandler,
    /// The outcome was taken, or too many commands were sent since.
    #[error("the outcome is kept no longer")]
    NotKept,
    /// The answer does not decode.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
}

/// An invalid model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Two names have the same key in the stream.
    #[error("{0:?} and {1:?} have the same key in the stream: give one of them another name")]
    SameKey(&'static str, &'static str),
    /// A name is used twice.
    #[error("the model has {0:?} twice")]
    Twice(&'static str),
    /// The range of versions is invalid.
    #[error("the model has the versions {first} to {last}: at least one is expected, and all are 1 to 65535")]
    Versions { first: u32, last: u32 },
    /// A version does not fit into the stream, or its type does not have the version in which an event is to be
    /// written.
    #[error("{name:?} has version {version}; versions are 1 to 65535, and at most that of the type")]
    Version { name: &'static str, version: u32 },
}

/// The file with a stream's types does not match this program; source of a start's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypesError {
    /// A newer program has written the file.
    #[error(
        "{} has format {found}, and this program knows {known}: a newer one has written it. Start that one; or move the file away, and then nobody looks \
         whether this program has the layouts of the events in the stream",
        path.display()
    )]
    Newer { path: PathBuf, found: u64, known: u64 },
    /// Stored events would be decoded wrongly.
    #[error(
        "the event {name} has another layout than before, and the same version {version}: `{before}` in {}, {now}. What has changed is another version \
         or has another name, see the guide \"messages over versions\"; if the bytes are the same, as where a field has got another name, move the \
         file away",
        path.display()
    )]
    LayoutChanged { path: PathBuf, name: &'static str, version: u32, before: String, now: String },
}

impl TypesError {
    /// The source of `error`, if it is one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the file {}, which stands for events that are deleted, cannot be used: {reason}; put it back from a copy of this directory",
    path.display()
)]
pub struct BaseFileError {
    pub path: PathBuf,
    /// The fault.
    pub reason: String,
}

/// An index file is unreadable or invalid.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the index file {} cannot be used: {reason}", path.display())]
pub struct IndexFileError {
    pub path: PathBuf,
    /// The fault.
    pub reason: String,
}
