use crate::error::BaseFileError;
use crate::events::ReadError;
use gapless_engine::EngineError;
use gapless_journal::JournalError;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

/// The reason why no events are deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeletionError {
    /// A stream at tier `memory` has no journal.
    #[error("a stream at tier memory has no journal of which something could be deleted")]
    NoJournal,
    /// No segment is wholly before the requested sequence.
    #[error(
        "nothing can be deleted before {before}: whole segments of the journal go, and none behind {first}, where it begins, begins at or before that"
    )]
    NothingBefore {
        before: u64,
        /// First sequence that is not deleted already.
        first: u64,
    },
    /// Frames up to this one are not released yet.
    #[error("sequence {sequence} is not released yet; try again")]
    NotReleased { sequence: u64 },
    /// Frames up to this one are not on the device yet.
    #[error("sequence {sequence} is not on the device yet, where {synced} is the last one; try again")]
    NotSynced { sequence: u64, synced: u64 },
    /// A decision model needs all events.
    #[error("the model has the decision model {name}, which is made of all events of its filter: none can be deleted")]
    DecisionModel { name: &'static str },
    /// A reader of this host has not read all events that would be deleted.
    #[error(
        "a reader is open at {position}, and events before {before} were to be deleted: let it read on, or drop it"
    )]
    Reader {
        /// Sequence that it reads next.
        position: u64,
        before: u64,
    },
    /// Aggregates have events that would be deleted, but their types keep no states.
    #[error("{}", without_states(types))]
    WithoutStates {
        /// Each with its number of aggregates.
        types: Vec<(String, u64)>,
    },
    /// An aggregate cannot be loaded from its events.
    #[error(
        "an aggregate of type {name} with the identifier {} cannot be made of its events: {reason}",
        hexadecimal(id)
    )]
    Aggregate { name: &'static str, id: Vec<u8>, reason: String },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The existing base cannot be used.
    #[error(transparent)]
    Base(#[from] BaseFileError),
    /// The new base cannot be written.
    #[error("{} cannot be written, and nothing is deleted: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    /// The service cannot take a snapshot, which a deletion needs.
    #[error(transparent)]
    Snapshot(#[from] EngineError),
}

fn without_states(types: &[(String, u64)]) -> String {
    let mut text =
        "aggregates have events that would be deleted, and the model keeps no states of them; add their types by \
                    `aggregate_with_snapshots`:"
            .to_owned();
    for (name, count) in types {
        let _ = write!(text, " {count} of type {name};");
    }
    text.pop();
    text
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
