//! Retention deletes exactly the segments allowed by its limits and the snapshot, after the checkpoint that replaces
//! their records is on the device.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::support::*;
use gapless_journal::{DiskOperation, Flush, Journal, JournalError, inspect};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn begun(journal: &Journal, count: u64) -> bool {
    journal.segments_begun() >= count
}

#[track_caller]
fn refused_for(refused: JournalError) -> PathBuf {
    match refused {
        JournalError::SyncFailed { segment, .. } => segment,
        other => panic!("expected a failed sync, found: {other}"),
    }
}

fn newest_first_sequence(directory: &Path) -> u64 {
    inspect::info_in(directory, boot(1)).unwrap().segments.last().unwrap().first_sequence
}

#[test]
fn journal_at_limit_keeps_all() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.retention.bytes_max = Some(4 * SEGMENT_LENGTH);
    let (mut journal, _) = Journal::open(options).unwrap();
    append_until(&mut journal, 300, |journal| begun(journal, 4));
    journal.set_snapshot_sequence(journal.last_sequence());
    work_off(&journal);
    assert_eq!(journal.first_sequence(), 1);
    append_until(&mut journal, 300, |journal| begun(journal, 5));
    journal.set_snapshot_sequence(journal.last_sequence());
    work_off(&journal);
    assert_eq!(journal.first_sequence(), first_of(&segments(directory.path())[0]));
    assert!(journal.first_sequence() > 1);
}

#[test]
fn snapshot_at_end_frees_segment() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.retention.bytes_max = Some(0);
    let (mut journal, _) = Journal::open(options).unwrap();
    append_until(&mut journal, 300, |journal| begun(journal, 2));
    work_off(&journal);
    let second = newest_first_sequence(directory.path());
    for (snapshot_sequence, first_sequence) in [(second - 2, 1), (second - 1, second)] {
        journal.set_snapshot_sequence(snapshot_sequence);
        work_off(&journal);
        assert_eq!(journal.first_sequence(), first_sequence, "snapshot {snapshot_sequence}");
    }
}

#[test]
fn checkpoint_is_synced_first() {
    for is_sealed in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(RefusingDisk::default());
        let mut options = on(directory.path(), &disk, Flush::Mapped);
        options.retention.bytes_max = Some(0);
        let (mut journal, _) = Journal::open(options).unwrap();
        journal.append_record(b"old").unwrap();
        append_until(&mut journal, 300, |journal| begun(journal, 3));
        journal.sync().unwrap();
        journal.append_checkpoint(b"everything").unwrap();
        let enough = if is_sealed { 4 } else { 3 };
        append(&mut journal, 1, 1, 0);
        append_until(&mut journal, 300, |journal| begun(journal, enough));
        work_off(&journal);
        let holder = segments(directory.path()).remove(2);
        assert!(!find_records(&holder).is_empty());

        journal.set_snapshot_sequence(journal.last_sequence());
        disk.refuse(Some(DiskOperation::Sync));
        let refused = loop {
            match journal.preparer().run_once() {
                Ok(did_work) => assert!(did_work, "nothing was synced"),
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused_for(refused), holder);
        assert_eq!(first_of(&segments(directory.path())[0]), 1, "no segment is deleted");
    }
}

#[test]
fn later_segments_are_synced() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(RefusingDisk::default());
    let mut options = on(directory.path(), &disk, Flush::Mapped);
    options.retention.bytes_max = Some(4 * SEGMENT_LENGTH);
    let (mut journal, _) = Journal::open(options).unwrap();
    append_until(&mut journal, 300, |journal| begun(journal, 5));
    journal.set_snapshot_sequence(journal.last_sequence());
    work_off(&journal);
    let oldest = segments(directory.path()).remove(0);
    assert_eq!(first_of(&oldest), journal.first_sequence());
    assert!(journal.first_sequence() > 1);
    disk.refuse(Some(DiskOperation::Sync));
    assert_eq!(refused_for(journal.sync().unwrap_err()), oldest);
}
