//! [`DeletionError`]: why no events are deleted.

use crate::error::BaseFileError;
use crate::events::ReadError;
use gapless_engine::EngineError;
use gapless_journal::JournalError;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

/// Why no events are deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeletionError {
    /// At tier `memory` nothing is kept that could be deleted.
    #[error("a stream at tier memory has no journal of which something could be deleted")]
    NoJournal,
    /// There is no segment that is wholly before what is to be deleted.
    #[error(
        "nothing can be deleted before {before}: whole segments of the journal go, and none behind {first}, where it begins, begins at or before that"
    )]
    NothingBefore {
        /// What was to be deleted.
        before: u64,
        /// The first sequence that is not deleted already.
        first: u64,
    },
    /// The frames up to this one are not released yet.
    #[error("sequence {sequence} is not released yet; try again")]
    NotReleased {
        /// Its sequence.
        sequence: u64,
    },
    /// The frames up to this one are not on the device yet.
    #[error("sequence {sequence} is not on the device yet, where {synced} is the last one; try again")]
    NotSynced {
        /// Its sequence.
        sequence: u64,
        /// The last one that is on the device.
        synced: u64,
    },
    /// A decision model needs all events.
    #[error("the model has the decision model {name}, which is made of all events of its filter: none can be deleted")]
    DecisionModel {
        /// Its name.
        name: &'static str,
    },
    /// A reader of this host has events before it that would be deleted.
    #[error(
        "a reader is open at {position}, and events before {before} were to be deleted: let it read on, or drop it"
    )]
    Reader {
        /// What it reads next, a sequence number.
        position: u64,
        /// What was to be deleted.
        before: u64,
    },
    /// Aggregates have events that would be deleted, and no states that could stand for them.
    #[error("{}", without_states(types))]
    WithoutStates {
        /// Their types, and how many there are of each.
        types: Vec<(String, u64)>,
    },
    /// An aggregate cannot be made of its events.
    #[error(
        "an aggregate of type {name} with the identifier {} cannot be made of its events: {reason}",
        hexadecimal(id)
    )]
    Aggregate {
        /// Its type.
        name: &'static str,
        /// The bytes of its identifier.
        id: Vec<u8>,
        /// Why not.
        reason: String,
    },
    /// The events cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What stands for events that are deleted already cannot be used.
    #[error(transparent)]
    Base(#[from] BaseFileError),
    /// What would stand for the events cannot be written.
    #[error("{} cannot be written, and nothing is deleted: {error}", path.display())]
    Write {
        /// Where it would be.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A snapshot of the service, behind which segments may go, cannot be written.
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
