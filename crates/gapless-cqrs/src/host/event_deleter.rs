//! [`EventDeleter`]: deletes events for good. States of their aggregates are written to a [`BaseFile`](crate::store::BaseFile)
//! first; then the journal deletes its segments.
//!
//! ```text
//! snapshot of the service ─▶ base, synced and read back ─▶ aggregates load from it ─▶ segments are deleted
//! ```
//! If the host is killed before the base exists, nothing has happened; later, the next start goes on.

use super::base_builder::BaseBuilder;
use super::deletion_error::DeletionError;
use super::loading::IndexReader;
use crate::aggregate::ErasedAggregate;
use crate::events::EventReader;
use crate::found_events::PositionSource as _;
use crate::model::CheckedModel;
use crate::open_readers::OpenReaders;
use crate::store::{BASE_FOLDER, BaseFile, EventIndex};
use gapless_agent::checked_file;
use gapless_agent::fault::crash_point;
use gapless_engine::EngineError;
use gapless_engine::transaction_service::WriterParts;
use gapless_journal::JournalReader;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Report of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionReport {
    /// Earlier events are deleted: before the requested sequence, or less, because whole segments are.
    pub before: u64,
    /// Number of aggregates with deleted events.
    pub aggregates: u64,
    /// File with the aggregates' states.
    pub file: PathBuf,
    /// Length of the file, bytes.
    pub file_bytes: u64,
}

pub(super) struct EventDeleter {
    /// The lock admits one deletion at a time.
    aggregates: Mutex<Vec<Box<dyn ErasedAggregate>>>,
    decision_model: Option<&'static str>,
    aggregates_max: usize,
    journal: Option<PathBuf>,
    stream_id: u128,
    index: EventIndex,
    pub readers: OpenReaders,
}

impl EventDeleter {
    pub fn new(model: &CheckedModel, aggregates_max: usize, index: EventIndex, parts: &WriterParts<'_>) -> Self {
        Self {
            aggregates: Mutex::new(model.aggregates.all.iter().map(|aggregate| aggregate.new_of_same_type()).collect()),
            decision_model: decision_model_of(model),
            aggregates_max,
            journal: parts.journal().cloned(),
            stream_id: parts.window().identity().stream_id,
            index,
            readers: OpenReaders::default(),
        }
    }

    /// Sequence before which events may be deleted; 0: none.
    pub fn deleted_before(&self) -> u64 {
        self.index.deleted_before()
    }

    /// Writes the base; `snapshot` makes the service take a snapshot.
    pub fn write_base(
        &self,
        before: u64,
        index_reader: &IndexReader,
        mut reader: EventReader,
        snapshot: impl FnOnce() -> Result<u64, EngineError>,
    ) -> Result<DeletionReport, DeletionError> {
        let journal = self.journal.as_ref().ok_or(DeletionError::NoJournal)?;
        if let Some(name) = self.decision_model {
            return Err(DeletionError::DecisionModel { name });
        }
        let aggregates = self.aggregates.lock().unwrap_or_else(PoisonError::into_inner);
        // The base must not have events that the index lacks.
        let through = index_reader.through()?;
        let old = self.index.base();
        let journal_reader = JournalReader::open(journal)?;
        let first = journal_reader.first_sequence().max(self.index.deleted_before());
        let boundary = journal_reader.boundary_at(before.min(through + 1))?;
        let boundary = boundary.filter(|boundary| *boundary > first);
        let boundary = boundary.ok_or(DeletionError::NothingBefore { before, first })?;
        self.check_readers(boundary)?;
        // The snapshot must be later than the deleted events; it also syncs the journal, which must not end before the
        // base.
        snapshot()?;
        let synced = JournalReader::open(journal)?.synced_sequence();
        if synced + 1 < boundary {
            return Err(DeletionError::NotSynced { sequence: boundary - 1, synced });
        }
        let making = BaseBuilder {
            aggregates: &aggregates,
            old: old.as_deref(),
            reader: &mut reader,
            before: boundary,
            aggregates_max: self.aggregates_max,
        };
        let base = making.write(&journal.with_file_name(BASE_FOLDER), self.stream_id)?;
        crash_point("deletion_after_base");
        if let Err(error) = self.check_readers(boundary) {
            // A reader was opened meanwhile; the base is not in use yet.
            let folder = journal.with_file_name(BASE_FOLDER);
            let removed =
                checked_file::remove(&base.path).and_then(|()| gapless_journal::durable_file::sync_directory(&folder));
            removed.map_err(|error| DeletionError::Write { path: base.path.clone(), error })?;
            return Err(error);
        }
        let report = DeletionReport {
            before: base.before,
            aggregates: base.entries,
            file: base.path.clone(),
            file_bytes: base.length,
        };
        remove_others(&base);
        self.index.set_base(base);
        Ok(report)
    }

    fn check_readers(&self, before: u64) -> Result<(), DeletionError> {
        match self.readers.lowest() {
            Some(position) if position < before => Err(DeletionError::Reader { position, before }),
            _ => Ok(()),
        }
    }
}

fn decision_model_of(model: &CheckedModel) -> Option<&'static str> {
    let types = &model.decision_models;
    types.has_any().then(|| types.all[1].name())
}

/// Fully checked while segments remain to be deleted; else only as far as a start can wait for.
pub(super) fn open_base(model: &CheckedModel, parts: &WriterParts<'_>) -> io::Result<Option<BaseFile>> {
    let Some(journal) = parts.journal() else { return Ok(None) };
    let stream_id = parts.window().identity().stream_id;
    let Some((base, first)) = BaseFile::next_to(journal, Some(stream_id))? else { return Ok(None) };
    if let Some(name) = decision_model_of(model) {
        let before = base.before;
        return Err(io::Error::other(format!(
            "the model has the decision model {name}, which is made of all events of its filter, and those before {before} are deleted"
        )));
    }
    if first < base.before {
        base.check().map_err(io::Error::other)?;
    }
    remove_others(&base);
    Ok(Some(base))
}

/// Leftovers do no harm.
fn remove_others(base: &BaseFile) {
    if let Err(error) = base.remove_others() {
        tracing::warn!("{} is of no use any more, and is still there: {}", error.path.display(), error.reason);
    }
}
