#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::support::*;
use gapless_journal::{DiskOperation, Flush, Journal, JournalError, VerifyVerdict, inspect};
use std::sync::Arc;

fn begun(journal: &Journal, count: u64) -> bool {
    journal.segments_begun() >= count
}

fn four_segments(journal: &mut Journal) {
    while !begun(journal, 4) {
        append(journal, 1, 1, 0);
    }
    work_off(journal);
}

#[test]
fn truncates_at_boundaries() {
    for number in 1..4 {
        for before in [0, 1] {
            let directory = tempfile::tempdir().unwrap();
            let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
            four_segments(&mut journal);
            let last = first_of(&segments(directory.path())[number]) - before;
            journal.truncate_after(last).unwrap();
            assert_eq!(journal.last_sequence(), last);
            assert_holds(directory.path(), boot(1), 1, last, 0);
            drop(journal);
            let (mut journal, report) = Journal::open(options(directory.path())).unwrap();
            assert_eq!((report.last_sequence, report.removed_tail.is_none()), (last, true));
            append(&mut journal, 300, 10, 0);
            assert_holds(directory.path(), boot(1), 1, last + 300, 0);
        }
    }
}

#[test]
fn header_lists_remaining_records() {
    let checkpoint_behind = |cut: u64, reopens: bool| {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
        journal.append_record(b"before").unwrap();
        append(&mut journal, 1, 1, 0);
        for name in [b"one", b"two", b"six"] {
            journal.append_checkpoint(name).unwrap();
            append(&mut journal, 10, 1, 0);
        }
        journal.append_checkpoint(b"end").unwrap();
        append(&mut journal, 1, 1, 0);
        let path = segments(directory.path()).remove(0);
        let places = find_records(&path);
        journal.truncate_after(cut).unwrap();
        if reopens {
            drop(journal);
            (journal, _) = Journal::open(options(directory.path())).unwrap();
        }
        let info = inspect::info_in(directory.path(), boot(1)).unwrap();
        let position = info.segments[0].checkpoint_position;
        let name = position.map(|position| {
            let found = places.iter().find(|(place, ..)| *place == position).expect("the mark points to a record");
            String::from_utf8(found.2.clone()).unwrap()
        });
        drop(journal);
        (info.segments[0].has_records, name)
    };
    for reopens in [false, true] {
        for (cut, has_records, name) in [
            (31, true, Some("six")),
            (22, true, Some("six")),
            (21, true, Some("two")),
            (12, true, Some("two")),
            (11, true, Some("one")),
            (2, true, Some("one")),
            (1, true, None),
            (0, false, None),
        ] {
            assert_eq!(checkpoint_behind(cut, reopens), (has_records, name.map(str::to_owned)), "after {cut}");
        }
    }
}

#[test]
fn truncation_is_synced() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(RefusingDisk::default());
    let (mut journal, _) = Journal::open(on(directory.path(), &disk, Flush::Mapped)).unwrap();
    append(&mut journal, 100, 10, 0);
    disk.refuse(Some(DiskOperation::Sync));
    let refused = journal.truncate_after(50).unwrap_err();
    assert!(
        matches!(&refused, JournalError::SyncFailed { segment, .. } if *segment == segments(directory.path())[0]),
        "{refused}"
    );
}

#[test]
fn kept_frames_get_synced() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(RefusingDisk::default());
    let (mut journal, _) = Journal::open(on(directory.path(), &disk, Flush::Mapped)).unwrap();
    four_segments(&mut journal);
    let paths = segments(directory.path());
    journal.truncate_after(first_of(&paths[2]) + 5).unwrap();
    disk.refuse(Some(DiskOperation::Sync));
    let refused = journal.sync().unwrap_err();
    assert!(matches!(&refused, JournalError::SyncFailed { segment, .. } if *segment == paths[0]), "{refused}");
}

#[test]
fn interrupted_truncation_opens() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    four_segments(&mut journal);
    let paths = segments(directory.path());
    let last = first_of(&paths[3]) - 1;
    let aside = directory.path().join("aside");
    std::fs::rename(&paths[1], &aside).unwrap();
    journal.truncate_after(5).unwrap_err();
    drop(journal);
    std::fs::rename(&aside, &paths[1]).unwrap();
    assert_eq!(segments(directory.path()), paths[..3], "the newest segment is removed first");
    let (journal, report) = Journal::open(options(directory.path())).unwrap();
    assert_eq!((report.last_sequence, journal.last_sequence()), (last, last));
    assert_holds(directory.path(), boot(1), 1, last, 0);
}

#[test]
fn truncation_updates_times_mark() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    four_segments(&mut journal);
    journal.truncate_after(10).unwrap();
    let before = journal.segments_begun();
    while !begun(&journal, before + 2) {
        append(&mut journal, 1, 1, 1);
    }
    work_off(&journal);
    drop(journal);
    let report = inspect::verify_in(directory.path(), boot(1)).unwrap();
    assert!(report.verdict() == VerifyVerdict::Whole, "{:?}", report.problems);
    Journal::open(options(directory.path())).unwrap();
}
