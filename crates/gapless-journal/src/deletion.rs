//! Deletion: the segments before a sequence go because somebody has asked for it, whatever retention says.
//!
//! A step of the helper thread. A segment goes when a snapshot covers it. What of it is archived goes, too: first the file in the archive, then the
//! stub, so that a deletion that was killed goes on. While the archive cannot be
//! reached, holds another file in its place, or somebody archives, it waits.
//!
//! ```text
//! history ─▶ segment ─▶ file in the archive ─▶ stub ─▶ sync of the folder ─▶ the next segment
//! ```

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;

use gapless_agent::fault::crash_point;
use gapless_agent::folder::Folder;

use crate::archived::Archived;
use crate::descriptor::{ARCHIVE_LOCK_NAME, archived_name};
use crate::directory::{DirectoryLock, stub_of};
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
        let (_lock, stub) = match self.reach(first_sequence, next - 1) {
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
        if let Some(stub) = stub {
            // It may be on a place that cannot be written now.
            if let Err(error) = stub.remove_segment() {
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

    /// Keeps others from archiving meanwhile, and finds the segment in its archive, if it lies in one.
    fn reach(&self, first: u64, last: u64) -> Result<(DirectoryLock, Option<Stub>), JournalError> {
        let directory = &self.options.directory;
        let lock = DirectoryLock::take_named(directory, ARCHIVE_LOCK_NAME)?;
        let Some((header, archived)) = stub_of(directory, first)? else { return Ok((lock, None)) };
        let foreign = (header.stream_id != self.options.stream_id).then(|| "the stub is of another journal".to_owned());
        match foreign.map_or_else(|| archived.find(&header), Err) {
            Ok(segment) => Ok((lock, Some(Stub { archived, segment }))),
            Err(reason) => {
                let stub = directory.join(archived_name(first));
                Err(JournalError::ArchiveUnusable { path: archived.place, stub, first, last, reason })
            }
        }
    }
}

/// What is archived of a segment. A stub is believed only where it names a file that is the segment.
struct Stub {
    archived: Archived,
    /// The segment and its folder; `None` where a deletion was killed after it had removed the segment.
    segment: Option<(Folder, File)>,
}

impl Stub {
    fn remove_segment(&self) -> Result<(), JournalError> {
        let Some((folder, segment)) = &self.segment else { return Ok(()) };
        let name = self.archived.name();
        let remove = || match folder.holds(name, segment)? {
            true => folder.remove(name),
            false => Err(io::Error::other("another file has taken its place")),
        };
        remove().map(drop).map_err(|error| JournalError::io("delete", &self.archived.place, error))
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
