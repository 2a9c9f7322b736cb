//! Reports of a sound journal, a damaged one and a live one.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::support::*;
use gapless_journal::{FilePoint, Journal, JournalError, JournalOptions, MarkName, RepairedMark, descriptor, inspect};

#[test]
fn sound_live_journal_is_verified() {
    let directory = tempfile::tempdir().unwrap();
    assert!(!inspect::holds_journal(directory.path()));
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 500, 10, 0);
    journal.syncer().sync().unwrap();
    append(&mut journal, 500, 10, 0);
    assert!(inspect::holds_journal(directory.path()));
    let info = inspect::info_in(directory.path(), boot(1)).unwrap();
    assert_eq!((info.stream_id, info.incarnation), (STREAM, journal.incarnation()));
    assert_eq!((info.first_sequence(), info.journaled_sequence(), info.synced_sequence()), (1, 1000, 500));
    assert_eq!(info.good_mark, (MarkName::Journaled, 1000));
    assert_eq!(info.file_bytes(), info.segments.len() as u64 * SEGMENT_LENGTH);
    let (newest, sealed) = info.segments.split_last().unwrap();
    assert!(!newest.is_sealed && sealed.iter().all(|segment| segment.is_sealed));
    assert!(newest.to_string().contains("1000") && newest.to_string().contains("open"), "{newest}");

    let report = inspect::verify_in(directory.path(), boot(1)).unwrap();
    assert!(report.problems.is_empty() && report.stop.is_none(), "{:?}", report.problems);
    assert_eq!((report.frames, report.last_sequence, report.bad_index_entries), (1000, 1000, 0));
    assert_eq!(report.frame_bytes, info.segments.iter().map(|segment| segment.used_bytes).sum::<u64>());
}

#[test]
fn every_damaged_segment_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 1500, 10, 0);
    drop(journal);
    let paths = segments(directory.path());
    for path in [&paths[0], &paths[2]] {
        flip(path, 8192 + 700, 1);
    }
    overwrite(&paths[1], 4096, &[0x77; 8]);
    let report = inspect::verify_in(directory.path(), boot(1)).unwrap();
    let named: Vec<_> = report
        .problems
        .iter()
        .map(|problem| match problem {
            JournalError::Corrupt { segment, .. } => segment,
            other => panic!("expected corruption, found: {other}"),
        })
        .collect();
    assert_eq!(named, [&paths[0], &paths[2]]);
    assert!(report.last_sequence < 10 && report.frames > 700);
    assert_eq!(report.bad_index_entries, 1);
}

#[test]
fn damaged_mark_slot_is_repaired() {
    for (number, slot) in [(0, 0), (0, 32), (1, 0), (1, 32), (usize::MAX, 0), (usize::MAX, 32)] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let (mut journal, _) = Journal::open(options(directory)).unwrap();
        append(&mut journal, 1000, 10, 0);
        drop(journal);
        let paths = segments(directory);
        let segment = &paths[number.min(paths.len() - 1)];
        let place = (descriptor::JOURNALED_MARK_OFFSET + slot) as u64;
        overwrite(segment, place, &[0xee; 32]);

        let info = inspect::info_in(directory, boot(1)).unwrap();
        let damaged: Vec<_> =
            info.segments.iter().filter_map(|info| Some((&info.path, info.damaged_slot_position?))).collect();
        assert_eq!(damaged, [(segment, place)]);
        let report = inspect::verify_in(directory, boot(1)).unwrap();
        assert_eq!(report.verdict(), inspect::VerifyVerdict::Damaged);
        let read = read_all(directory, boot(1), 1).unwrap_err();
        for error in report.problems.iter().chain([&read]) {
            let is_it = matches!(error, JournalError::MarkSlotDamaged { segment: named, position, .. }
                if named == segment && *position == place);
            assert!(is_it && error.to_string().contains("one slot"), "{error}");
        }

        let point = FilePoint {
            path: directory.join("state"),
            identity: Some((STREAM, info.incarnation)),
            sequence: 1000,
            timestamp_ns: Some(timestamp_ns(1000, 0)),
        };
        let (journal, report) = Journal::open(JournalOptions { points: vec![point], ..options(directory) }).unwrap();
        assert_eq!(
            (report.last_sequence, report.repaired_marks),
            (1000, vec![RepairedMark { segment: segment.clone(), position: place }])
        );
        drop(journal);
        assert_holds(directory, boot(1), 1, 1000, 0);
        let report = inspect::verify_in(directory, boot(1)).unwrap();
        assert_eq!((report.verdict(), report.problems.len()), (inspect::VerifyVerdict::Whole, 0));
        let (_journal, report) = Journal::open(options(directory)).unwrap();
        assert!(report.repaired_marks.is_empty(), "{report:?}");
    }
}

#[test]
fn unvouched_end_is_not_damage() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 100, 10, 0);
    journal.syncer().sync().unwrap();
    append(&mut journal, 20, 10, 0);
    drop(journal);
    let path = segments(directory.path()).remove(0);
    let (position, _) = find_frame(&path, 111);
    flip(&path, position + 20, 1);
    let report = inspect::verify_in(directory.path(), boot(2)).unwrap();
    assert!(report.problems.is_empty());
    let stop = report.stop.unwrap();
    assert_eq!((stop.position, stop.sequence, report.last_sequence), (position, 111, 110));
    assert!(stop.to_string().contains("never synced"), "{stop}");
}

#[test]
fn empty_directory_is_no_journal() {
    let directory = tempfile::tempdir().unwrap();
    let refused = inspect::info(directory.path()).unwrap_err();
    assert!(matches!(refused, JournalError::NoJournal { .. }), "{refused}");
    let refused = inspect::verify(directory.path().join("missing")).unwrap_err();
    assert!(matches!(refused, JournalError::NoJournal { .. }), "{refused}");
}
