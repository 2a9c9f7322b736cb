//! Retention: deletes the oldest segments, but never a frame above the snapshot sequence, the active segment, or the
//! newest checkpoint of consensus, and nothing if there are records without a checkpoint before the snapshot's frame.
//! Files with bytes removed by recovery count towards the journal's length, and stay.

use gapless_agent::checked_file;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::descriptor::archived_name;
use crate::disk::sync_directory;
use crate::error::JournalError;
use crate::history::JournalHistory;
use crate::records::SegmentRecords;
use crate::shared_journal::{RolledSegment, SegmentEntry, SegmentMaintenance, SharedJournal};

impl SharedJournal {
    pub(crate) fn retain_step(&self, maintenance: &mut SegmentMaintenance) -> Result<bool, JournalError> {
        let retention = self.options.retention;
        if retention.bytes_max.is_none() && retention.age_max_ns.is_none() {
            return Ok(false);
        }
        // Pairs with the release of `set_snapshot_sequence`.
        let snapshot_sequence = self.snapshot_sequence.load(Ordering::Acquire);
        let (oldest, next_first_sequence, checkpoint) = {
            let list = self.segment_list();
            let (Some(oldest), Some(next)) = (list.entries.front(), list.entries.get(1)) else { return Ok(false) };
            let total_bytes = list.entries.iter().map(|entry| entry.length).sum::<u64>() + self.removed_tail_bytes;
            let is_too_much = retention.bytes_max.is_some_and(|limit| total_bytes > limit);
            // A segment got its last frame when the next one was opened.
            let age_ns = (self.options.environment.epoch_ns)().saturating_sub(next.opened_ns);
            let is_too_old = retention.age_max_ns.is_some_and(|limit| age_ns > limit);
            let is_covered = next.first_sequence - 1 <= snapshot_sequence;
            if !is_covered || !(is_too_much || is_too_old) {
                return Ok(false);
            }
            // Consensus needs its records in a remaining segment, before a frame that no truncation removes.
            let has_records = list.entries.iter().any(|entry| entry.segment_records != SegmentRecords::Empty);
            let is_checkpoint = |entry: &&SegmentEntry| match entry.segment_records {
                SegmentRecords::Checkpoint { after_sequence, .. } => after_sequence < snapshot_sequence,
                SegmentRecords::Empty | SegmentRecords::Records => false,
            };
            let checkpoint = list.entries.iter().skip(1).rfind(is_checkpoint).map(|entry| entry.first_sequence);
            if has_records && (checkpoint.is_none() || !list.unnamed.is_empty()) {
                return Ok(false);
            }
            (*oldest, next.first_sequence, checkpoint)
        };
        if self.options.directory.join(archived_name(oldest.first_sequence)).exists() {
            // An archived segment takes no space here, and its archived copy stays.
            self.segment_list().entries.pop_front();
            return Ok(true);
        }
        if let Some(checkpoint) = checkpoint {
            self.sync_checkpoint(checkpoint)?;
        }
        self.begin_with(maintenance, next_first_sequence)?;
        remove_if_there(&self.segment_path(oldest.first_sequence))?;
        self.set_oldest(next_first_sequence)?;
        Ok(true)
    }

    /// The journal may begin there from now on: segments named by the history must exist.
    pub(crate) fn begin_with(
        &self,
        maintenance: &mut SegmentMaintenance,
        first_sequence: u64,
    ) -> Result<(), JournalError> {
        let history = maintenance.history.history();
        let first_sequence = history.first_sequence.max(first_sequence);
        self.set_history(maintenance, JournalHistory { first_sequence, ..history })
    }

    pub(crate) fn set_oldest(&self, next_first_sequence: u64) -> Result<(), JournalError> {
        sync_directory(&self.options.directory)?;
        {
            let mut list = self.segment_list();
            list.entries.pop_front();
            list.rolled.retain(|rolled| rolled.first_sequence >= next_first_sequence);
        }
        // Pairs with the acquire of `Journal::first_sequence`.
        self.first_sequence.store(next_first_sequence, Ordering::Release);
        Ok(())
    }

    /// Before the records that the newest checkpoint replaces are deleted.
    fn sync_checkpoint(&self, first_sequence: u64) -> Result<(), JournalError> {
        let _syncing = self.syncing();
        let (active, rolled) = {
            let list = self.segment_list();
            let is_active = list.entries.back().is_some_and(|entry| entry.first_sequence == first_sequence);
            let is_it = |rolled: &&RolledSegment| rolled.first_sequence == first_sequence;
            (is_active.then(|| list.active.clone()), list.rolled.iter().find(is_it).cloned())
        };
        match (active, rolled) {
            (Some(active), _) => self.sync_written(&active),
            (None, Some(rolled)) => self.sync_file(&rolled.file, || self.segment_path(first_sequence)),
            // Synced when it was taken off the list.
            (None, None) => Ok(()),
        }
    }
}

pub(crate) fn remove_if_there(path: &Path) -> Result<(), JournalError> {
    match checked_file::remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(JournalError::io("delete", path, error)),
        _ => Ok(()),
    }
}
