//! Without space the journal waits for some. A failed sync or write is permanent, and no sync follows a failed one.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::support::{RefusingDisk, append, assert_holds, batch, boot, on};
use gapless_journal::{DiskOperation, Flush, Journal, JournalError};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn fill(journal: &mut Journal) -> JournalError {
    loop {
        let first = journal.last_sequence() + 1;
        if let Err(error) = journal.append(&batch(first, 1, 1), first, first) {
            return error;
        }
        journal.commit().unwrap();
    }
}

#[test]
fn full_disk_waits_for_free_space() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::<RefusingDisk>::default();
    let (mut journal, _) = Journal::open(on(directory.path(), &disk, Flush::Mapped)).unwrap();
    disk.refuse(Some(DiskOperation::Allocate));
    for _ in 0..2 {
        let error = fill(&mut journal);
        assert!(matches!(error, JournalError::NoSpace { .. }), "{error}");
    }
    disk.refuse(None);
    let last = journal.last_sequence();
    append(&mut journal, 50, 5, 1);
    drop(journal);
    assert_holds(directory.path(), boot(1), 1, last + 50, 1);

    let empty = tempfile::tempdir().unwrap();
    disk.refuse(Some(DiskOperation::Allocate));
    let error = Journal::open(on(empty.path(), &disk, Flush::Mapped)).unwrap_err();
    assert!(matches!(error, JournalError::NoSpace { .. }), "{error}");
}

#[test]
fn failed_sync_is_not_retried() {
    for flush in [Flush::Mapped, Flush::Write] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::<RefusingDisk>::default();
        let (mut journal, _) = Journal::open(on(directory.path(), &disk, flush)).unwrap();
        append(&mut journal, 10, 5, 1);
        disk.refuse(Some(DiskOperation::Sync));
        let before = disk.syncs.load(Ordering::SeqCst);
        let error = journal.sync().unwrap_err();
        assert!(matches!(error, JournalError::SyncFailed { .. }), "{error}");
        disk.refuse(None);
        for error in [journal.sync().unwrap_err(), journal.append(&batch(11, 1, 1), 11, 11).unwrap_err()] {
            assert!(matches!(error, JournalError::Poisoned { .. }), "{error}");
        }
        drop(journal);
        assert_eq!(disk.syncs.load(Ordering::SeqCst), before + 1);
        let (_, report) = Journal::open(on(directory.path(), &disk, flush)).unwrap();
        assert!(report.is_rewritten);
        assert_holds(directory.path(), boot(1), 1, 10, 1);
    }
}

#[test]
fn no_sync_follows_a_failed_one() {
    let mut failed = 0;
    for which in 1..30 {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::<RefusingDisk>::default();
        let mut options = on(directory.path(), &disk, Flush::Mapped);
        options.retention.bytes_max = Some(1);
        let (mut journal, _) = Journal::open(options).unwrap();
        let mut preparer = journal.preparer();
        disk.failing_sync.store(disk.syncs.load(Ordering::SeqCst) + which, Ordering::SeqCst);
        let mut work = |journal: &mut Journal| -> Result<(), JournalError> {
            let first = journal.last_sequence() + 1;
            journal.append(&batch(first, 20, 1), first, first + 19)?;
            journal.commit()?;
            preparer.set_snapshot_sequence(first);
            while preparer.run_once()? {}
            if first % 100 == 1 { journal.sync().map(drop) } else { Ok(()) }
        };
        let Some(error) = (0..40).find_map(|_| work(&mut journal).err()) else { continue };
        failed += 1;
        let syncs = disk.syncs.load(Ordering::SeqCst);
        for again in 0..3 {
            let refused = work(&mut journal).unwrap_err();
            assert!(matches!(refused, JournalError::Poisoned { .. }), "sync {which}, {again}: {refused} after {error}");
            assert!(matches!(journal.sync(), Err(JournalError::Poisoned { .. })));
        }
        assert_eq!(disk.syncs.load(Ordering::SeqCst), syncs, "sync {which}: {error}");
    }
    assert!(failed > 15, "{failed} syncs failed");
}

#[test]
fn failed_write_is_permanent() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::<RefusingDisk>::default();
    let (mut journal, _) = Journal::open(on(directory.path(), &disk, Flush::Write)).unwrap();
    append(&mut journal, 10, 5, 1);
    journal.append(&batch(11, 1, 1), 11, 11).unwrap();
    disk.refuse(Some(DiskOperation::Write));
    let error = journal.commit().unwrap_err();
    assert!(matches!(error, JournalError::Io { action: "write", .. }), "{error}");
    disk.refuse(None);
    let error = journal.commit().unwrap_err();
    assert!(matches!(error, JournalError::Poisoned { .. }), "{error}");
    drop(journal);
    drop(Journal::open(on(directory.path(), &disk, Flush::Write)).unwrap());
    assert_holds(directory.path(), boot(1), 1, 10, 1);
}
