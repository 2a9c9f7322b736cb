//! Archived segments are read as if they were in the journal, also while a writer runs; a missing archive is named.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::support::*;
use gapless_journal::descriptor::HISTORY_NAME;
use gapless_journal::inspect::VerifyVerdict;
use gapless_journal::{
    ArchiveFormat, ArchiveOptions, Journal, JournalEnvironment, JournalError, JournalOptions, JournalReader,
    JournalRestore, Replay, archive, info, verify,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const FORMS: [ArchiveFormat; 2] = [ArchiveFormat::Plain, ArchiveFormat::Lz4];

fn here(directory: &Path) -> JournalOptions {
    JournalOptions { environment: JournalEnvironment::default(), ..options(directory) }
}

fn to(place: &Path, form: ArchiveFormat) -> ArchiveOptions {
    ArchiveOptions { place: place.to_owned(), form, before_sequence: None }
}

fn written() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let (journal, place) = (directory.path().join("journal"), directory.path().join("archive"));
    let (mut writer, _) = Journal::open(here(&journal)).unwrap();
    append(&mut writer, 2000, 10, 0);
    writer.close().unwrap();
    (directory, journal, place)
}

#[test]
fn all_but_newest_are_archived() {
    for form in FORMS {
        let (_directory, journal, place) = written();
        let before = segments(&journal);
        let mut told = 0;
        let report = archive(&journal, &to(&place, form), |_| told += 1).unwrap();
        assert_eq!((report.archived.len(), told), (before.len() - 1, before.len() - 1));
        let (stays, reason) = report.not_archived.unwrap();
        assert!(Some(&stays) == before.last() && reason.starts_with("it is the newest"), "{reason}");
        assert_eq!(segments(&journal), [stays]);
        let stored: u64 = report.archived.iter().map(|segment| segment.stored_bytes).sum();
        assert_eq!(stored, report.archived.iter().map(|segment| segment.path.metadata().unwrap().len()).sum::<u64>());
        for environment in [JournalEnvironment::default(), boot(7)] {
            assert_holds(&journal, environment.clone(), 1, 2000, 0);
            for from in [2, 777, 1999] {
                assert_holds(&journal, environment.clone(), from, 2000, 0);
            }
        }
        let reader = JournalReader::open_complete(&journal).unwrap();
        assert_eq!((reader.first_sequence(), reader.last_sequence().unwrap()), (1, 2000));
        let verified = verify(&journal).unwrap();
        assert!(verified.verdict() == VerifyVerdict::Whole && verified.frames == 2000, "{verified:?}");
        let info = info(&journal).unwrap();
        assert!(info.segments[0].archived.as_ref() == Some(&report.archived[0].path) && info.segments[0].is_sealed);
        for round in 0..3 {
            let mut options = here(&journal);
            options.environment.boot_id = if round == 1 { boot(9).boot_id } else { options.environment.boot_id };
            let (mut writer, opened) = Journal::open(options).unwrap();
            assert_eq!((opened.first_sequence, opened.last_sequence), (1, 2000 + 500 * round));
            append(&mut writer, 500, 10, 0);
            writer.close().unwrap();
            assert!(!archive(&journal, &to(&place, FORMS[round as usize % 2]), |_| ()).unwrap().archived.is_empty());
            assert_holds(&journal, boot(7), 1, 2500 + 500 * round, 0);
        }
    }
}

#[test]
fn later_segments_are_not_archived() {
    let (_directory, journal, place) = written();
    let options = ArchiveOptions { before_sequence: Some(700), ..to(&place, ArchiveFormat::Plain) };
    let report = archive(&journal, &options, |_| ()).unwrap();
    assert!(!report.archived.is_empty() && report.archived.iter().all(|segment| segment.last_sequence < 700));
    assert!(report.not_archived.unwrap().1.starts_with("its last sequence is "));
    assert_holds(&journal, JournalEnvironment::default(), 1, 2000, 0);
}

#[test]
fn missing_archive_is_named() {
    for form in FORMS {
        let (_directory, journal, place) = written();
        let archived = archive(&journal, &to(&place, form), |_| ()).unwrap().archived;
        let last = archived.last().unwrap();
        let away = place.with_file_name("away");
        std::fs::rename(&place, &away).unwrap();
        let missing = |outcome: Result<Vec<(u64, Vec<u8>)>, JournalError>| match outcome {
            Err(JournalError::ArchiveUnusable { path, first, .. }) => (path, first),
            other => panic!("{other:?}"),
        };
        assert_eq!(missing(read_all(&journal, JournalEnvironment::default(), 1)), (archived[0].path.clone(), 1));
        let within = missing(read_all(&journal, boot(7), last.last_sequence));
        assert_eq!(within, (last.path.clone(), last.first_sequence));
        let text = read_all(&journal, boot(7), 1).unwrap_err().to_string();
        assert!(text.contains(&archived[0].path.display().to_string()) && text.contains("mount the archive"), "{text}");
        assert_eq!(verify(&journal).unwrap().verdict(), VerifyVerdict::Damaged);
        assert_holds(&journal, JournalEnvironment::default(), last.last_sequence + 1, 2000, 0);
        for number in [1, 2] {
            let (mut writer, _) =
                Journal::open(JournalOptions { environment: boot(number), ..here(&journal) }).unwrap();
            append(&mut writer, 100, 10, 0);
            writer.close().unwrap();
        }
        std::fs::rename(&away, &place).unwrap();
        assert_holds(&journal, boot(7), 1, 2200, 0);
        std::fs::write(&archived[0].path, std::fs::read(&archived[1].path).unwrap()).unwrap();
        missing(read_all(&journal, boot(7), 1));
    }
}

#[test]
fn damaged_archive_is_an_error() {
    for form in FORMS {
        let (_directory, journal, place) = written();
        let archived = archive(&journal, &to(&place, form), |_| ()).unwrap().archived;
        let length = archived[1].stored_bytes;
        overwrite(&archived[1].path, length - 200, &[0xee; 5]);
        let error = read_all(&journal, JournalEnvironment::default(), 1).unwrap_err();
        let (named, at) = match &error {
            JournalError::Corrupt { segment, position, .. } => (segment, *position),
            JournalError::ArchiveUnusable { path, reason, .. } => {
                let at = reason.strip_prefix("the piece at byte ").and_then(|rest| rest.split(' ').next());
                (path, at.unwrap().parse().unwrap())
            }
            _ => panic!("{error}"),
        };
        assert!(*named == archived[1].path && at < length && at + 70_000 > length, "{error}");
        let before = JournalReader::open(&journal).unwrap().replay(1).unwrap();
        assert!(count(before) >= archived[0].last_sequence);
        assert_holds(&journal, JournalEnvironment::default(), archived[2].first_sequence, 2000, 0);
        let verified = verify(&journal).unwrap();
        assert!(
            verified.verdict() == VerifyVerdict::Damaged && verified.problems.len() == 1,
            "{:?}",
            verified.problems
        );
    }
}

fn count(mut replay: Replay) -> u64 {
    std::iter::from_fn(|| replay.next_frame().ok().flatten().map(|_| ())).count() as u64
}

#[test]
#[ignore = "a measurement: cargo test --release -p gapless-journal --test promises -- --ignored --nocapture from_an_archive"]
fn frames_per_second_from_archive() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, place) = (directory.path().join("journal"), directory.path().join("archive"));
    let length = 64 << 20;
    let (mut writer, _) = Journal::open(JournalOptions {
        segment_length_bytes: length,
        first_segment_length_bytes: length,
        ..here(&journal)
    })
    .unwrap();
    append(&mut writer, 2_000_000, 500, 0);
    writer.close().unwrap();
    let archived = archive(&journal, &to(&place, ArchiveFormat::Lz4), |_| ()).unwrap().archived;
    let frames = archived.last().unwrap().last_sequence;
    let mut random = gapless_testkit::random::Random::new(7);
    let mut replay = JournalReader::open(&journal).unwrap().replay_until(1, 1).unwrap();
    let (begun, mut found) = (std::time::Instant::now(), 0);
    while begun.elapsed() < std::time::Duration::from_secs(5) {
        let sequence = 1 + random.below(frames);
        replay.seek(sequence, sequence).unwrap();
        assert_eq!(replay.next_frame().unwrap().unwrap().sequence(), sequence);
        found += 1;
    }
    let (segments, stored): (_, u64) = (archived.len(), archived.iter().map(|segment| segment.stored_bytes).sum());
    println!("{frames} frames in {segments} segments, {stored} bytes: {} are found in a second", found / 5);
}

#[test]
fn damaged_segment_is_not_archived() {
    let (_directory, journal, place) = written();
    let (position, _) = find_frame(&segments(&journal)[1], 500);
    overwrite(&segments(&journal)[1], position + 70, &[0xee; 3]);
    let before = segments(&journal).len();
    archive(&journal, &to(&place, ArchiveFormat::Plain), |_| ()).unwrap_err();
    assert!(segments(&journal).len() >= before - 1);
}

#[test]
fn restored_journal_reads_archive() {
    let (_directory, journal, place) = written();
    archive(&journal, &to(&place, ArchiveFormat::Lz4), |_| ()).unwrap();
    let mut restore = JournalRestore::begin(&journal).unwrap();
    restore.apply().unwrap();
    restore.finish().unwrap();
    assert_holds(&journal, boot(7), 1, 2000, 0);
    let (mut writer, _) = Journal::open(here(&journal)).unwrap();
    append(&mut writer, 100, 10, 0);
    writer.close().unwrap();
    assert_holds(&journal, boot(7), 1, 2100, 0);
}

#[test]
fn archiving_runs_with_a_writer() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, place) = (directory.path().join("journal"), directory.path().join("archive"));
    let (mut writer, _) = Journal::open(here(&journal)).unwrap();
    append(&mut writer, 10, 10, 0);
    let (preparer, syncer) = (writer.preparer(), writer.syncer());
    let helper = std::thread::spawn(move || preparer.run());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let archiving = scope.spawn(|| {
            let mut archived = 0;
            while !is_over.load(Ordering::Relaxed) {
                let form = FORMS[archived % 2];
                archived += archive(&journal, &to(&place, form), |_| ()).unwrap().archived.len();
                std::thread::yield_now();
            }
            archived
        });
        let reading = scope.spawn(|| {
            let mut replay = JournalReader::open(&journal).unwrap().replay(1).unwrap();
            let mut next = 1;
            while next <= 6000 {
                while let Some(frame) = replay.next_frame().unwrap() {
                    assert_eq!((frame.sequence(), frame.payload()), (next, &payload(next, 0)[..]));
                    next += 1;
                }
                let from = next / 2 + 1;
                let reader = JournalReader::open(&journal).unwrap();
                assert_eq!(reader.first_sequence(), 1);
                let mut late = reader.replay(from).unwrap();
                assert_eq!(late.next_frame().unwrap().map(|frame| frame.sequence()), Some(from));
                std::thread::yield_now();
            }
        });
        for _ in 0..599 {
            append(&mut writer, 10, 10, 0);
            syncer.sync().unwrap();
            if writer.last_sequence().is_multiple_of(500) {
                std::thread::yield_now();
            }
        }
        let read = reading.join();
        is_over.store(true, Ordering::Relaxed);
        println!("{} segments were archived meanwhile", archiving.join().unwrap());
        read.unwrap();
    });
    writer.close().unwrap();
    helper.join().unwrap().unwrap();
    archive(&journal, &to(&place, ArchiveFormat::Plain), |_| ()).unwrap();
    assert_eq!(segments(&journal).iter().filter(|path| !path.to_string_lossy().contains("prepared")).count(), 1);
    assert_holds(&journal, boot(7), 1, 6000, 0);
}

#[test]
fn newest_archive_needs_successor() {
    let (_directory, journal, place) = written();
    archive(&journal, &to(&place, ArchiveFormat::Plain), |_| ()).unwrap();
    let newest = segments(&journal).pop().unwrap();
    let missing = first_of(&newest);
    std::fs::remove_file(newest).unwrap();
    std::fs::remove_file(journal.join(HISTORY_NAME)).unwrap();
    let refused = Journal::open(here(&journal)).unwrap_err();
    assert!(matches!(&refused, JournalError::SuccessorMissing { sequence, .. } if *sequence == missing), "{refused}");
}
