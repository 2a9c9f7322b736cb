//! Consensus records are kept over restarts and rolls, skipped by every replay, truncated with the frames that they
//! follow, kept by retention, and on the device after a sync.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use std::path::Path;

use crate::support::*;
use gapless_journal::{
    ConsensusRecord, Flush, Journal, JournalError, JournalOptions, JournalReader, RecoveryCheck, descriptor as d,
    inspect,
};
use gapless_wire::HEADER_LENGTH;

const WAYS: [(Flush, Flush); 2] = [(Flush::Mapped, Flush::Mapped), (Flush::Write, Flush::Write)];

fn reopen(journal: Journal, options: &JournalOptions) -> Journal {
    drop(journal);
    let (journal, report) = Journal::open(options.clone()).unwrap();
    assert!(report.removed_tail.is_none(), "{:?}", report.removed_tail);
    journal
}

#[test]
fn records_survive_restarts() {
    for (flush, marks) in WAYS {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        (options.flush, options.marks) = (flush, marks);
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        let mut expected = Vec::new();
        for number in 0..40 {
            journal.append_record(&record_payload(number)).unwrap();
            expected.push(record(journal.last_sequence(), false, record_payload(number)));
            if number % 3 == 0 {
                assert_eq!(journal.commit().unwrap(), journal.last_sequence());
                assert_eq!(read_records(directory.path(), boot(1)).unwrap(), expected);
            }
            append(&mut journal, number % 4, 2, 0);
            if number % 10 == 9 {
                journal.commit().unwrap();
                journal = reopen(journal, &options);
            }
        }
        assert_eq!(read_records(directory.path(), boot(1)).unwrap(), expected);
        assert_holds(directory.path(), boot(1), 1, journal.last_sequence(), 0);
        let last = journal.last_sequence();
        journal.close().unwrap();
        assert_eq!(read_records(directory.path(), boot(2)).unwrap(), expected, "on any boot");
        assert_holds(directory.path(), boot(2), 1, last, 0);
    }
}

#[test]
fn uncommitted_record_is_hidden() {
    for (flush, marks) in WAYS {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        (options.flush, options.marks) = (flush, marks);
        let (mut journal, _) = Journal::open(options).unwrap();
        append(&mut journal, 3, 3, 0);
        journal.append_record(b"not yet").unwrap();
        assert!(read_records(directory.path(), boot(1)).unwrap().is_empty());
        journal.commit().unwrap();
        assert_eq!(read_records(directory.path(), boot(1)).unwrap(), [record(3, false, b"not yet".to_vec())]);
    }
}

#[test]
fn records_begin_and_end_segments() {
    for (flush, marks) in WAYS {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        (options.flush, options.marks) = (flush, marks);
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        assert_eq!(journal.segments_begun(), 1, "the first one is new");
        let (mut seen, mut expected) = (0, Vec::new());
        for number in 0..2500 {
            if journal.segments_begun() != seen {
                seen = journal.segments_begun();
                journal.append_checkpoint(format!("checkpoint {number}").as_bytes()).unwrap();
                expected.clear();
                expected.push(record(journal.last_sequence(), true, format!("checkpoint {number}").into_bytes()));
            }
            if number % 3 != 0 {
                append(&mut journal, 1, 1, 0);
            } else if journal.segments_begun() == seen {
                journal.append_record(&record_payload(number)).unwrap();
                expected.push(record(journal.last_sequence(), false, record_payload(number)));
            }
        }
        journal.commit().unwrap();
        let paths = segments(directory.path());
        assert!(paths.len() > 4 && journal.segments_begun() == seen);
        assert!(paths.iter().any(|path| find_records(path).first().unwrap().0 == d::frames_offset(SEGMENT_LENGTH)));
        let ends_in_record = |path: &Path| {
            find_records(path).last().is_some_and(|(position, length, _)| position + length == end_of_all(path))
        };
        assert!(paths.iter().any(|path| ends_in_record(path)), "a record is the last in a segment");
        let last = journal.last_sequence();
        for _ in 0..2 {
            assert_eq!(read_records(directory.path(), boot(1)).unwrap(), expected);
            assert_holds(directory.path(), boot(1), 1, last, 0);
            for from in (1..=last).step_by(97) {
                assert_holds(directory.path(), boot(1), from, last, 0);
            }
            journal = reopen(journal, &options);
            assert_eq!(journal.segments_begun(), 0);
        }
        let paths = segments(directory.path());
        let report = inspect::verify_in(directory.path(), boot(1)).unwrap();
        assert!(report.problems.is_empty() && report.bad_index_entries == 0, "{report:?}");
        assert_eq!((report.frames, report.last_sequence), (last, last));
        assert_eq!(report.records as usize, paths.iter().map(|path| find_records(path).len()).sum::<usize>());
        let used: u64 = report.info.segments.iter().map(|segment| segment.used_bytes).sum();
        assert_eq!(report.frame_bytes + report.record_bytes, used);
        let (path, position) = report.newest_checkpoint.unwrap();
        let newest = report.info.segments.iter().find(|segment| segment.path == path).unwrap();
        assert_eq!(newest.checkpoint_position, Some(position));
        assert!(newest.to_string().contains(&format!("newest checkpoint at byte {position}")), "{newest}");
    }
}

fn end_of_all(path: &Path) -> u64 {
    let bytes = std::fs::read(path).unwrap();
    let mut position = d::frames_offset(SEGMENT_LENGTH) as usize;
    while let Ok(frame) = gapless_wire::Frame::parse_journaled(&bytes[position..]) {
        position += gapless_wire::aligned_length(frame.length());
    }
    position as u64
}

#[test]
fn opening_skips_older_segments() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let (mut journal, _) = Journal::open(options.clone()).unwrap();
    let mut seen = 0;
    while journal.segments_begun() < 6 {
        if journal.segments_begun() != seen {
            seen = journal.segments_begun();
            journal.append_checkpoint(&[1; 1000]).unwrap();
        }
        append(&mut journal, 1, 1, 0);
    }
    drop(journal);
    let (journal, report) = Journal::open(options).unwrap();
    assert_eq!(report.segments, 6);
    assert!(report.frames_scanned < report.last_sequence / 4, "{report:?}");
    drop(journal);
}

#[test]
fn replay_steps_back_over_records() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 5, 5, 0);
    journal.append_record(b"between").unwrap();
    append(&mut journal, 5, 5, 0);
    let mut replay = JournalReader::open_in(directory.path(), boot(1)).unwrap().replay(5).unwrap();
    let length = replay.next_frame().unwrap().unwrap().length();
    assert!(replay.has_next().unwrap(), "after the record");
    replay.step_back(length);
    for expected in 5..=10 {
        assert_eq!(replay.next_frame().unwrap().unwrap().sequence(), expected);
    }
    assert!(replay.next_frame().unwrap().is_none());
    let mut replay = JournalReader::open_in(directory.path(), boot(1)).unwrap().replay(1).unwrap();
    let mut frames = 0;
    while let Some(batch) = replay.next_batch().unwrap() {
        for frame in batch {
            frames += 1;
            assert_eq!(frame.sequence(), frames);
        }
    }
    assert_eq!(frames, 10);
}

#[test]
fn reader_survives_truncation() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 5, 5, 0);
    let mut replay = JournalReader::open_in(directory.path(), boot(1)).unwrap().replay(1).unwrap();
    for round in 0..20 {
        for number in 0..round {
            journal.append_record(&record_payload(number)).unwrap();
        }
        journal.commit().unwrap();
        while replay.next_frame().unwrap().is_some() {}
        journal.truncate_after(journal.last_sequence()).unwrap();
        journal.append_record(&record_payload(77 + round)).unwrap();
        append(&mut journal, 1, 1, 0);
        assert_eq!(replay.next_frame().unwrap().map(|frame| frame.sequence()), Some(journal.last_sequence()));
    }
}

#[test]
fn later_records_are_removed() {
    for (flush, marks) in WAYS {
        for reopens in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let mut options = options(directory.path());
            (options.flush, options.marks) = (flush, marks);
            let (mut journal, _) = Journal::open(options.clone()).unwrap();
            let is = |journal: &Journal, expected: &[(u64, bool, &[u8])]| {
                let expected: Vec<_> = expected.iter().map(|(s, c, p)| record(*s, *c, p.to_vec())).collect();
                assert_eq!(read_records(journal.directory(), boot(1)).unwrap(), expected);
            };
            journal.append_checkpoint(b"first").unwrap();
            append(&mut journal, 10, 10, 0);
            journal.append_record(b"behind 10").unwrap();
            append(&mut journal, 1, 1, 0);
            journal.append_checkpoint(b"behind 11").unwrap();
            journal.append_record(b"behind 11 too").unwrap();
            journal.commit().unwrap();
            is(&journal, &[(11, true, b"behind 11"), (11, false, b"behind 11 too")]);
            if reopens {
                journal = reopen(journal, &options);
            }
            journal.set_released(11);
            journal.truncate_after(11).unwrap();
            is(&journal, &[(0, true, b"first"), (10, false, b"behind 10")]);
            assert_eq!(journal.last_sequence(), 11);
            if reopens {
                journal = reopen(journal, &options);
            }
            journal.set_released(0);
            journal.truncate_after(10).unwrap();
            is(&journal, &[(0, true, b"first")]);
            if reopens {
                journal = reopen(journal, &options);
            }
            journal.append_record(b"again").unwrap();
            append(&mut journal, 5, 5, 3);
            is(&journal, &[(0, true, b"first"), (10, false, b"again")]);
            journal = reopen(journal, &options);
            assert_eq!(journal.last_sequence(), 15);
            journal.truncate_after(0).unwrap();
            is(&journal, &[]);
            journal = reopen(journal, &options);
            is(&journal, &[]);
            journal.append_record(b"anew").unwrap();
            journal.commit().unwrap();
            is(&journal, &[(0, false, b"anew")]);
        }
    }
}

#[test]
fn truncation_removes_record_segment() {
    for reopens in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let options = options(directory.path());
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        append(&mut journal, 10, 10, 0);
        while journal.segments_begun() < 2 {
            journal.append_record(&[7; 500]).unwrap();
        }
        journal.append_checkpoint(b"in the second").unwrap();
        journal.commit().unwrap();
        if reopens {
            journal = reopen(journal, &options);
        }
        work_off(&journal);
        assert_eq!(read_records(directory.path(), boot(1)).unwrap(), [record(10, true, b"in the second".to_vec())]);
        journal.truncate_after(10).unwrap();
        assert!(read_records(directory.path(), boot(1)).unwrap().is_empty());
        journal = reopen(journal, &options);
        append(&mut journal, 500, 10, 0);
        assert_holds(directory.path(), boot(1), 1, 510, 0);
        assert!(segments(directory.path()).len() > 1);
    }
}

#[test]
fn empty_truncation_is_no_op() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    journal.append_record(b"before").unwrap();
    append(&mut journal, 10, 10, 0);
    let before = std::fs::read(&segments(directory.path())[0]).unwrap();
    journal.truncate_after(10).unwrap();
    assert!(before == std::fs::read(&segments(directory.path())[0]).unwrap());
}

#[test]
fn newest_checkpoint_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.retention.bytes_max = Some(SEGMENT_LENGTH);
    let (mut journal, _) = Journal::open(options.clone()).unwrap();
    journal.append_record(b"no checkpoint yet").unwrap();
    append(&mut journal, 1000, 10, 0);
    journal.set_snapshot_sequence(u64::MAX / 4);
    work_off(&journal);
    assert_eq!(journal.first_sequence(), 1, "records without a checkpoint are all needed");
    journal.append_checkpoint(b"everything").unwrap();
    work_off(&journal);
    assert_eq!(journal.first_sequence(), 1, "the checkpoint is not committed");
    journal.commit().unwrap();
    let at = journal.last_sequence();
    append(&mut journal, 1000, 10, 0);
    for _ in 0..2 {
        journal.set_snapshot_sequence(u64::MAX / 4);
        work_off(&journal);
        let first = journal.first_sequence();
        assert!(first > 1 && first <= at + 1, "the segment with the checkpoint after {at} stays: {first}");
        assert_eq!(read_records(directory.path(), boot(1)).unwrap(), [record(at, true, b"everything".to_vec())]);
        journal = reopen(journal, &options);
    }
    journal.append_checkpoint(b"everything again").unwrap();
    journal.commit().unwrap();
    journal.set_snapshot_sequence(u64::MAX / 4);
    work_off(&journal);
    assert!(journal.first_sequence() > at + 1);
    let expected = [record(journal.last_sequence(), true, b"everything again".to_vec())];
    assert_eq!(read_records(directory.path(), boot(1)).unwrap(), expected);
    // Synced before the records that it replaces were deleted.
    drop(journal);
    let last_record = segments(directory.path()).iter().flat_map(|path| find_records(path)).next_back().unwrap();
    assert_eq!(last_record.2, b"everything again");
}

#[test]
fn retention_needs_safe_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.retention.bytes_max = Some(SEGMENT_LENGTH);
    let (mut journal, _) = Journal::open(options).unwrap();
    journal.append_checkpoint(b"the first").unwrap();
    append(&mut journal, 1000, 10, 0);
    journal.append_checkpoint(b"behind 1000").unwrap();
    journal.commit().unwrap();
    assert!(segments(directory.path()).len() > 3);
    journal.set_released(1000);
    journal.set_snapshot_sequence(1000);
    work_off(&journal);
    assert_eq!(journal.first_sequence(), 1);
    journal.truncate_after(1000).unwrap();
    assert_eq!(read_records(directory.path(), boot(1)).unwrap(), [record(0, true, b"the first".to_vec())]);
    journal.append_checkpoint(b"again").unwrap();
    append(&mut journal, 10, 10, 0);
    journal.set_released(1010);
    journal.set_snapshot_sequence(1010);
    work_off(&journal);
    assert!(journal.first_sequence() > 500);
    journal.truncate_after(1010).unwrap();
    assert_eq!(read_records(directory.path(), boot(1)).unwrap(), [record(1000, true, b"again".to_vec())]);
}

#[test]
fn sync_covers_trailing_records() {
    for (flush, marks) in WAYS {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        (options.flush, options.marks) = (flush, marks);
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        append(&mut journal, 10, 10, 0);
        assert_eq!(journal.sync().unwrap(), 10);
        journal.append_record(b"vote").unwrap();
        assert_eq!(journal.sync().unwrap(), 10);
        // On another boot only the synced mark is good, and it vouches for the record.
        drop(journal);
        let path = segments(directory.path()).remove(0);
        let (position, _, payload) = find_records(&path).pop().unwrap();
        assert_eq!(payload, b"vote");
        flip(&path, position + HEADER_LENGTH as u64, 1);
        options.environment = boot(2);
        for error in [Journal::open(options.clone()).unwrap_err(), read_records(directory.path(), boot(2)).unwrap_err()]
        {
            assert!(matches!(&error, JournalError::Corrupt { position: p, .. } if *p == position), "{error}");
        }
        let report = inspect::verify_in(directory.path(), boot(2)).unwrap();
        assert!(!report.problems.is_empty());
        flip(&path, position + HEADER_LENGTH as u64, 1);
        let (journal, _) = Journal::open(options).unwrap();
        assert_eq!(read_records(directory.path(), boot(2)).unwrap(), [record(10, false, b"vote".to_vec())]);
        drop(journal);
    }
}

#[test]
fn torn_record_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 10, 10, 0);
    journal.append_record(b"synced").unwrap();
    journal.sync().unwrap();
    journal.append_record(b"torn").unwrap();
    append(&mut journal, 1, 1, 0);
    journal.append_record(b"lost with it").unwrap();
    journal.commit().unwrap();
    drop(journal);
    let path = segments(directory.path()).remove(0);
    let (position, ..) = find_records(&path)[1];
    flip(&path, position + 65, 1);
    let stop = JournalReader::open_in(directory.path(), boot(2)).unwrap().records().unwrap();
    assert_eq!(stop.stop().unwrap().position, position);
    let mut options = options(directory.path());
    options.environment = boot(2);
    let (journal, report) = Journal::open(options).unwrap();
    let cut = report.removed_tail.unwrap();
    assert_eq!((cut.position, cut.sequence, cut.frames, cut.records), (position, 11, 1, 1));
    assert!(cut.to_string().contains("1 intact records"), "{cut}");
    assert_eq!((report.last_sequence, journal.last_sequence()), (10, 10));
    assert_eq!(read_records(directory.path(), boot(2)).unwrap(), [record(10, false, b"synced".to_vec())]);
    drop(journal);
}

#[test]
fn lost_last_record_is_the_end() {
    for is_synced in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        append(&mut journal, 10, 10, 0);
        journal.sync().unwrap();
        while journal.segments_begun() < 2 {
            journal.append_record(&[7; 500]).unwrap();
        }
        if is_synced {
            journal.sync().unwrap();
        }
        append(&mut journal, 10, 10, 0);
        work_off(&journal);
        drop(journal);
        let path = segments(directory.path()).remove(0);
        let (position, length, _) = find_records(&path).pop().unwrap();
        // The device has the segment's header but not its last page.
        overwrite(&path, position, &vec![0; length as usize]);
        // Otherwise opening skips a vouched sealed segment.
        (options.environment, options.check) = (boot(2), RecoveryCheck::All);
        let read = read_all(directory.path(), boot(2), 1);
        let opened = Journal::open(options);
        if is_synced {
            for error in [read.unwrap_err(), opened.unwrap_err()] {
                assert!(matches!(&error, JournalError::Corrupt { .. }), "{error}");
            }
        } else {
            assert_eq!(read.unwrap().len(), 10);
            let (journal, report) = opened.unwrap();
            assert_eq!((report.last_sequence, report.removed_tail_files.len()), (10, 1), "{report:?}");
            assert_eq!(read_records(directory.path(), boot(2)).unwrap().len(), find_records(&path).len());
            drop(journal);
        }
    }
}

#[test]
fn restart_syncs_leftover_records() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(directory.path());
    let (mut journal, _) = Journal::open(options.clone()).unwrap();
    append(&mut journal, 10, 10, 0);
    journal.sync().unwrap();
    journal.append_record(b"vote").unwrap();
    journal.commit().unwrap();
    let mut journal = reopen(journal, &options);
    assert_eq!(journal.sync().unwrap(), 10);
    drop(journal);
    let path = segments(directory.path()).remove(0);
    let (position, ..) = find_records(&path)[0];
    flip(&path, position + 70, 1);
    let refused = read_records(directory.path(), boot(2)).unwrap_err();
    assert!(matches!(refused, JournalError::Corrupt { .. }), "{refused}");
}

#[test]
fn refused_record_changes_nothing() {
    for (flush, marks) in WAYS {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        (options.flush, options.marks) = (flush, marks);
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        let longest = vec![9; FRAME_LENGTH_MAX - HEADER_LENGTH];
        let refused = journal.append_record(&vec![9; longest.len() + 1]).unwrap_err();
        assert!(matches!(refused, JournalError::RecordTooLong { length_bytes, limit_bytes }
            if (length_bytes, limit_bytes) == (FRAME_LENGTH_MAX + 1, FRAME_LENGTH_MAX)));
        let mut count = 0;
        let refused = loop {
            match journal.append_record(&longest) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, JournalError::RecordsFull { .. }), "{refused}");
        assert_eq!(count, (SEGMENT_LENGTH - d::frames_offset(SEGMENT_LENGTH)) / FRAME_LENGTH_MAX as u64 - 1);
        journal.commit().unwrap();
        journal = reopen(journal, &options);
        assert!(journal.append_record(&[0; FRAME_LENGTH_MAX / 2]).is_err());
        append(&mut journal, 1, 1, 0);
        journal.append_record(&longest).unwrap();
        append(&mut journal, 100, 100, 0);
        journal = reopen(journal, &options);
        assert_eq!(read_records(directory.path(), boot(1)).unwrap().len() as u64, count + 1);
        assert_holds(directory.path(), boot(1), 1, journal.last_sequence(), 0);
    }
}

#[test]
fn records_mark_may_stay_unused() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 1000, 10, 0);
    journal.sync().unwrap();
    journal.truncate_after(900).unwrap();
    append(&mut journal, 100, 10, 0);
    let mut journal = reopen(journal, &options(directory.path()));
    journal.sync().unwrap();
    journal.close().unwrap();
    let mut options = options(directory.path());
    options.environment = boot(2);
    drop(Journal::open(options).unwrap());
    for path in segments(directory.path()) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes[d::RECORDS_MARK_OFFSET..d::TIMES_MARK_OFFSET].iter().all(|&byte| byte == 0));
        for slot in [0, 32] {
            let second = d::SYNCED_MARK_OFFSET + slot + 8;
            assert_eq!(bytes[second..second + 8], [0; 8], "{}", path.display());
        }
    }
}

#[test]
fn newest_checkpoints_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    let mut newest = std::collections::BTreeMap::new();
    let mut begun = 0;
    for round in 0..150 {
        append(&mut journal, 10, 10, 0);
        if journal.segments_begun() != begun || round % 7 == 0 {
            let payload = format!("round {round}").into_bytes();
            journal.append_checkpoint(&payload).unwrap();
            begun = journal.segments_begun();
            newest.insert(begun, record(journal.last_sequence(), true, payload));
        }
        journal.append_record(b"something else").unwrap();
    }
    journal.commit().unwrap();
    assert!(newest.len() > 3, "there are several segments");
    let reader = JournalReader::open_in(directory.path(), boot(1)).unwrap();
    let mut met = Vec::new();
    let none = reader.newest_checkpoint(|record| {
        met.push(record.clone());
        false
    });
    assert_eq!(none.unwrap(), None);
    let expected: Vec<ConsensusRecord> = newest.into_values().rev().collect();
    assert_eq!(met, expected);
    for wanted in &expected {
        let found = reader.newest_checkpoint(|record| record.after_sequence <= wanted.after_sequence).unwrap();
        assert_eq!(found.as_ref(), Some(wanted));
    }
}
