//! Deletion: the segments before a sequence go because somebody has asked for it, whatever retention says.
//!
//! A step of the helper thread. A segment goes when a snapshot covers it. What of it is archived goes, too: first the file in the archive, then the
//! stub, so that a deletion that was killed goes on. While the archive cannot be reached, or somebody archives, it waits.
//!
//! ```text
//! history ─▶ segment ─▶ file in the archive ─▶ stub ─▶ sync of the folder ─▶ the next segment
//! ```

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use gapless_agent::fault::crash_point;

use crate::descriptor::{ARCHIVE_LOCK_NAME, archived_name};
use crate::directory::{DirectoryLock, archive_of};
use crate::error::JournalError;
use crate::records::SegmentRecords;
use crate::retention::remove_if_there;
use crate::shared_journal::{SegmentMaintenance, SharedJournal};

impl SharedJournal {
    /// Whether something is to be deleted that is still there.
    pub(crate) fn is_to_delete(&self) -> bool {
        // Acquire: pairs with the release of `SegmentPreparer::delete_before`.
        self.delete_before.load(Ordering::Acquire) > self.first_sequence.load(Ordering::Acquire)
    }

    /// Deletes the oldest segment if that was asked for and it may go; `true` if it went.
    pub(crate) fn delete_step(&self, maintenance: &mut SegmentMaintenance) -> Result<bool, JournalError> {
        if !self.is_to_delete() {
            return Ok(false);
        }
        let before = self.delete_before.load(Ordering::Acquire);
        // Acquire: pairs with the release of `set_snapshot_sequence`.
        let snapshot_sequence = self.snapshot_sequence.load(Ordering::Acquire);
        let (first_sequence, next) = {
            let list = self.segment_list();
            let (Some(oldest), Some(next)) = (list.entries.front(), list.entries.get(1)) else { return Ok(false) };
            let next = next.first_sequence;
            // A journal with records of consensus is a member's, whose segments only its own snapshots let go.
            let holds_records = list.entries.iter().any(|entry| entry.segment_records != SegmentRecords::Nothing);
            if next > before || next - 1 > snapshot_sequence || holds_records {
                return Ok(false);
            }
            (oldest.first_sequence, next)
        };
        let (_lock, archive) = match self.reach(first_sequence) {
            Ok(reached) => reached,
            Err(error) => {
                waits(maintenance, first_sequence, &error);
                return Ok(false);
            }
        };
        self.begin_with(maintenance, next)?;
        crash_point("deletion_after_history");
        remove_if_there(&self.segment_path(first_sequence))?;
        crash_point("deletion_after_segment");
        if let Some(archive) = archive {
            // It may be on a place that cannot be written now.
            if let Err(error) = remove_if_there(&archive) {
                waits(maintenance, first_sequence, &error);
                return Ok(false);
            }
            crash_point("deletion_after_archive");
            remove_if_there(&self.options.directory.join(archived_name(first_sequence)))?;
        }
        self.oldest_is_gone(next)?;
        crash_point("deletion_after_sync");
        Ok(true)
    }

    /// Keeps others from archiving meanwhile, and says where the segment lies in an archive, if it does.
    fn reach(&self, first_sequence: u64) -> Result<(DirectoryLock, Option<PathBuf>), JournalError> {
        let directory = &self.options.directory;
        let lock = DirectoryLock::take_named(directory, ARCHIVE_LOCK_NAME)?;
        let archive = archive_of(directory, first_sequence)?;
        // Where the file alone is gone, a deletion was killed.
        if let Some(folder) = archive.as_deref().and_then(std::path::Path::parent) {
            std::fs::read_dir(folder).map_err(|error| JournalError::io("list", folder, error))?;
        }
        Ok((lock, archive))
    }
}

/// Says once why a segment stays for now.
#[cold]
fn waits(maintenance: &mut SegmentMaintenance, first_sequence: u64, error: &JournalError) {
    let reason = error.to_string();
    if reason != maintenance.undeleted {
        tracing::warn!("the segment from sequence {first_sequence} on is not deleted yet: {reason}");
        maintenance.undeleted = reason;
    }
}
