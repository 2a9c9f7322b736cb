//! Boundary cases of decision 7, which depend on one frame, one byte or one boot.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::support::*;
use gapless_journal::descriptor as d;
use gapless_journal::{FrameFault, Journal, JournalError, RecoveryCheck, RecoveryReport, inspect};
use gapless_testkit::folder::copy;
use std::path::{Path, PathBuf};

/// Large frames leave more of a segment unused than small ones.
const LARGE: usize = 1900;
const SMALL: usize = 8;

fn begun(journal: &Journal, count: u64) -> bool {
    journal.segments_begun() >= count
}

fn open(directory: &Path, boot_number: u128, check: RecoveryCheck) -> Result<RecoveryReport, JournalError> {
    let mut options = options(directory);
    (options.environment, options.check) = (boot(boot_number), check);
    Journal::open(options).map(|(_journal, report)| report)
}

fn written(directory: &Path, count: u64) -> (Journal, Vec<PathBuf>) {
    let (mut journal, _) = Journal::open(options(directory)).unwrap();
    append_until(&mut journal, LARGE, |journal| begun(journal, count));
    work_off(&journal);
    (journal, segments(directory))
}

fn unseal(segment: &Path) {
    let (position, last_sequence) = mark_of(segment, d::JOURNALED_MARK_OFFSET);
    assert_eq!(position & d::SEALED_BIT, d::SEALED_BIT);
    set_mark(segment, d::JOURNALED_MARK_OFFSET, position & !d::SEALED_BIT, last_sequence);
}

fn without_the_second(directory: &Path, is_synced: bool) -> (Vec<PathBuf>, u64, u64) {
    let (mut journal, paths) = written(directory, 3);
    if is_synced {
        assert_eq!(journal.sync().unwrap(), first_of(&paths[2]));
    }
    drop(journal);
    let (second, third) = (first_of(&paths[1]), first_of(&paths[2]));
    std::fs::remove_file(&paths[1]).unwrap();
    std::fs::rename(&paths[2], directory.join(d::prepared_name(3))).unwrap();
    (paths, second, third)
}

#[test]
fn unsynced_segment_may_be_lost() {
    let directory = tempfile::tempdir().unwrap();
    let (paths, second, _) = without_the_second(directory.path(), false);
    let report = open(directory.path(), 2, RecoveryCheck::Tail).unwrap();
    assert_eq!(report.last_sequence, second - 1);
    let cut = report.removed_tail.unwrap();
    assert_eq!((cut.segment, cut.sequence, cut.frames), (paths[0].clone(), second, 1));
    assert_holds_large(directory.path(), second - 1);
}

fn assert_holds_large(directory: &Path, last_sequence: u64) {
    let frames = read_all(directory, boot(2), 1).unwrap();
    assert_eq!(
        frames.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(),
        (1..=last_sequence).collect::<Vec<_>>()
    );
}

#[track_caller]
fn assert_gap(error: &JournalError, first: u64, last: u64) {
    assert!(
        matches!(error, JournalError::Gap { missing_from, missing_to, .. } if (*missing_from, *missing_to) == (first, last)),
        "{error}"
    );
}

#[test]
fn gap_before_synced_segment_fails() {
    let directory = tempfile::tempdir().unwrap();
    // The only frame of the third segment is the last synced one.
    let (_, second, third) = without_the_second(directory.path(), true);
    for boot_number in [1, 2] {
        assert_gap(&open(directory.path(), boot_number, RecoveryCheck::Tail).unwrap_err(), second, third - 1);
    }
}

#[test]
fn gap_before_empty_segment_fails() {
    let directory = tempfile::tempdir().unwrap();
    let (paths, second, third) = without_the_second(directory.path(), false);
    let newest = directory.path().join(d::prepared_name(3));
    set_mark(&newest, d::JOURNALED_MARK_OFFSET, frames_offset(&paths[0]), third - 1);
    assert_gap(&open(directory.path(), 1, RecoveryCheck::Tail).unwrap_err(), second, third - 1);
}

#[test]
fn missing_successor_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, paths) = written(directory.path(), 2);
    drop(journal);
    let missing = first_of(&paths[1]);
    std::fs::remove_file(&paths[1]).unwrap();
    std::fs::remove_file(directory.path().join(d::HISTORY_NAME)).unwrap();
    let refused = open(directory.path(), 1, RecoveryCheck::Tail).unwrap_err();
    assert!(
        matches!(&refused, JournalError::SuccessorMissing { segment, sequence } if *segment == paths[0] && *sequence == missing),
        "{refused}"
    );
}

#[test]
fn shorter_segment_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, paths) = written(directory.path(), 2);
    let info = || inspect::info_in(directory.path(), boot(1)).unwrap().segments;
    let older = info()[0].used_bytes;
    append_until(&mut journal, SMALL, |_| info()[1].used_bytes > older);
    journal.sync().unwrap();
    let last = journal.last_sequence();
    drop(journal);
    assert_eq!(segments(directory.path()), paths);
    for boot_number in [1, 2] {
        let report = open(directory.path(), boot_number, RecoveryCheck::All).unwrap();
        assert_eq!((report.last_sequence, report.frames_scanned, report.removed_tail.is_none()), (last, last, true));
    }
}

#[test]
fn synced_segment_is_not_reread() {
    for with_records in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
        if with_records {
            journal.append_record(b"one").unwrap();
            append_until(&mut journal, LARGE, |journal| begun(journal, 3));
            journal.sync().unwrap();
        } else {
            append_until(&mut journal, LARGE, |journal| {
                let is_enough = begun(journal, 3);
                if !is_enough {
                    journal.sync().unwrap();
                }
                is_enough
            });
        }
        work_off(&journal);
        drop(journal);
        let report = open(directory.path(), 2, RecoveryCheck::Tail).unwrap();
        assert_eq!(report.frames_scanned, 1, "{report:?}");
    }
}

#[test]
fn unsynced_records_may_be_lost() {
    for has_synced_record in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
        append(&mut journal, 10, 10, 0);
        if has_synced_record {
            journal.append_record(b"synced").unwrap();
        }
        journal.sync().unwrap();
        while !begun(&journal, 2) {
            journal.append_record(&[7; 500]).unwrap();
        }
        append(&mut journal, 10, 10, 0);
        work_off(&journal);
        drop(journal);
        let path = segments(directory.path()).remove(0);
        let (position, ..) = find_records(&path).pop().unwrap();
        flip(&path, position + 64, 1);
        let report = open(directory.path(), 2, RecoveryCheck::Tail).unwrap();
        assert_eq!((report.last_sequence, report.removed_tail.unwrap().position), (10, position));
    }
}

#[test]
fn unsealed_end_must_be_zeros() {
    let opened = |is_sealed: bool, has_rubbish: bool, boot_number| {
        let directory = tempfile::tempdir().unwrap();
        let (journal, paths) = written(directory.path(), 2);
        drop(journal);
        let end = end_of_frames(&paths[0]);
        assert!(end + 16 <= SEGMENT_LENGTH);
        if !is_sealed {
            unseal(&paths[0]);
        }
        if has_rubbish {
            overwrite(&paths[0], end, &[0xee; 16]);
        }
        let opened = open(directory.path(), boot_number, RecoveryCheck::All);
        (opened.map(|report| report.last_sequence), end, first_of(&paths[1]))
    };
    for (is_sealed, has_rubbish, boot_number) in
        [(true, true, 1), (false, false, 1), (false, true, 2), (true, true, 2), (true, false, 1)]
    {
        let (opened, _, last) = opened(is_sealed, has_rubbish, boot_number);
        assert_eq!(opened.unwrap(), last, "{is_sealed} {has_rubbish} {boot_number}");
    }
    let (refused, end, next) = opened(false, true, 1);
    let refused = refused.unwrap_err();
    assert!(
        matches!(&refused, JournalError::Corrupt { position, sequence, .. } if (*position, *sequence) == (end, next)),
        "{refused}"
    );
}

#[test]
fn overlapping_segments_fail() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut journal, _) = Journal::open(options(one.path())).unwrap();
    append_until(&mut journal, SMALL, |journal| begun(journal, 2));
    work_off(&journal);
    drop(journal);
    copy(one.path(), other.path());
    let (mut journal, _) = Journal::open(options(other.path())).unwrap();
    journal.truncate_after(5).unwrap();
    let before = journal.segments_begun();
    append_until(&mut journal, LARGE, |journal| begun(journal, before + 1));
    work_off(&journal);
    drop(journal);
    let first = &segments(other.path())[0];
    let second = first_of(&segments(other.path())[1]);
    std::fs::copy(&segments(one.path())[0], first).unwrap();
    unseal(first);
    let refused = open(other.path(), 1, RecoveryCheck::Tail).unwrap_err();
    assert!(matches!(&refused, JournalError::Duplicate { sequence, .. } if *sequence == second), "{refused}");
}

#[test]
fn rebuilt_index_is_equal() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.segment_length_bytes = 1 << 20;
    let (mut journal, _) = Journal::open(options.clone()).unwrap();
    for number in 0..400 {
        append_until(&mut journal, LARGE, |journal| journal.last_sequence() > number);
        journal.append_record(&record_payload(number)).unwrap();
    }
    journal.commit().unwrap();
    drop(journal);
    let path = segments(directory.path()).remove(0);
    let length = d::index_entries(1 << 20) * d::INDEX_ENTRY_LENGTH;
    let index = |path: &Path| std::fs::read(path).unwrap()[d::INDEX_OFFSET..d::INDEX_OFFSET + length].to_vec();
    let written = index(&path);
    assert!(written.chunks_exact(16).filter(|entry| entry.iter().any(|&byte| byte != 0)).count() > 5);
    for rubbish in [0, 0x77] {
        overwrite(&path, d::INDEX_OFFSET as u64, &vec![rubbish; written.len()]);
        Journal::open(options.clone()).unwrap();
        assert!(index(&path) == written);
    }
}

#[test]
fn record_after_mark_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 10, 10, 0);
    journal.append_record(b"not committed").unwrap();
    drop(journal);
    let report = open(directory.path(), 1, RecoveryCheck::Tail).unwrap();
    assert_eq!((report.last_sequence, report.removed_tail.is_none()), (10, true));
    assert_eq!(read_records(directory.path(), boot(1)).unwrap(), [record(10, false, b"not committed".to_vec())]);
    assert!(inspect::info_in(directory.path(), boot(1)).unwrap().segments[0].has_records);
}

#[test]
fn report_has_the_removed_amount() {
    for is_zeroed in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, paths) = written(directory.path(), 4);
        append_until(&mut journal, LARGE, |journal| journal.last_sequence() % 10 == 0);
        let last = journal.last_sequence();
        drop(journal);
        let newer: u64 =
            inspect::info_in(directory.path(), boot(1)).unwrap().segments[2..].iter().map(|info| info.used_bytes).sum();
        let (first, end) = (first_of(&paths[1]), end_of_frames(&paths[1]));
        let (position, length) = find_frame(&paths[1], first + 5);
        let (bytes, frames) = if is_zeroed {
            // Simulates a power failure that has lost the last pages.
            overwrite(&paths[1], position, &vec![0; (end - position) as usize]);
            (newer, last + 1 - first_of(&paths[2]))
        } else {
            flip(&paths[1], position + 100, 1);
            let whole = std::fs::read(&paths[1]).unwrap();
            let nonzero_end = whole.iter().rposition(|&byte| byte != 0).unwrap() as u64 + 1;
            assert!(nonzero_end > position + length);
            (newer + nonzero_end - position, last - (first + 5))
        };
        let report = open(directory.path(), 2, RecoveryCheck::Tail).unwrap();
        let cut = report.removed_tail.unwrap();
        assert_eq!((report.last_sequence, cut.position, cut.frames, cut.bytes), (first + 4, position, frames, bytes));
    }
}

#[test]
fn garbage_after_zeros_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, paths) = written(directory.path(), 1);
    drop(journal);
    let end = end_of_frames(&paths[0]);
    overwrite(&paths[0], end + 64, &[0xee; 8]);
    let cut = open(directory.path(), 1, RecoveryCheck::Tail).unwrap().removed_tail.unwrap();
    assert_eq!((cut.position, cut.bytes, cut.reason), (end, 72, FrameFault::Empty));
    assert!(std::fs::read(&paths[0]).unwrap()[end as usize..].iter().all(|&byte| byte == 0));
}

#[test]
fn shortened_file_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, paths) = written(directory.path(), 1);
    append(&mut journal, 10, 10, 0);
    drop(journal);
    let end = end_of_frames(&paths[0]);
    std::fs::File::options().write(true).open(&paths[0]).unwrap().set_len(end).unwrap();
    let cut = open(directory.path(), 1, RecoveryCheck::Tail).unwrap().removed_tail.unwrap();
    assert_eq!((cut.position, cut.bytes, cut.reason), (end, 0, FrameFault::EndOfFile { file_bytes: end }));
    assert_eq!(std::fs::metadata(&paths[0]).unwrap().len(), SEGMENT_LENGTH);
}

#[test]
fn short_newest_file_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, paths) = written(directory.path(), 2);
    drop(journal);
    let last = first_of(&paths[1]) - 1;
    let frames_offset = frames_offset(&paths[1]);
    for file_bytes in [d::INDEX_OFFSET as u64 + 8, frames_offset - 8, frames_offset] {
        std::fs::File::options().write(true).open(&paths[1]).unwrap().set_len(file_bytes).unwrap();
        let report = open(directory.path(), 2, RecoveryCheck::Tail).unwrap();
        let cut = report.removed_tail.unwrap();
        assert_eq!((report.last_sequence, cut.position, cut.bytes), (last, frames_offset, 0));
        assert_eq!(cut.reason, FrameFault::EndOfFile { file_bytes });
        assert_eq!(std::fs::metadata(&paths[1]).unwrap().len(), SEGMENT_LENGTH);
        assert!(open(directory.path(), 2, RecoveryCheck::All).unwrap().removed_tail.is_none());
    }
}

#[test]
fn short_sealed_segment_fails() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, paths) = written(directory.path(), 2);
    drop(journal);
    let whole = std::fs::read(&paths[0]).unwrap();
    let frames_offset = frames_offset(&paths[0]);
    let (fifth, _) = find_frame(&paths[0], 5);
    let end = end_of_frames(&paths[0]);
    for (length, missing) in [
        (d::INDEX_OFFSET as u64 + 8, 1),
        (frames_offset - 8, 1),
        (frames_offset, 1),
        (fifth + 8, 5),
        (end - 8, first_of(&paths[1]) - 1),
    ] {
        std::fs::File::options().write(true).open(&paths[0]).unwrap().set_len(length).unwrap();
        let refused = open(directory.path(), 1, RecoveryCheck::Tail).unwrap_err();
        assert!(
            matches!(&refused, JournalError::Corrupt { segment, sequence, reason: FrameFault::EndOfFile { file_bytes }, .. }
                if *segment == paths[0] && *sequence == missing && *file_bytes == length),
            "{refused}"
        );
        std::fs::write(&paths[0], &whole).unwrap();
    }
}

#[test]
fn old_mark_slot_drops_no_frames() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, paths) = written(directory.path(), 3);
    drop(journal);
    let last = first_of(&paths[2]);
    set_mark(&paths[2], d::JOURNALED_MARK_OFFSET, frames_offset(&paths[2]), 0);
    overwrite(&paths[2], d::JOURNALED_MARK_OFFSET as u64 + 32, &[0xee; 32]);
    let whole = tempfile::tempdir().unwrap();
    copy(directory.path(), whole.path());
    let report = open(whole.path(), 1, RecoveryCheck::Tail).unwrap();
    assert_eq!((report.last_sequence, report.repaired_marks.len(), report.removed_tail.is_none()), (last, 1, true));

    let first = first_of(&paths[1]);
    let (position, _) = find_frame(&paths[1], first + 5);
    flip(&paths[1], position + 100, 1);
    let refused = open(directory.path(), 1, RecoveryCheck::All).unwrap_err();
    assert!(
        matches!(&refused, JournalError::Corrupt { segment, sequence, .. } if *segment == paths[1] && *sequence == first + 5),
        "{refused}"
    );
}
