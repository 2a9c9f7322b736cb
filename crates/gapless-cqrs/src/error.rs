//! `CommandError`: outcomes of commands that were not accepted; `ModelError`: invalid models; `TypesError`,
//! `IndexFileError`: files.

use crate::identity::Position;
use std::io;
use std::path::PathBuf;

/// Outcome of a command that was not accepted, and changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError<Refusal> {
    /// The aggregate or the handler refused it, for the reason in this value. Nothing was changed.
    #[error("the command was refused")]
    Refused(Refusal),
    /// The command needs an existing aggregate. Create it first.
    #[error("the aggregate does not exist")]
    NotFound,
    /// The command creates an aggregate. Choose another identifier, or send a command for an existing one.
    #[error("the aggregate exists already")]
    AlreadyExists,
    /// A concurrent command has changed the aggregate. Read it again, decide again, and retry with the found version.
    #[error("the aggregate has version {found}, expected {expected}")]
    Conflict { expected: u64, found: u64 },
    /// A concurrent command has written the event. Read again, decide again, and retry with a later position.
    #[error("the command's condition excludes the event at {0}")]
    ConditionFailed(Position),
    /// Nothing was changed. Give each command its own identifier; only a retry has that of the first attempt.
    #[error("another command had the same identifier")]
    IdentifierReused,
    /// The aggregate, or a decision model, cannot be loaded from its events; others are not affected. A retry loads it
    /// again if the fault is temporary; else start a program that reads the events.
    #[error("the aggregate is quarantined: {0}")]
    Quarantined(String),
    /// Refused before the decision; nothing was changed.
    #[error("an interceptor refused the command: {0}")]
    Intercepted(String),
    /// The writer does not know the command, its bytes do not decode, its events exceed a transaction, or *decide* or
    /// *apply* panicked. Fix the program; a retry fails again.
    #[error("{0}")]
    Failed(String),
    /// The bus has no outcome: see [`BusError`] for what is known.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// The bus has no outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The command cannot be encoded, or its identifier or headers are too long; or the handler that sent it was not
    /// accepted. It had no effect.
    #[error("the command was not sent: {0}")]
    NotSent(String),
    /// The writer has stopped. Retry with the same identifier: then a command that took effect is not repeated.
    #[error("the bus has disconnected; the command may have taken effect or not")]
    Disconnected,
    /// The session had expired when the connection returned. Retry with the same identifier.
    #[error("the sender's session has expired; the command may have taken effect or not")]
    Forgotten,
    /// Wait again, or retry with the same identifier.
    #[error("no outcome in time; the command may still take effect")]
    TimedOut,
    /// A handler, or the polling thread, would wait for itself. A command that was sent takes its course; poll for its
    /// outcome, or wait in another thread.
    #[error("this thread cannot wait for an outcome that it has to produce")]
    CalledInHandler,
    /// The outcome was taken already, or too many commands were sent since. The command is decided; take each outcome
    /// in time.
    #[error("the outcome is no longer kept")]
    NotKept,
    /// The command is decided, but this program has another schema of the answer. Do not repeat it.
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
}

/// An invalid model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("{0:?} and {1:?} have the same key in the stream: give one of them another name")]
    SameKey(&'static str, &'static str),
    /// Two types, commands or decision models have one name. Rename or remove one of them.
    #[error("the model contains {0:?} twice")]
    Twice(&'static str),
    #[error("the model has the versions {first} to {last}; expected at least one, all from 1 to 65535")]
    Versions { first: u32, last: u32 },
    /// The version does not fit into the stream, or the type does not have the version in which an event is to be
    /// written.
    #[error("{name:?} has version {version}; versions are 1 to 65535, and at most that of the type")]
    Version { name: &'static str, version: u32 },
}

/// The file with a stream's types does not match this program; source of a start's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypesError {
    #[error(
        "{} has format {found}, written by a newer program; this program knows {known}. Start the newer program; or \
         move the file away, and the layouts of the events in the stream are not checked",
        path.display()
    )]
    Newer { path: PathBuf, found: u64, known: u64 },
    /// Stored events would be decoded wrongly.
    #[error(
        "the event {name} has another layout than before, but the same version {version}: `{before}` in {}, {now}. \
         Give the changed layout a new version or another name, see the guide \"messages over versions\"; if the bytes \
         are the same, as after renaming a field, move the file away",
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
