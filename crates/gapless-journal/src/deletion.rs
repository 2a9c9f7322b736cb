//! Deletion: removes the segments before a requested sequence, independently of retention.
//!
//! A segment can be deleted once a snapshot covers it. Its archived copy is deleted too: first the file in the archive,
//! then the stub, so that an interrupted deletion continues. The step waits while the archive is unreachable, has
//! another file in its place, or an archiving runs.
//!
//! ```text
//! history ─▶ segment ─▶ file in the archive ─▶ stub ─▶ sync of the folder ─▶ the next segment
//! ```

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;

use gapless_agent::fault::crash_point;
use gapless_agent::folder::Folder;

use crate::archived::ArchiveLocation;
use crate::descriptor::{ARCHIVE_LOCK_NAME, archived_name};
use crate::directory::{DirectoryLock, read_stub};
use crate::error::JournalError;
use crate::records::SegmentRecords;
use crate::retention::remove_if_there;
use crate::shared_journal::{SegmentMaintenance, SharedJournal};

impl SharedJournal {
    pub(crate) fn is_deletion_requested(&self) -> bool {
        // Pairs with the release of `SegmentPreparer::delete_before`.
        self.delete_before.load(Ordering::Acquire) > self.first_sequence.load(Ordering::Acquire)
    }

    pub(crate) fn delete_step(&self, maintenance: &mut SegmentMaintenance) -> Result<bool, JournalError> {
        if !self.is_deletion_requested() {
            return Ok(false);
        }
        let before = self.delete_before.load(Ordering::Acquire);
        // Pairs with the release of `set_snapshot_sequence`.
        let snapshot_sequence = self.snapshot_sequence.load(Ordering::Acquire);
        let (first_sequence, next) = {
            let list = self.segment_list();
            let (Some(oldest), Some(next)) = (list.entries.front(), list.entries.get(1)) else { return Ok(false) };
            let next = next.first_sequence;
            // Consensus records show that the journal is a member's: only the member's own snapshots release its
            // segments.
            let has_records = list.entries.iter().any(|entry| entry.segment_records != SegmentRecords::Empty);
            if next > before || next - 1 > snapshot_sequence || has_records {
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
            // The archive may be read-only at present.
            if let Err(error) = stub.remove_segment() {
                waits(maintenance, first_sequence, &error);
                return Ok(false);
            }
            crash_point("deletion_after_archive");
            remove_if_there(&self.options.directory.join(archived_name(first_sequence)))?;
        }
        self.set_oldest(next)?;
        crash_point("deletion_after_sync");
        Ok(true)
    }

    fn reach(&self, first: u64, last: u64) -> Result<(DirectoryLock, Option<Stub>), JournalError> {
        let directory = &self.options.directory;
        let lock = DirectoryLock::take_named(directory, ARCHIVE_LOCK_NAME)?;
        let Some((header, archived)) = read_stub(directory, first)? else { return Ok((lock, None)) };
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

/// Trusted only if it names a file that is the segment.
struct Stub {
    archived: ArchiveLocation,
    /// `None` if an interrupted deletion has removed it already.
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

#[cold]
fn waits(maintenance: &mut SegmentMaintenance, first_sequence: u64, error: &JournalError) {
    let reason = error.to_string();
    if reason != maintenance.deletion_blocker {
        tracing::warn!("the segment from sequence {first_sequence} on is not deleted yet: {reason}");
        maintenance.deletion_blocker = reason;
    }
}
