//! Covers interrupted starts too: synced frames, headers that match the segments, and a history that names them.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::support::*;
use gapless_journal::descriptor as d;
use gapless_journal::{
    FilePoint, Flush, Journal, JournalEnvironment, JournalError, JournalOptions, MarkName, RecoveryReport,
    VerifyVerdict, inspect,
};
use gapless_testkit::folder::copy;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn begun(journal: &Journal, count: u64) -> bool {
    journal.segments_begun() >= count
}

fn open(directory: &Path, boot_number: u128) -> Result<(Journal, RecoveryReport), JournalError> {
    Journal::open(JournalOptions { environment: boot(boot_number), ..options(directory) })
}

fn written(directory: &Path, count: u64) -> Journal {
    let (mut journal, _) = open(directory, 1).unwrap();
    while !begun(&journal, count) {
        append(&mut journal, 1, 1, 0);
    }
    work_off(&journal);
    journal
}

#[test]
fn point_needs_no_frame() {
    let directory = tempfile::tempdir().unwrap();
    let point = FilePoint { path: directory.path().join("state"), identity: None, sequence: 0, timestamp_ns: Some(7) };
    for is_new in [true, false] {
        let options = JournalOptions { points: vec![point.clone()], ..options(directory.path()) };
        let (mut journal, report) = Journal::open(options).unwrap();
        assert_eq!(report.is_new, is_new);
        append(&mut journal, 10, 10, 0);
    }
}

#[test]
fn journal_begins_at_any_sequence() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, report) = Journal::open(JournalOptions { first_sequence: 77, ..options(directory.path()) }).unwrap();
    assert_eq!((report.first_sequence, report.last_sequence), (77, 76));
    assert_eq!(report.good_mark, (MarkName::Journaled, 76));
    assert_eq!((journal.last_sequence(), journal.synced_sequence()), (76, 76));
}

#[test]
fn segment_numbers_rise() {
    let directory = tempfile::tempdir().unwrap();
    for count in [3, 2, 3] {
        drop(written(directory.path(), count));
    }
    let numbers: Vec<_> =
        inspect::info_in(directory.path(), boot(1)).unwrap().segments.iter().map(|info| info.number).collect();
    assert!(numbers.len() > 4 && numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[test]
fn restart_keeps_the_synced_mark() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(directory.path(), 1).unwrap();
    append(&mut journal, 10, 10, 0);
    journal.sync().unwrap();
    append(&mut journal, 10, 10, 0);
    drop(journal);
    let (mut journal, _) = open(directory.path(), 1).unwrap();
    assert_eq!(journal.synced_sequence(), 10);
    assert_eq!(journal.sync().unwrap(), 20);
    drop(journal);
    let (journal, _) = open(directory.path(), 2).unwrap();
    assert_eq!(journal.synced_sequence(), 20);
}

#[test]
fn reboot_start_syncs_everything() {
    let whole = tempfile::tempdir().unwrap();
    let mut journal = written(whole.path(), 4);
    append(&mut journal, 20, 10, 0);
    drop(journal);
    let paths = segments(whole.path());
    let first = first_of(&paths[1]);
    let (position, _) = find_frame(&paths[1], first + 5);
    flip(&paths[1], position + 20, 1);

    let mut refused_for = BTreeSet::new();
    for failing_sync in 1.. {
        let directory = tempfile::tempdir().unwrap();
        copy(whole.path(), directory.path());
        let disk = Arc::new(RefusingDisk::default());
        disk.failing_sync.store(failing_sync, Ordering::SeqCst);
        let mut options = on(directory.path(), &disk, Flush::Mapped);
        options.environment = JournalEnvironment { boot_id: boot(2).boot_id, ..options.environment };
        let is_open = match Journal::open(options) {
            Ok(_) => true,
            Err(JournalError::SyncFailed { segment, .. }) => {
                refused_for.insert(segment.file_name().unwrap().to_owned());
                false
            }
            Err(_) => false,
        };
        let (_journal, report) = open(directory.path(), 2).unwrap();
        assert_eq!(report.last_sequence, first + 4, "sync {failing_sync} failed");
        if is_open {
            break;
        }
    }
    let expected: BTreeSet<_> = paths[..2].iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(refused_for, expected);
}

#[test]
fn synced_record_is_vouched_for() {
    for is_same_boot in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(directory.path(), 1).unwrap();
        append(&mut journal, 10, 10, 0);
        journal.sync().unwrap();
        journal.append_record(b"vote").unwrap();
        journal.commit().unwrap();
        if is_same_boot {
            journal.sync().unwrap();
        }
        drop(journal);
        drop(open(directory.path(), if is_same_boot { 1 } else { 2 }).unwrap());
        let path = segments(directory.path()).remove(0);
        let (position, ..) = find_records(&path).pop().unwrap();
        flip(&path, position + 64, 1);
        let refused = open(directory.path(), 3).unwrap_err();
        assert!(matches!(&refused, JournalError::Corrupt { position: found, .. } if *found == position), "{refused}");
    }
}

#[test]
fn start_updates_the_history() {
    let directory = tempfile::tempdir().unwrap();
    let history = directory.path().join(d::HISTORY_NAME);
    drop(written(directory.path(), 2));
    let older = std::fs::read(&history).unwrap();
    drop(written(directory.path(), 2));
    // Simulates a crash between a segment's rename and its entry in the history.
    std::fs::write(&history, older).unwrap();
    drop(open(directory.path(), 1).unwrap());
    let last = inspect::info_in(directory.path(), boot(1)).unwrap().segments.pop().unwrap();
    assert!(last.number > 2);
    std::fs::remove_file(last.path).unwrap();
    let refused = open(directory.path(), 1).unwrap_err();
    assert!(matches!(refused, JournalError::NewestMissing { .. }), "{refused}");
}

#[test]
fn start_finds_unsynced_segments() {
    for with_records in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(directory.path(), 1).unwrap();
        // A record in a completely synced segment needs no sync.
        journal.append_record(b"first").unwrap();
        while !begun(&journal, 2) {
            append(&mut journal, 1, 1, 0);
        }
        if with_records {
            append(&mut journal, 10, 1, 0);
            journal.sync().unwrap();
            while !begun(&journal, 3) {
                journal.append_record(&[7; 500]).unwrap();
            }
        }
        while !begun(&journal, 3) {
            // The last frame of the second segment is the last synced one.
            journal.sync().unwrap();
            append(&mut journal, 1, 1, 0);
        }
        while !begun(&journal, 4) {
            append(&mut journal, 1, 1, 0);
        }
        work_off(&journal);
        let synced = journal.synced_sequence();
        assert_eq!(synced + 1, first_of(&segments(directory.path())[2]));
        drop(journal);

        let disk = Arc::new(RefusingDisk::default());
        let (mut journal, _) = Journal::open(on(directory.path(), &disk, Flush::Mapped)).unwrap();
        assert_eq!(journal.synced_sequence(), synced);
        let before = disk.syncs.load(Ordering::SeqCst);
        journal.sync().unwrap();
        let syncs = disk.syncs.load(Ordering::SeqCst) - before;
        assert_eq!(syncs, if with_records { 3 } else { 2 }, "the third, the newest, and a second with records");
    }
}

#[test]
fn frame_limit_can_be_raised() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(directory.path(), 1).unwrap();
    append(&mut journal, 10, 10, 0);
    drop(journal);
    let longer = JournalOptions { frame_length_max: 2 * FRAME_LENGTH_MAX, ..options(directory.path()) };
    let (mut journal, _) = Journal::open(longer).unwrap();
    append_until(&mut journal, FRAME_LENGTH_MAX + 500, |journal| journal.last_sequence() == 12);
    drop(journal);
    let report = inspect::verify_in(directory.path(), boot(1)).unwrap();
    assert!(report.verdict() == VerifyVerdict::Whole && report.last_sequence == 12, "{:?}", report.problems);
    assert_eq!(report.info.frame_length_max as usize, 2 * FRAME_LENGTH_MAX);
    // A lower limit applies to new frames only.
    assert_eq!(open(directory.path(), 1).unwrap().1.last_sequence, 12);
}

#[test]
fn unnamed_segment_gets_its_name() {
    for boot_number in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = written(directory.path(), 3);
        journal.sync().unwrap();
        let last = journal.last_sequence();
        drop(journal);
        let paths = segments(directory.path());
        for (number, path) in paths.iter().enumerate().skip(1) {
            std::fs::rename(path, directory.path().join(d::prepared_name(number as u64 + 1))).unwrap();
        }
        let (_journal, report) = open(directory.path(), boot_number).unwrap();
        assert_eq!((report.last_sequence, report.segments), (last, 3));
        assert_eq!(segments(directory.path()), paths);
    }
}

#[test]
fn start_adds_missing_times() {
    let directory = tempfile::tempdir().unwrap();
    drop(written(directory.path(), 3));
    let paths = segments(directory.path());
    for path in &paths {
        overwrite(path, d::TIMES_MARK_OFFSET as u64, &[0; 64]);
    }
    drop(open(directory.path(), 1).unwrap());
    let behind = |path: &Path| timestamp_ns(first_of(path) - 1, 0);
    let (second, third) = (behind(&paths[1]), behind(&paths[2]));
    let noted: Vec<_> = paths.iter().map(|path| mark_of(path, d::TIMES_MARK_OFFSET)).collect();
    assert_eq!(noted, [(0, second), (second, third), (third, 0)]);
    drop(open(directory.path(), 1).unwrap());
    assert_eq!(noted, paths.iter().map(|path| mark_of(path, d::TIMES_MARK_OFFSET)).collect::<Vec<_>>());
}

#[test]
fn start_clears_failed_marks() {
    let directory = tempfile::tempdir().unwrap();
    drop(written(directory.path(), 3));
    let paths = segments(directory.path());
    for path in &paths[1..] {
        set_mark(path, d::FAILED_MARK_OFFSET, 1, 0);
    }
    let (position, _) = find_frame(&paths[1], first_of(&paths[1]) + 5);
    flip(&paths[1], position + 20, 1);
    let (_journal, report) = open(directory.path(), 2).unwrap();
    assert_eq!(report.last_sequence, first_of(&paths[1]) + 4);
    assert_eq!(mark_of(&paths[1], d::FAILED_MARK_OFFSET).0, 0);
    let info = inspect::info_in(directory.path(), boot(2)).unwrap();
    assert!(info.segments.len() == 2 && info.segments.iter().all(|info| !info.sync_failed));
}
