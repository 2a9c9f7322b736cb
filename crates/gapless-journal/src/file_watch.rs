//! Periodic checks of a running journal's files; a loss found by `crate::file_check` ends it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::error::JournalError;
use crate::file_check::{check_known, check_newest, check_place};
use crate::segment::Segment;
use crate::shared_journal::{SegmentMaintenance, SharedJournal};

impl SharedJournal {
    pub(crate) fn check_files(&self, maintenance: &mut SegmentMaintenance) -> Result<(), JournalError> {
        self.check_poison()?;
        // Only the holder of `maintenance` renames, truncates and deletes segments.
        let active = self.segment_list().active.clone();
        let looked = check_newest(&active, maintenance.known_frames.take()).and_then(|known| {
            maintenance.known_frames = known;
            maintenance.history.check()
        });
        self.ended_by_loss(looked)
    }

    pub(crate) fn check_finished(
        &self,
        maintenance: &SegmentMaintenance,
        file: &Arc<File>,
        path: &Path,
        length: u64,
    ) -> Result<(), JournalError> {
        let looked = check_place(file, path, length).and_then(|()| check_known(file, path, &maintenance.known_frames));
        self.ended_by_loss(looked)
    }

    /// The active segment still has the name under which it was prepared.
    pub(crate) fn check_unnamed(&self, segment: &Segment) -> Result<(), JournalError> {
        self.ended_by_loss(check_place(&segment.file, &segment.path(), segment.header.segment_length))
    }

    fn ended_by_loss(&self, looked: Result<(), JournalError>) -> Result<(), JournalError> {
        looked.inspect_err(|error| {
            if matches!(error, JournalError::FileLost { .. }) {
                self.poison(error);
            }
        })
    }
}
