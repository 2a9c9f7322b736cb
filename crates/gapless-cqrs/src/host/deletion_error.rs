//! `DeletionError`: the reasons why no events are deleted.

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
    #[error("a stream at tier memory has no journal to delete from")]
    NoJournal,
    /// Retry with a later sequence.
    #[error(
        "nothing can be deleted before {before}: only whole segments of the journal are deleted, and the one that \
         begins at {first} ends later"
    )]
    NothingBefore {
        before: u64,
        /// First sequence that is not deleted already.
        first: u64,
    },
    #[error("sequence {sequence} is not released yet; try again")]
    NotReleased { sequence: u64 },
    #[error("sequence {sequence} is not synced yet, {synced} is the last synced one; try again")]
    NotSynced { sequence: u64, synced: u64 },
    /// Remove the decision model from the model first, or keep the events.
    #[error("the decision model {name} needs all events of its filter; no event can be deleted")]
    DecisionModel { name: &'static str },
    #[error("a reader at {position} still needs events before {before}; let it continue, or drop it")]
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
    /// Nothing was deleted. Start a program that can load the aggregate.
    #[error(
        "the aggregate of type {name} with the identifier {} cannot be loaded from its events: {reason}",
        hexadecimal(id)
    )]
    Aggregate { name: &'static str, id: Vec<u8>, reason: String },
    /// The events cannot be read. Nothing was deleted.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The existing base, which stands for events deleted earlier, cannot be used.
    #[error(transparent)]
    Base(#[from] BaseFileError),
    /// Check the free space and the permissions, and retry.
    #[error("{} cannot be written, and nothing is deleted: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    /// The service cannot take a snapshot, which a deletion needs. Nothing was deleted.
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
