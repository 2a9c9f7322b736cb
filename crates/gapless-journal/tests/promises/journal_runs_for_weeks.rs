//! Segments are prepared in time, get their names, and are deleted by retention, never above the snapshot.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::*;
use gapless_journal::descriptor::archived_name;
use gapless_journal::{
    ArchiveFormat, ArchiveOptions, Flush, Journal, JournalEnvironment, JournalError, JournalOptions, JournalReader,
    Zeroing, archive,
};
use gapless_wire::checksum::crc32c;

fn first_held(directory: &std::path::Path) -> u64 {
    JournalReader::open_in(directory, boot(1)).unwrap().first_sequence()
}

#[test]
fn helper_ends_with_the_journal() {
    for (flush, zeroing) in [
        (Flush::Mapped, Zeroing::None),
        (Flush::Mapped, Zeroing::All),
        (Flush::Write, Zeroing::None),
        (Flush::Write, Zeroing::All),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        (options.flush, options.marks, options.zeroing) = (flush, flush, zeroing);
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        let preparer = journal.preparer();
        let helper = std::thread::spawn(move || preparer.run());
        append(&mut journal, 3000, 7, 0);
        drop(journal);
        helper.join().unwrap().unwrap();
        assert_holds(directory.path(), boot(1), 1, 3000, 0);
        let (journal, report) = Journal::open(options).unwrap();
        assert_eq!(report.last_sequence, 3000);
        work_off(&journal);
        let unnamed =
            segments(directory.path()).iter().filter(|path| path.to_string_lossy().contains("prepared")).count();
        assert!(unnamed <= 1, "at most the next segment waits for its name");
    }
}

#[test]
fn next_segment_is_ready_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    work_off(&journal);
    assert_eq!(segments(directory.path()).len(), 1, "an empty segment needs no next one yet");
    append(&mut journal, 200, 10, 0);
    work_off(&journal);
    assert_eq!(segments(directory.path()).len(), 2, "half full: the next is allocated");
    assert_eq!(std::fs::metadata(&segments(directory.path())[1]).unwrap().len(), SEGMENT_LENGTH);
}

#[test]
fn no_limit_deletes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 2000, 10, 0);
    journal.set_snapshot_sequence(2000);
    work_off(&journal);
    assert_eq!(first_held(directory.path()), 1);
}

#[test]
fn size_limit_respects_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.retention.bytes_max = Some(2 * SEGMENT_LENGTH);
    let (mut journal, _) = Journal::open(options.clone()).unwrap();
    append(&mut journal, 2000, 10, 0);
    work_off(&journal);
    assert_eq!(journal.first_sequence(), 1, "there is no snapshot");
    journal.set_snapshot_sequence(600);
    work_off(&journal);
    let first = journal.first_sequence();
    assert!(first > 1 && first <= 601, "{first}");
    assert_eq!(first_held(directory.path()), first);
    assert_holds(directory.path(), boot(1), first, 2000, 0);
    let refused = read_all(directory.path(), boot(1), first - 1).unwrap_err();
    assert!(matches!(refused, JournalError::NotHeld { .. }), "{refused}");
    journal.set_snapshot_sequence(2000);
    work_off(&journal);
    let held = segments(directory.path()).iter().filter(|path| !path.to_string_lossy().contains("prepared")).count();
    assert!(held <= 2, "{held} segments for a limit of two");
    let first = journal.first_sequence();
    drop(journal);
    let (journal, report) = Journal::open(options).unwrap();
    assert_eq!((report.first_sequence, report.last_sequence, journal.first_sequence()), (first, 2000, first));
}

#[test]
fn age_limit_deletes_segments() {
    static CLOCK: AtomicU64 = AtomicU64::new(1_000);
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.retention.age_max_ns = Some(100);
    options.environment = JournalEnvironment { epoch_ns: || CLOCK.load(Ordering::SeqCst), ..boot(1) };
    let (mut journal, _) = Journal::open(options).unwrap();
    append(&mut journal, 1000, 10, 0);
    journal.set_snapshot_sequence(1000);
    CLOCK.store(1_100, Ordering::SeqCst);
    work_off(&journal);
    assert_eq!(journal.first_sequence(), 1, "not older than the limit");
    append(&mut journal, 1000, 10, 0);
    journal.set_snapshot_sequence(2000);
    CLOCK.store(1_101, Ordering::SeqCst);
    work_off(&journal);
    let first = journal.first_sequence();
    assert!(
        first > 700 && first <= 1001,
        "the segments filled at 1000 are deleted, those filled at 1100 are not: {first}"
    );
    assert_holds(directory.path(), boot(1), first, 2000, 0);
}

#[test]
fn sealed_segments_get_synced() {
    static CLOCK: AtomicU64 = AtomicU64::new(0);
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.environment = JournalEnvironment { epoch_ns: || CLOCK.load(Ordering::SeqCst), ..boot(1) };
    let (mut journal, _) = Journal::open(options).unwrap();
    append(&mut journal, 1000, 10, 0);
    work_off(&journal);
    assert_eq!(journal.synced_sequence(), 0);
    CLOCK.store(40_000_000_000, Ordering::SeqCst);
    work_off(&journal);
    let synced = journal.synced_sequence();
    assert!(synced > 600 && synced < 1000, "everything but the active segment: {synced}");
}

#[test]
fn reader_keeps_mapped_segment() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(directory.path());
    options.retention.bytes_max = Some(0);
    let (mut journal, _) = Journal::open(options).unwrap();
    append(&mut journal, 2000, 10, 0);
    let reader = JournalReader::open_in(directory.path(), boot(1)).unwrap();
    let mut replay = reader.replay(1).unwrap();
    assert_eq!(replay.next_frame().unwrap().unwrap().sequence(), 1);
    journal.set_snapshot_sequence(1500);
    work_off(&journal);
    assert!(journal.first_sequence() > 1000);
    let mut last = 1;
    let gone = loop {
        match replay.next_frame() {
            Ok(Some(frame)) => last = frame.sequence(),
            Ok(None) => panic!("a replay that misses segments must not look complete"),
            Err(error) => break error,
        }
    };
    assert!(last > 100, "the mapped segment is read to its end");
    assert!(matches!(gone, JournalError::NotHeld { .. }), "{gone}");
}

#[test]
fn deletion_spares_the_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 2000, 10, 0);
    work_off(&journal);
    let reader = JournalReader::open_in(directory.path(), boot(1)).unwrap();
    assert_eq!(reader.boundary_at(1).unwrap(), None);
    let boundary = reader.boundary_at(1500).unwrap().unwrap();
    assert!(boundary > 1 && boundary <= 1500, "{boundary}");
    assert_eq!(reader.boundary_at(boundary).unwrap(), Some(boundary));
    assert!(reader.boundary_at(boundary - 1).unwrap() < Some(boundary));
    journal.preparer().delete_before(boundary);
    work_off(&journal);
    assert_eq!(journal.first_sequence(), 1, "there is no snapshot");
    journal.set_snapshot_sequence(600);
    work_off(&journal);
    let first = journal.first_sequence();
    assert!(first > 1 && first <= 601, "{first}");
    journal.set_snapshot_sequence(2000);
    work_off(&journal);
    assert_eq!((journal.first_sequence(), first_held(directory.path())), (boundary, boundary));
    assert_holds(directory.path(), boot(1), boundary, 2000, 0);
    // Requests are not remembered over a restart.
    drop(journal);
    let (mut journal, report) = Journal::open(options(directory.path())).unwrap();
    assert_eq!((report.first_sequence, report.last_sequence), (boundary, 2000));
    append(&mut journal, 1000, 10, 0);
    journal.set_snapshot_sequence(3000);
    work_off(&journal);
    assert_eq!(journal.first_sequence(), boundary);
}

#[test]
fn archived_copy_is_deleted_too() {
    let directory = tempfile::tempdir().unwrap();
    let (path, place) = (directory.path().join("journal"), directory.path().join("archive"));
    let options = JournalOptions { environment: JournalEnvironment::default(), ..options(&path) };
    let (mut journal, _) = Journal::open(options.clone()).unwrap();
    append(&mut journal, 2000, 10, 0);
    work_off(&journal);
    journal.close().unwrap();
    let archive_options =
        ArchiveOptions { place: place.clone(), form: ArchiveFormat::Lz4, before_sequence: Some(1000) };
    let archived = archive(&path, &archive_options, |_| ()).unwrap().archived;
    assert!(archived.len() > 1);
    let (journal, _) = Journal::open(options).unwrap();
    journal.set_snapshot_sequence(2000);
    let away = directory.path().join("away");
    std::fs::rename(&place, &away).unwrap();
    let boundary = archived[1].last_sequence + 1;
    journal.preparer().delete_before(boundary);
    work_off(&journal);
    assert_eq!(journal.first_sequence(), 1, "the archive is not there");
    std::fs::rename(&away, &place).unwrap();
    let kept = directory.path().join("kept");
    std::fs::rename(&archived[0].path, &kept).unwrap();
    std::fs::create_dir(&archived[0].path).unwrap();
    work_off(&journal);
    assert_eq!(journal.first_sequence(), 1, "the file in the archive is still there");
    std::fs::remove_dir(&archived[0].path).unwrap();
    std::fs::rename(&kept, &archived[0].path).unwrap();
    // Simulates a crash between the removal of the two files.
    std::fs::remove_file(&archived[0].path).unwrap();
    work_off(&journal);
    assert_eq!(journal.first_sequence(), boundary);
    let left = std::fs::read_dir(&place).unwrap().count();
    assert_eq!(left, archived.len() - 2);
    assert_holds(&path, JournalEnvironment::default(), boundary, 2000, 0);
}

fn name_in_stub(path: &Path, place: &Path, stored_bytes: u64) {
    let bytes = std::fs::read(path).unwrap();
    let begin = bytes.windows(8).rposition(|window| window == b"GAPARCH\x01").unwrap();
    let place = place.as_os_str().as_encoded_bytes();
    let mut summary = bytes[begin..begin + 32].to_vec();
    summary[12..16].copy_from_slice(&(place.len() as u32).to_le_bytes());
    summary[16..24].copy_from_slice(&stored_bytes.to_le_bytes());
    summary.extend_from_slice(place);
    let sum = crc32c(&summary).to_le_bytes();
    std::fs::write(path, [&bytes[..begin], &summary, &sum].concat()).unwrap();
}

#[test]
fn stub_deletes_its_own_segment() {
    let directory = tempfile::tempdir().unwrap();
    let archived = |name: &str, stream_id| {
        let path = directory.path().join(name);
        let options = JournalOptions { environment: JournalEnvironment::default(), stream_id, ..options(&path) };
        let (mut journal, _) = Journal::open(options.clone()).unwrap();
        append(&mut journal, 2000, 10, 0);
        work_off(&journal);
        journal.close().unwrap();
        let place = directory.path().join("archive");
        let into = ArchiveOptions { place, form: ArchiveFormat::Plain, before_sequence: Some(1000) };
        (options, archive(&path, &into, |_| ()).unwrap().archived)
    };
    let (options, ours) = archived("journal", 7);
    let (_, others) = archived("other", 8);
    let (journal, _) = Journal::open(options.clone()).unwrap();
    journal.set_snapshot_sequence(2000);
    let boundary = ours[0].last_sequence + 1;
    journal.preparer().delete_before(boundary);
    let stub = options.directory.join(archived_name(1));
    let before = std::fs::read(&stub).unwrap();
    let notes = directory.path().join("notes");
    std::fs::write(&notes, vec![b'x'; 10_000]).unwrap();
    for foreign in [&notes, &others[0].path, &ours[1].path] {
        name_in_stub(&stub, foreign, foreign.metadata().unwrap().len());
        work_off(&journal);
        assert!(foreign.exists() && journal.first_sequence() == 1, "{}", foreign.display());
    }
    std::fs::write(&stub, before).unwrap();
    work_off(&journal);
    assert_eq!(journal.first_sequence(), boundary);
    assert!(!ours[0].path.exists() && !stub.exists());
}
