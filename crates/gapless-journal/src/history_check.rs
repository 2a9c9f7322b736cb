//! Checks that a journal and a [`FilePoint`] come from one history: after two histories have diverged, a sequence has
//! different time stamps.

use crate::{FilePoint, PointFault};
use std::path::PathBuf;

use crate::error::JournalError;
use crate::reader::JournalReader;

impl FilePoint {
    pub(crate) fn refuse(&self, journal: impl Into<PathBuf>, fault: PointFault) -> JournalError {
        let Self { path, sequence, .. } = self;
        JournalError::OtherHistory {
            file: path.clone(),
            sequence: *sequence,
            journal: journal.into(),
            fault: Box::new(fault),
        }
    }
}

impl JournalReader {
    /// Checks that the file of `point` and this journal come from one history, as far as the journal still has the
    /// evidence.
    ///
    /// # Errors
    /// [`JournalError::OtherHistory`], or damage before the frame.
    pub fn check_point(&self, point: &FilePoint) -> Result<(), JournalError> {
        let expected = (self.stream_id(), self.incarnation());
        if let Some(found) = point.identity.filter(|found| *found != expected) {
            return Err(point.refuse(self.directory(), PointFault::Identity { found, expected }));
        }
        if point.sequence == 0 {
            return Ok(());
        }
        let last_sequence = self.last_sequence()?;
        if point.sequence > last_sequence {
            let fault = PointFault::Ahead { last_sequence, is_damaged: false };
            return Err(point.refuse(self.newest_path(), fault));
        }
        self.check_time(point)
    }

    pub(crate) fn check_time(&self, point: &FilePoint) -> Result<(), JournalError> {
        match (point.timestamp_ns, self.timestamp_of(point.sequence)?) {
            (Some(file_ns), Some((journal_ns, journal))) if file_ns != journal_ns => {
                Err(point.refuse(journal, PointFault::TimeStamp { file_ns, journal_ns }))
            }
            _ => Ok(()),
        }
    }

    fn timestamp_of(&self, sequence: u64) -> Result<Option<(u64, PathBuf)>, JournalError> {
        if sequence < self.first_sequence() {
            let oldest = &self.segments()[0];
            let is_before = sequence + 1 == oldest.first_sequence && oldest.times_ns.0 != 0;
            return Ok(is_before.then(|| (oldest.times_ns.0, oldest.path.clone())));
        }
        let mut replay = match self.replay(sequence) {
            Ok(replay) => replay,
            // Retention has deleted it meanwhile.
            Err(JournalError::NotHeld { first, .. }) if sequence < first => return Ok(None),
            Err(error) => return Err(error),
        };
        let segment = replay.position().0.to_owned();
        Ok(replay.next_frame()?.map(|frame| (frame.timestamp_ns(), segment)))
    }
}
