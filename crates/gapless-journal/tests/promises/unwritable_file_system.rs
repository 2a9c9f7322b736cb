//! A full disk fails when a segment is allocated, never by SIGBUS, and loses no committed frame. Needs the right to
//! mount a tmpfs.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::support::*;
use gapless_journal::{Flush, Journal, JournalError};
use gapless_testkit::folder::SmallDisk;

#[test]
fn open_fails_on_a_full_disk() {
    let Some(disk) = SmallDisk::new(40) else { return };
    let refused = Journal::open(options(&disk.path.join("journal"))).unwrap_err();
    assert!(matches!(refused, JournalError::NoSpace { needed_bytes: SEGMENT_LENGTH, .. }), "{refused}");
    assert!(refused.to_string().contains("no space"), "{refused}");
    disk.remount("size=200k");
    let (mut journal, _) = Journal::open(options(&disk.path.join("journal"))).unwrap();
    append(&mut journal, 10, 1, 0);
}

#[test]
fn full_disk_loses_nothing() {
    for flush in [Flush::Mapped, Flush::Write] {
        for has_helper in [false, true] {
            let Some(disk) = SmallDisk::new(240) else { return };
            let mut options = options(&disk.path.join("journal"));
            (options.flush, options.marks) = (flush, flush);
            let (mut journal, _) = Journal::open(options.clone()).unwrap();
            let refused = loop {
                let first = journal.last_sequence() + 1;
                if has_helper {
                    let mut preparer = journal.preparer();
                    while matches!(preparer.run_once(), Ok(true)) {}
                }
                match journal.append(&batch(first, 10, 0), first, first + 9) {
                    Ok(()) => assert_eq!(journal.commit().unwrap(), first + 9),
                    Err(error) => break error,
                }
            };
            assert!(matches!(refused, JournalError::NoSpace { .. }), "{refused}");
            let last = journal.last_sequence();
            assert!(last > 500, "three segments fit: {last}");
            assert_holds(&disk.path.join("journal"), boot(1), 1, last, 0);
            disk.remount("size=400k");
            append(&mut journal, 100, 10, 0);
            drop(journal);
            let (_journal, report) = Journal::open(options).unwrap();
            assert_eq!((report.last_sequence, report.removed_tail.is_none()), (last + 100, true));
            assert_holds(&disk.path.join("journal"), boot(1), 1, last + 100, 0);
        }
    }
}

#[test]
fn full_disk_record_is_retryable() {
    for flush in [Flush::Mapped, Flush::Write] {
        let Some(disk) = SmallDisk::new(240) else { return };
        let mut options = options(&disk.path.join("journal"));
        (options.flush, options.marks) = (flush, flush);
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        let mut expected = Vec::new();
        let mut put = |journal: &mut Journal, number: u64| {
            journal.append_record(&record_payload(number))?;
            expected.push(record(journal.last_sequence(), false, record_payload(number)));
            Ok::<(), JournalError>(())
        };
        append(&mut journal, 1, 1, 0);
        let mut number = 0;
        let refused = loop {
            if let Err(error) = put(&mut journal, number) {
                break error;
            }
            number += 1;
            if number % 50 == 0 {
                append(&mut journal, 1, 1, 0);
            }
        };
        assert!(matches!(refused, JournalError::NoSpace { .. }), "{refused}");
        assert!(number > 500, "three segments fit: {number}");
        journal.commit().unwrap();
        assert!(matches!(put(&mut journal, number), Err(JournalError::NoSpace { .. })), "a retry fails too");
        disk.remount("size=400k");
        for number in number..number + 20 {
            put(&mut journal, number).unwrap();
        }
        append(&mut journal, 10, 10, 0);
        let last = journal.last_sequence();
        drop(journal);
        let (_journal, report) = Journal::open(options).unwrap();
        assert_eq!((report.last_sequence, report.removed_tail.is_none()), (last, true));
        assert_eq!(read_records(&disk.path.join("journal"), boot(1)).unwrap(), expected);
        assert_holds(&disk.path.join("journal"), boot(1), 1, last, 0);
    }
}

#[test]
fn read_only_disk_serves_readers() {
    let Some(disk) = SmallDisk::new(400) else { return };
    let (mut journal, _) = Journal::open(options(&disk.path.join("journal"))).unwrap();
    append(&mut journal, 100, 10, 0);
    journal.close().unwrap();
    disk.remount("ro");
    let refused = Journal::open(options(&disk.path.join("journal"))).unwrap_err();
    assert!(matches!(refused, JournalError::ReadOnly { .. }), "{refused}");
    assert!(refused.to_string().contains("read-only"), "{refused}");
    assert_holds(&disk.path.join("journal"), boot(1), 1, 100, 0);
    let elsewhere = Journal::open(options(&disk.path.join("new"))).unwrap_err();
    assert!(matches!(elsewhere, JournalError::ReadOnly { .. }), "{elsewhere}");
    disk.remount("rw");
    let (journal, _) = Journal::open(options(&disk.path.join("journal"))).unwrap();
    assert_eq!(journal.last_sequence(), 100);
}
