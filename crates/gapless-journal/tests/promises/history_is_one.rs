//! Missing segments, and segments or files of another history, are refused before anything is changed.

use std::path::{Path, PathBuf};

use crate::support::*;
use gapless_journal::descriptor as d;
use gapless_journal::inspect::{self, VerifyVerdict};
use gapless_journal::{
    FilePoint, Journal, JournalError, JournalRestore, MarkName, PointFault, RecoveryReport, Retention,
};

fn synced_segments(directory: &Path) -> Vec<PathBuf> {
    let (mut journal, _) = Journal::open(options(directory)).unwrap();
    for _ in 0..10 {
        append(&mut journal, 100, 10, 0);
        journal.syncer().sync().unwrap();
    }
    drop(journal);
    let found = segments(directory);
    assert!(found.len() >= 4);
    found
}

fn open(directory: &Path, boot_number: u128, points: &[FilePoint]) -> Result<RecoveryReport, JournalError> {
    let mut options = options(directory);
    options.environment = boot(boot_number);
    options.points = points.to_vec();
    Journal::open(options).map(|(_, report)| report)
}

fn problems(directory: &Path, boot_number: u128, points: &[FilePoint]) -> (VerifyVerdict, Vec<JournalError>) {
    let report = inspect::verify_with(directory, boot(boot_number), points, &mut |_| {}).unwrap();
    (report.verdict(), report.problems)
}

fn content(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().is_some_and(|name| name != d::LOCK_NAME))
        .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

fn refused(directory: &Path, boot_number: u128, points: &[FilePoint]) -> JournalError {
    let before = content(directory);
    let error = open(directory, boot_number, points).expect_err("a changed journal is refused");
    assert!(content(directory) == before, "a refused start has changed something: {error}");
    error
}

#[test]
fn lost_newest_segment_is_found() {
    for boot_number in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        let found = synced_segments(directory.path());
        let (newest, before) = (&found[found.len() - 1], &found[found.len() - 2]);
        std::fs::remove_file(newest).unwrap();
        let error = refused(directory.path(), boot_number, &[]);
        let text = error.to_string();
        assert!(matches!(&error, JournalError::NewestMissing { newest, .. } if newest == before), "{text}");
        assert!(text.contains("history") && text.contains(before.to_str().unwrap()), "{text}");
        let found = match inspect::verify_in(directory.path(), boot(boot_number)) {
            Ok(report) => {
                assert_eq!(report.verdict(), VerifyVerdict::Damaged);
                report.problems
            }
            // The mark that is good on this boot was in the removed segment.
            Err(error) => vec![error],
        };
        assert!(found.iter().any(|problem| matches!(problem, JournalError::NewestMissing { .. })), "{found:?}");
    }
}

#[test]
fn lost_oldest_segment_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let found = synced_segments(directory.path());
    std::fs::remove_file(&found[0]).unwrap();
    let error = refused(directory.path(), 1, &[]);
    let expected = matches!(&error, JournalError::OldestMissing { oldest, missing_from: 1, .. } if *oldest == found[1]);
    assert!(expected, "{error}");
    let (verdict, problems) = problems(directory.path(), 1, &[]);
    assert_eq!(verdict, VerifyVerdict::Damaged);
    assert!(matches!(problems[0], JournalError::OldestMissing { .. }), "{problems:?}");

    let directory = tempfile::tempdir().unwrap();
    synced_segments(directory.path());
    let mut options = options(directory.path());
    options.retention = Retention { bytes_max: Some(1), age_max_ns: None };
    let (journal, _) = Journal::open(options).unwrap();
    journal.set_snapshot_sequence(journal.last_sequence());
    let mut preparer = journal.preparer();
    while preparer.run_once().unwrap() {}
    assert!(journal.first_sequence() > 1);
    drop((preparer, journal));
    let report = open(directory.path(), 2, &[]).unwrap();
    assert!(report.first_sequence > 1 && report.last_sequence == 1000);
}

#[test]
fn lost_segments_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    for segment in synced_segments(directory.path()) {
        std::fs::remove_file(segment).unwrap();
    }
    let error = refused(directory.path(), 1, &[]);
    assert!(matches!(error, JournalError::SegmentsMissing { first: 1, .. }), "{error}");
    let verified = inspect::verify(directory.path()).unwrap_err();
    assert!(matches!(verified, JournalError::SegmentsMissing { .. }), "{verified}");
}

#[test]
fn foreign_history_is_refused() {
    for boot_number in [1, 2] {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let (mut journal, _) = Journal::open(options(one.path())).unwrap();
        append(&mut journal, 100, 10, 0);
        journal.close().unwrap();
        for (path, bytes) in content(one.path()) {
            std::fs::write(other.path().join(path.file_name().unwrap()), bytes).unwrap();
        }
        for (directory, salt) in [(one.path(), 0), (other.path(), 1)] {
            let (mut journal, _) = Journal::open(options(directory)).unwrap();
            let first = journal.last_sequence() + 1;
            for sequence in first..1000 {
                let mut frame = Vec::new();
                push_frame_of(&mut frame, sequence, timestamp_ns(sequence, salt), &[7; 200]);
                journal.append(&frame, sequence, sequence).unwrap();
            }
            journal.close().unwrap();
        }
        let (ours, theirs) = (segments(one.path()), segments(other.path()));
        assert_eq!(ours[2].file_name(), theirs[2].file_name());
        let own = std::fs::read(&ours[2]).unwrap();
        std::fs::copy(&theirs[2], &ours[2]).unwrap();
        let error = refused(one.path(), boot_number, &[]);
        let expected =
            matches!(&error, JournalError::OtherTimes { before, after, .. } if *before == ours[1] && *after == ours[2]);
        assert!(expected, "{error}");
        let (verdict, problems) = problems(one.path(), boot_number, &[]);
        assert_eq!(verdict, VerifyVerdict::Damaged);
        assert!(matches!(problems[0], JournalError::OtherTimes { .. }), "{problems:?}");
        std::fs::write(&ours[2], own).unwrap();
        assert_eq!(self::problems(one.path(), boot_number, &[]).0, VerifyVerdict::Whole);
        open(one.path(), boot_number, &[]).unwrap();
    }
}

#[test]
fn missing_history_is_rebuilt() {
    let directory = tempfile::tempdir().unwrap();
    synced_segments(directory.path());
    let path = directory.path().join(d::HISTORY_NAME);
    let whole = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    open(directory.path(), 1, &[]).unwrap();
    assert!(path.exists());
    std::fs::write(&path, &whole[..60]).unwrap();
    let error = refused(directory.path(), 1, &[]);
    assert!(matches!(error, JournalError::HistoryDamaged { .. }), "{error}");
    assert_eq!(problems(directory.path(), 1, &[]).0, VerifyVerdict::Damaged);
    let foreign = tempfile::tempdir().unwrap();
    drop(Journal::open(options(foreign.path())).unwrap());
    std::fs::copy(foreign.path().join(d::HISTORY_NAME), &path).unwrap();
    let error = refused(directory.path(), 1, &[]);
    assert!(matches!(error, JournalError::ForeignHistory { .. }), "{error}");
}

#[test]
fn points_of_other_files_must_match() {
    let directory = tempfile::tempdir().unwrap();
    let found = synced_segments(directory.path());
    let reader = gapless_journal::JournalReader::open(directory.path()).unwrap();
    let identity = (reader.stream_id(), reader.incarnation());
    let point = |sequence: u64, time_ns: u64| FilePoint {
        path: PathBuf::from("state"),
        identity: Some(identity),
        sequence,
        timestamp_ns: Some(time_ns),
    };
    let fault = |point: FilePoint| match refused(directory.path(), 2, &[point]) {
        JournalError::OtherHistory { file, fault, .. } => {
            assert_eq!(file, Path::new("state"));
            *fault
        }
        other => panic!("expected another history, found: {other}"),
    };
    assert_eq!(fault(point(500, 501)), PointFault::TimeStamp { file_ns: 501, journal_ns: 500 });
    assert_eq!(fault(point(1001, 1001)), PointFault::Ahead { last_sequence: 1000, is_damaged: false });
    let foreign = FilePoint { identity: Some((STREAM, 1)), ..point(500, 500) };
    assert_eq!(fault(foreign), PointFault::Identity { found: (STREAM, 1), expected: identity });
    let unreadable = FilePoint { identity: None, timestamp_ns: None, ..point(1001, 0) };
    assert!(matches!(fault(unreadable), PointFault::Ahead { .. }));

    // A frame named by another file is never removed: the synced mark lags by one group.
    let sound = [point(1000, 1000), point(1, 1), point(0, 0)];
    assert_eq!(problems(directory.path(), 2, &sound).0, VerifyVerdict::Whole);
    let newest = found.last().unwrap();
    let (position, _) = find_frame(newest, 995);
    flip(newest, position + 70, 1);
    for slot in [0, 32] {
        // Simulates a newest mark that never reached the device.
        let bytes = std::fs::read(newest).unwrap();
        let at = d::SYNCED_MARK_OFFSET + slot;
        if u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) == 1000 {
            flip(newest, at as u64, 1);
        }
    }
    assert!(matches!(fault(point(1000, 1000)), PointFault::Ahead { last_sequence: 994, is_damaged: true }));
    assert_eq!(problems(directory.path(), 2, &[]).0, VerifyVerdict::FramesBeyondEnd);
    let report = open(directory.path(), 2, &[point(994, 994)]).unwrap();
    let cut = report.removed_tail.unwrap();
    assert_eq!((cut.sequence, cut.frames, cut.files.len()), (995, 5, 1));

    for segment in segments(directory.path()) {
        std::fs::remove_file(segment).unwrap();
    }
    std::fs::remove_file(directory.path().join(d::HISTORY_NAME)).unwrap();
    assert_eq!(fault(point(1000, 1000)), PointFault::NoJournal);
}

#[test]
fn early_point_is_checked() {
    let directory = tempfile::tempdir().unwrap();
    synced_segments(directory.path());
    let mut retaining = options(directory.path());
    retaining.retention = Retention { bytes_max: Some(1), age_max_ns: None };
    let (journal, _) = Journal::open(retaining).unwrap();
    journal.set_snapshot_sequence(journal.last_sequence());
    let mut preparer = journal.preparer();
    while preparer.run_once().unwrap() {}
    let before = journal.first_sequence() - 1;
    drop((preparer, journal));
    let point = |timestamp_ns| FilePoint {
        path: PathBuf::from("state"),
        identity: None,
        sequence: before,
        timestamp_ns: Some(timestamp_ns),
    };
    let error = refused(directory.path(), 1, &[point(before + 1)]);
    assert!(matches!(error, JournalError::OtherHistory { .. }), "{error}");
    open(directory.path(), 1, &[point(before)]).unwrap();
}

#[test]
fn verdict_depends_on_the_marks() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 10, 10, 0);
    journal.syncer().sync().unwrap();
    append(&mut journal, 20, 10, 0);
    drop(journal);
    assert_eq!(problems(directory.path(), 1, &[]).0, VerifyVerdict::Whole, "the journaled mark counts");
    assert_eq!(problems(directory.path(), 2, &[]).0, VerifyVerdict::NothingVouchesForEnd);
    let (position, _) = find_frame(&segments(directory.path())[0], 15);
    flip(&segments(directory.path())[0], position + 1, 1);
    assert_eq!(problems(directory.path(), 1, &[]).0, VerifyVerdict::Damaged);
    assert_eq!(problems(directory.path(), 2, &[]).0, VerifyVerdict::FramesBeyondEnd);
}

#[test]
fn retention_counts_removed_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 10, 10, 0);
    journal.syncer().sync().unwrap();
    append(&mut journal, 1000, 10, 0);
    drop(journal);
    let found = segments(directory.path());
    let (position, _) = find_frame(&found[0], 20);
    flip(&found[0], position + 1, 1);
    let mut options = options(directory.path());
    options.environment = boot(2);
    options.retention =
        Retention { bytes_max: Some(found.len() as u64 * SEGMENT_LENGTH + 2 * SEGMENT_LENGTH), age_max_ns: None };
    let (mut journal, report) = Journal::open(options).unwrap();
    let kept = report.removed_tail.unwrap().files;
    assert_eq!(kept.len(), found.len());
    append(&mut journal, 2000, 10, 0);
    journal.set_snapshot_sequence(journal.last_sequence());
    let mut preparer = journal.preparer();
    while preparer.run_once().unwrap() {}
    assert!(kept.iter().all(|path| path.exists()), "never deleted");
    let left = segments(directory.path()).len();
    assert!((1..=4).contains(&left), "{left} segments beside {} that were cut", kept.len());
    assert_eq!(inspect::info(directory.path()).unwrap().removed_tail_files.len(), kept.len());
}

#[test]
fn interrupted_restore_continues() {
    let directory = tempfile::tempdir().unwrap();
    let found = synced_segments(directory.path());
    std::fs::remove_file(found.last().unwrap()).unwrap();
    let last = found[found.len() - 2].clone();
    let mut restore = match JournalRestore::begin(directory.path()) {
        Ok(restore) => restore,
        Err(error) => panic!("{} is whole: {error}", last.display()),
    };
    let (before, after) = restore.incarnations();
    assert_ne!(before, after);
    restore.apply().unwrap();
    drop(restore);
    let error = refused(directory.path(), 1, &[]);
    assert!(matches!(error, JournalError::RestoreUnfinished { .. }), "{error}");
    let mut restore = JournalRestore::begin(directory.path()).unwrap();
    assert_eq!(restore.incarnations(), (before, after), "the restore continues with the same incarnation");
    assert!(matches!(JournalRestore::begin(directory.path()), Err(JournalError::Locked { .. })));
    restore.apply().unwrap();
    let last_sequence = restore.last_sequence();
    restore.finish().unwrap();
    let mut options = options(directory.path());
    options.environment = boot(2);
    let (mut journal, report) = Journal::open(options).unwrap();
    assert_eq!((journal.incarnation(), report.last_sequence), (after, last_sequence));
    assert_eq!(report.good_mark, (MarkName::Synced, last_sequence), "everything read is vouched for");
    append(&mut journal, 500, 10, 0);
    journal.close().unwrap();
    assert_holds(directory.path(), boot(2), 1, last_sequence + 500, 0);
}

#[test]
fn foreign_segment_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 1000, 10, 0);
    work_off(&journal);
    let incarnation = journal.incarnation();
    drop(journal);
    let mut paths = segments(directory.path());
    paths.retain(|path| first_of(path) != 0);
    for (path, is_of_another_stream) in paths.iter().flat_map(|path| [(path, false), (path, true)]) {
        let other = tempfile::tempdir().unwrap();
        let mut foreign = options(other.path());
        foreign.first_sequence = first_of(path);
        foreign.stream_id += u128::from(is_of_another_stream);
        drop(Journal::open(foreign).unwrap());
        let own = std::fs::read(path).unwrap();
        std::fs::copy(&segments(other.path())[0], path).unwrap();
        for _ in 0..2 {
            let opened = Journal::open(options(directory.path())).unwrap_err();
            let verified = inspect::verify_in(directory.path(), boot(1)).unwrap_err();
            for error in [opened, verified] {
                let is_named = match &error {
                    JournalError::ForeignStream { segment, expected, .. } => {
                        is_of_another_stream && segment == path && *expected == STREAM
                    }
                    JournalError::ForeignIncarnation { segment, expected, .. } => {
                        !is_of_another_stream && segment == path && *expected == incarnation
                    }
                    _ => false,
                };
                assert!(is_named, "{}: {error}", path.display());
            }
        }
        std::fs::write(path, own).unwrap();
    }
    Journal::open(options(directory.path())).unwrap();
}
