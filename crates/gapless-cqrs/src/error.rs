//! [`CommandError`]: how a command ends that has no events; [`ModelError`]: why a model is none; [`TypesError`], [`IndexFileError`]: of files.

use crate::identity::Position;
use std::io;
use std::path::PathBuf;

/// How a command ends that was not accepted. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError<Refusal> {
    /// By the aggregate or the handler, with its own reason.
    #[error("it was refused")]
    Refused(Refusal),
    /// The aggregate does not exist.
    #[error("there is no such aggregate")]
    NotFound,
    /// The aggregate exists already.
    #[error("there is such an aggregate already")]
    AlreadyExists,
    /// The aggregate is not as the caller has seen it.
    #[error("the aggregate has version {found}, and {expected} was expected")]
    Conflict {
        /// What the caller has seen.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// There is an event that the command's condition excludes, here.
    #[error("there is an event at {0} that the command's condition excludes")]
    ConditionFailed(Position),
    /// Another command had the same identifier.
    #[error("another command had the same identifier")]
    IdentifierReused,
    /// The aggregate, or what else is decided by, cannot be made of its events. Others go on.
    #[error("the aggregate is set apart: {0}")]
    Quarantined(String),
    /// An interceptor has refused it, before anything has decided on it.
    #[error("an interceptor has refused it: {0}")]
    Intercepted(String),
    /// The writer does not know such a command, or its bytes are none, or it has more events than a transaction can hold, or *decide* or
    /// *apply* has panicked.
    #[error("{0}")]
    Failed(String),
    /// The bus has no outcome.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// Why the bus has no outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The command was not sent: it cannot be encoded, its identifier is too long, or its headers are.
    #[error("the command was not sent: {0}")]
    NotSent(String),
    /// The writer is gone. The command may have had its effect or not.
    #[error("the bus is gone; the command may have had its effect or not")]
    Disconnected,
    /// The stream has forgotten the session that sent the command, which may have had its effect or not.
    #[error("the stream has forgotten the sender; the command may have had its effect or not")]
    Forgotten,
    /// No outcome has come in time. The command may still have its effect.
    #[error("there was no outcome in time; the command may still have its effect")]
    TimedOut,
    /// A handler, or the thread that polls the bus, has waited for an outcome there: it would wait for itself. A command that was sent before
    /// goes on.
    #[error("nobody waits here for an outcome: this thread has to make it")]
    CalledInHandler,
    /// The outcome is kept no longer: it was taken, or as many commands were sent since as may be in flight.
    #[error("the outcome is kept no longer")]
    NotKept,
    /// The answer is none that this program understands.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
}

/// Why a model is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Two names have the same number in the stream.
    #[error("{0:?} and {1:?} have the same key in the stream: give one of them another name")]
    SameKey(&'static str, &'static str),
    /// It is there twice.
    #[error("the model has {0:?} twice")]
    Twice(&'static str),
    /// There are no such versions of a model.
    #[error("the model has the versions {first} to {last}: at least one is expected, and all are 1 to 65535")]
    Versions {
        /// The first.
        first: u32,
        /// The last.
        last: u32,
    },
    /// A version does not fit into the stream, or an event is to be written in one that its type does not have.
    #[error("{name:?} has version {version}; versions are 1 to 65535, and at most that of the type")]
    Version {
        /// Of the type.
        name: &'static str,
        /// Its version.
        version: u32,
    },
}

/// The file with the types of a stream, beside its journal, does not go with this program. It is the source of the error of a start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypesError {
    /// A newer program has written it.
    #[error(
        "{} has format {found}, and this program knows {known}: a newer one has written it. Start that one; or move the file away, and then nobody looks \
         whether this program has the layouts of the events in the stream",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest that is known here.
        known: u64,
    },
    /// Events that the stream may have would be read wrong.
    #[error(
        "the event {name} has another layout than before, and the same version {version}: `{before}` in {}, {now}. What has changed is another version \
         or has another name, see the guide \"messages over versions\"; if the bytes are the same, as where a field has got another name, move the \
         file away",
        path.display()
    )]
    LayoutChanged {
        /// The file.
        path: PathBuf,
        /// Of the event's type.
        name: &'static str,
        /// The version.
        version: u32,
        /// The layout in the file.
        before: String,
        /// What it is now.
        now: String,
    },
}

impl TypesError {
    /// That in an error of the system, if it is one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

/// The file with the states of aggregates whose events are deleted cannot be read, or is not what it should be.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the file {}, which stands for events that are deleted, cannot be used: {reason}; put it back from a copy of this directory",
    path.display()
)]
pub struct BaseFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// A file of the index cannot be read, or is not what it should be.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the index file {} cannot be used: {reason}", path.display())]
pub struct IndexFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}
