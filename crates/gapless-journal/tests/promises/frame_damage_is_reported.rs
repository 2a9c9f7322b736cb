//! Decision 7, case by case.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use std::path::{Path, PathBuf};

use crate::support::*;
use gapless_journal::descriptor as d;
use gapless_journal::{FrameFault, Journal, JournalError, MarkName, RecoveryCheck, RecoveryReport, RemovedTail};
use gapless_wire::{Frame, FrameError};

fn journal_with_tail(directory: &Path) -> PathBuf {
    let mut options = options(directory);
    options.segment_length_bytes = 1 << 20;
    let (mut journal, _) = Journal::open(options).unwrap();
    append(&mut journal, 100, 10, 0);
    journal.append(&batch(101, 20, 0), 101, 120).unwrap();
    drop(journal);
    segments(directory).remove(0)
}

fn journal_of_segments(directory: &Path) -> Vec<PathBuf> {
    let (mut journal, _) = Journal::open(options(directory)).unwrap();
    append(&mut journal, 1000, 10, 0);
    drop(journal);
    let found = segments(directory);
    assert!(found.len() >= 4);
    found
}

fn end_of_nonzero(path: &Path) -> u64 {
    let bytes = std::fs::read(path).unwrap();
    bytes.iter().rposition(|&byte| byte != 0).unwrap() as u64 + 1
}

fn open(directory: &Path, boot_number: u128) -> Result<(Journal, RecoveryReport), JournalError> {
    let mut options = options(directory);
    options.environment = boot(boot_number);
    Journal::open(options)
}

fn assert_corrupt(
    directory: &Path,
    boot_number: u128,
    segment: &Path,
    position: u64,
    sequence: u64,
    mark: MarkName,
) -> FrameFault {
    let opened = open(directory, boot_number).unwrap_err();
    let read = read_all(directory, boot(boot_number), 1).unwrap_err();
    let faults = [opened, read].map(|error| match error {
        JournalError::Corrupt { segment: s, position: p, sequence: q, mark: m, reason, .. } => {
            assert_eq!((s.as_path(), p, q, m), (segment, position, sequence, mark));
            reason
        }
        other => panic!("expected corruption, found: {other}"),
    });
    assert_eq!(faults[0], faults[1]);
    faults[0]
}

fn assert_cut(directory: &Path, boot_number: u128, segment: &Path, position: u64, sequence: u64) -> RemovedTail {
    let (journal, report) = open(directory, boot_number).unwrap();
    let cut = report.removed_tail.expect("damaged bytes are removed");
    assert_eq!((cut.segment.as_path(), cut.position, cut.sequence), (segment, position, sequence));
    assert_eq!(report.last_sequence, sequence - 1);
    assert_eq!(journal.last_sequence(), sequence - 1);
    drop(journal);
    assert_holds(directory, boot(boot_number), 1, sequence - 1, 0);
    cut
}

type IsExpected = fn(FrameFault) -> bool;

fn places(segment: &Path, sequence: u64) -> [(u64, IsExpected); 4] {
    let (position, _) = find_frame(segment, sequence);
    [
        (position + 64, |fault| matches!(fault, FrameFault::Frame(FrameError::PayloadChecksum { .. }))),
        (position + 9, |fault| matches!(fault, FrameFault::Frame(FrameError::HeaderChecksum { .. }))),
        (position + 61, |fault| matches!(fault, FrameFault::Frame(FrameError::HeaderChecksum { .. }))),
        (position + 57, |fault| matches!(fault, FrameFault::Frame(FrameError::HeaderChecksum { .. }))),
    ]
}

#[test]
fn vouched_bit_flip_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let segment = journal_with_tail(directory.path());
    for sequence in [1, 37, 100] {
        let (position, _) = find_frame(&segment, sequence);
        for (place, is_expected) in places(&segment, sequence) {
            flip(&segment, place, 0x10);
            let fault = assert_corrupt(directory.path(), 1, &segment, position, sequence, MarkName::Journaled);
            assert!(is_expected(fault), "{fault}");
            flip(&segment, place, 0x10);
        }
    }
    let (_journal, report) = open(directory.path(), 1).unwrap();
    assert_eq!(report.last_sequence, 120);
}

#[test]
fn damaged_vouched_padding_fails() {
    let directory = tempfile::tempdir().unwrap();
    let segment = journal_with_tail(directory.path());
    let sequence = (1..100).find(|&s| payload(s, 0).len() % 8 == 3).unwrap();
    let (position, length) = find_frame(&segment, sequence);
    flip(&segment, position + length - 1, 1);
    let fault = assert_corrupt(directory.path(), 1, &segment, position, sequence, MarkName::Journaled);
    assert_eq!(fault, FrameFault::Padding);
}

#[test]
fn vouched_zeroed_page_fails() {
    let directory = tempfile::tempdir().unwrap();
    let segment = journal_with_tail(directory.path());
    let (position, _) = find_frame(&segment, 60);
    let page = position / 4096 * 4096;
    let first_hit = (1..100)
        .find(|&s| {
            let (p, l) = find_frame(&segment, s);
            p + l > page
        })
        .unwrap();
    let (hit_position, _) = find_frame(&segment, first_hit);
    overwrite(&segment, page, &[0; 4096]);
    assert_corrupt(directory.path(), 1, &segment, hit_position, first_hit, MarkName::Journaled);
}

#[test]
fn file_cut_below_mark_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let segment = journal_with_tail(directory.path());
    let (position, _) = find_frame(&segment, 70);
    std::fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(position + 20).unwrap();
    let opened = open(directory.path(), 1).unwrap_err();
    let file_bytes = position + 20;
    assert!(
        matches!(&opened, JournalError::Corrupt { position: p, sequence: 70, reason: FrameFault::EndOfFile { file_bytes: f }, .. } if (*p, *f) == (position, file_bytes)),
        "{opened}"
    );
    assert!(read_all(directory.path(), boot(1), 1).is_err());
}

#[test]
fn damage_after_mark_is_reported() {
    for (sequence, kind) in [(101, 0), (101, 1), (105, 2), (120, 0), (110, 3)] {
        let directory = tempfile::tempdir().unwrap();
        let segment = journal_with_tail(directory.path());
        let (position, _) = find_frame(&segment, sequence);
        let (place, is_expected) = places(&segment, sequence)[kind];
        flip(&segment, place, 0x04);
        let cut = assert_cut(directory.path(), 1, &segment, position, sequence);
        assert!(is_expected(cut.reason), "{}", cut.reason);
        assert_eq!(cut.frames, 120 - sequence);
        assert!(cut.bytes > 0 && cut.to_string().contains("cut"), "{cut}");
        let (_journal, report) = open(directory.path(), 1).unwrap();
        assert!(report.removed_tail.is_none(), "a second start removes nothing: {:?}", report.removed_tail);
    }
}

#[test]
fn frames_after_mark_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    journal_with_tail(directory.path());
    let (_journal, report) = open(directory.path(), 1).unwrap();
    assert_eq!((report.last_sequence, report.removed_tail.is_none()), (120, true));
    assert_eq!(report.good_mark, (MarkName::Journaled, 100));
    assert_holds(directory.path(), boot(1), 1, 120, 0);
}

#[test]
fn file_cut_after_mark_is_padded() {
    let directory = tempfile::tempdir().unwrap();
    let segment = journal_with_tail(directory.path());
    let (position, _) = find_frame(&segment, 111);
    std::fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(position + 20).unwrap();
    let cut = assert_cut(directory.path(), 1, &segment, position, 111);
    assert_eq!(cut.reason, FrameFault::EndOfFile { file_bytes: position + 20 });
    assert_eq!(std::fs::metadata(&segment).unwrap().len(), 1 << 20);
    let (mut journal, _) = open(directory.path(), 1).unwrap();
    append(&mut journal, 2000, 50, 0);
}

#[test]
fn removed_frames_stay_removed() {
    for boot_number in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        let segment = journal_with_tail(directory.path());
        // The new frames have the same lengths and other contents, and end exactly where an intact old one begins.
        let (position, _) = find_frame(&segment, 101);
        flip(&segment, position + 64, 1);
        let mut options = options(directory.path());
        options.environment = boot(boot_number);
        let (mut journal, report) = Journal::open(options.clone()).unwrap();
        assert_eq!(report.removed_tail.map(|cut| cut.frames), Some(19));
        for sequence in 101..105 {
            let mut bytes = Vec::new();
            let other: Vec<u8> = payload(sequence, 0).iter().map(|byte| byte ^ 0xff).collect();
            push_frame(&mut bytes, sequence, &other);
            journal.append(&bytes, sequence, sequence).unwrap();
        }
        journal.commit().unwrap();
        drop(journal);
        let (_journal, report) = Journal::open(options.clone()).unwrap();
        assert_eq!((report.last_sequence, report.removed_tail.is_none()), (104, true));
        assert_eq!(read_all(directory.path(), boot(boot_number), 101).unwrap().len(), 4);
    }
}

#[test]
fn synced_mark_rules_after_reboot() {
    for (sequence, is_covered) in [(1, true), (50, true), (51, false), (100, false)] {
        let directory = tempfile::tempdir().unwrap();
        let mut options = options(directory.path());
        options.segment_length_bytes = 1 << 20;
        let (mut journal, _) = Journal::open(options).unwrap();
        append(&mut journal, 50, 10, 0);
        assert_eq!(journal.syncer().sync().unwrap(), 50);
        append(&mut journal, 50, 10, 0);
        drop(journal);
        let segment = segments(directory.path()).remove(0);
        let (position, _) = find_frame(&segment, sequence);
        flip(&segment, position + 9, 1);
        if is_covered {
            assert_corrupt(directory.path(), 2, &segment, position, sequence, MarkName::Synced);
        } else {
            assert_corrupt(directory.path(), 1, &segment, position, sequence, MarkName::Journaled);
            let before = read_all(directory.path(), boot(2), 1).unwrap();
            assert_eq!(before.len() as u64, sequence - 1, "a reader stops there");
            assert_cut(directory.path(), 2, &segment, position, sequence);
        }
    }
}

#[test]
fn damage_removes_later_segments() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 300, 10, 0);
    journal.syncer().sync().unwrap();
    append(&mut journal, 1200, 10, 0);
    drop(journal);
    let found = segments(directory.path());
    assert!(found.len() >= 5);
    let first_of = |path: &PathBuf| -> u64 {
        path.file_stem().unwrap().to_str().unwrap().trim_start_matches("prepared-").parse().unwrap()
    };
    // The second newest segment with its final name was not synced.
    let settled: Vec<&PathBuf> = found.iter().filter(|path| !path.to_string_lossy().contains("prepared")).collect();
    let victim = settled[settled.len() - 2];
    let first = first_of(victim);
    assert!(first > 300);
    let (position, _) = find_frame(victim, first + 5);
    flip(victim, position + 64 + 2, 1);
    let end_before = end_of_nonzero(victim);
    let (journal, report) = open(directory.path(), 2).unwrap();
    let cut = report.removed_tail.unwrap();
    assert_eq!((cut.position, cut.sequence), (position, first + 5));
    assert_eq!(report.last_sequence, first + 4);
    assert!(report.removed.is_empty() && cut.frames > 100, "{cut}");
    assert_eq!(cut.files.len(), found.iter().filter(|path| *path > victim).count() + 1);
    let (bad, length) = (std::fs::read(&cut.files[0]).unwrap(), 64);
    assert_eq!(bad.len() as u64, end_before);
    assert!(bad[position as usize..][..length].iter().any(|&byte| byte != 0));
    drop(journal);
    assert_holds(directory.path(), boot(2), 1, first + 4, 0);
}

#[test]
fn clean_close_is_always_vouched() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 1000, 10, 0);
    journal.close().unwrap();
    let copy = tempfile::tempdir().unwrap();
    for segment in segments(directory.path()) {
        std::fs::copy(&segment, copy.path().join(segment.file_name().unwrap())).unwrap();
    }
    assert_holds(copy.path(), boot(9), 1, 1000, 0);
    let newest = segments(copy.path()).pop().unwrap();
    let (position, _) = find_frame(&newest, 1000);
    flip(&newest, position + 30, 1);
    assert_corrupt(copy.path(), 9, &newest, position, 1000, MarkName::Synced);
}

#[test]
fn unread_segments_are_checked() {
    let directory = tempfile::tempdir().unwrap();
    let found = journal_of_segments(directory.path());
    let (position, _) = find_frame(&found[1], 301);
    flip(&found[1], position + 64, 1);
    let (journal, _) = open(directory.path(), 1).unwrap();
    drop(journal);
    let replayed = read_all(directory.path(), boot(1), 1).unwrap_err();
    assert!(matches!(replayed, JournalError::Corrupt { sequence: 301, .. }), "{replayed}");
    let mut options = options(directory.path());
    options.check = RecoveryCheck::All;
    let opened = Journal::open(options).unwrap_err();
    assert!(matches!(opened, JournalError::Corrupt { sequence: 301, .. }), "{opened}");
}

#[test]
fn damaged_header_names_segment() {
    let directory = tempfile::tempdir().unwrap();
    let found = journal_of_segments(directory.path());
    let original = std::fs::read(&found[1]).unwrap()[..4096].to_vec();
    let refuse = |position: u64, bytes: &[u8]| {
        overwrite(&found[1], position, bytes);
        let errors = [open(directory.path(), 1).unwrap_err(), read_all(directory.path(), boot(1), 1).unwrap_err()];
        overwrite(&found[1], 0, &original);
        let [error, read] = errors;
        assert_eq!(error.to_string(), read.to_string());
        assert!(error.to_string().contains(found[1].to_str().unwrap()), "{error}");
        error
    };
    assert!(matches!(refuse(40, &[0xff]), JournalError::HeaderDamaged { position: 124, .. }));
    assert!(matches!(refuse(0, &[0; 4096]), JournalError::NotASegment { .. }));
    assert!(matches!(
        refuse(d::OPENED_MARK_OFFSET as u64, &[7; 64]),
        JournalError::HeaderDamaged { position: 1024, .. }
    ));
    let mut header = d::FixedHeader::from_bytes(original[..128].try_into().unwrap()).unwrap();
    let mut other_version = header.to_bytes();
    other_version[8] = 2;
    let sum = gapless_wire::checksum::crc32c(&other_version[..124]);
    other_version[124..].copy_from_slice(&sum.to_le_bytes());
    assert!(matches!(refuse(0, &other_version), JournalError::Version { found: 2, expected: 1, .. }));
    header.stream_id ^= 1;
    assert!(matches!(refuse(0, &header.to_bytes()), JournalError::ForeignStream { .. }));
    header.stream_id ^= 1;
    header.incarnation ^= 1;
    assert!(matches!(refuse(0, &header.to_bytes()), JournalError::ForeignIncarnation { .. }));
    header.incarnation ^= 1;
    header.frames_offset += 4096;
    assert!(matches!(refuse(0, &header.to_bytes()), JournalError::HeaderDamaged { position: 48, .. }));
    let (_journal, report) = open(directory.path(), 1).unwrap();
    assert_eq!(report.last_sequence, 1000);
}

#[test]
fn needed_damaged_mark_fails() {
    let directory = tempfile::tempdir().unwrap();
    journal_of_segments(directory.path());
    let newest = segments(directory.path()).into_iter().max_by_key(|path| {
        d::FixedHeader::from_bytes(std::fs::read(path).unwrap()[..128].try_into().unwrap()).unwrap().number
    });
    let newest = newest.unwrap();
    let original = std::fs::read(&newest).unwrap()[..4096].to_vec();
    let open_with = |offset: usize, length: usize, boot_number| {
        overwrite(&newest, offset as u64, &vec![0xa5; length]);
        let opened = open(directory.path(), boot_number).map(|(_, report)| report.last_sequence);
        overwrite(&newest, 0, &original);
        opened
    };
    for (offset, name) in [(d::JOURNALED_MARK_OFFSET, MarkName::Journaled), (d::SYNCED_MARK_OFFSET, MarkName::Synced)] {
        let boot_number = if name == MarkName::Journaled { 1 } else { 2 };
        let refused = open_with(offset, 64, boot_number).unwrap_err();
        assert!(matches!(&refused, JournalError::MarkDamaged { mark, .. } if *mark == name), "{refused}");
    }
    let refused = open_with(d::BOOT_MARK_OFFSET, 64, 1).unwrap_err();
    assert!(matches!(refused, JournalError::HeaderDamaged { position: 512, .. }), "{refused}");
}

#[test]
fn torn_mark_slot_loses_nothing() {
    for slot in [0, 32] {
        let directory = tempfile::tempdir().unwrap();
        let segment = journal_with_tail(directory.path());
        overwrite(&segment, (d::JOURNALED_MARK_OFFSET + slot) as u64, &[0xee; 32]);
        let (_journal, report) = open(directory.path(), 1).unwrap();
        assert_eq!(report.last_sequence, 120);
        assert!(report.good_mark.1 >= 90);
    }
}

#[test]
fn misplaced_mark_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let segment = journal_with_tail(directory.path());
    // A mark with a valid checksum and a wrong position, as after a misdirected write.
    let (position, _) = find_frame(&segment, 100);
    set_mark(&segment, d::JOURNALED_MARK_OFFSET, position, 100);
    let refused = open(directory.path(), 1).unwrap_err();
    assert!(matches!(refused, JournalError::Corrupt { reason: FrameFault::MarkDisagrees { .. }, .. }), "{refused}");
}

#[test]
fn missing_segment_is_a_gap() {
    let directory = tempfile::tempdir().unwrap();
    let found = journal_of_segments(directory.path());
    let set_apart = directory.path().join("aside");
    std::fs::rename(&found[1], &set_apart).unwrap();
    for boot_number in [1, 2] {
        let opened = open(directory.path(), boot_number).unwrap_err();
        let read = read_all(directory.path(), boot(boot_number), 1).unwrap_err();
        for error in [opened, read] {
            assert!(
                matches!(&error, JournalError::Gap { before, after, .. } if *before == found[0] && *after == found[2]),
                "{error}"
            );
        }
    }
    std::fs::rename(&set_apart, &found[1]).unwrap();
    assert_eq!(open(directory.path(), 1).unwrap().1.last_sequence, 1000);
}

#[test]
fn gap_after_unsealed_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let found = journal_of_segments(directory.path());
    let (position, last_sequence) = mark_of(&found[0], d::JOURNALED_MARK_OFFSET);
    assert_ne!(position & d::SEALED_BIT, 0);
    set_mark(&found[0], d::JOURNALED_MARK_OFFSET, position & !d::SEALED_BIT, last_sequence);
    assert_eq!(read_all(directory.path(), boot(1), 1).unwrap().len(), 1000);
    let set_apart = directory.path().join("aside");
    std::fs::rename(&found[1], &set_apart).unwrap();
    let opened = open(directory.path(), 1).unwrap_err();
    assert!(matches!(&opened, JournalError::Corrupt { segment, .. } if *segment == found[0]), "{opened}");
    let read = read_all(directory.path(), boot(1), 1).unwrap_err();
    assert!(
        matches!(&read, JournalError::Gap { before, after, .. } if *before == found[0] && *after == found[2]),
        "{read}"
    );
    std::fs::rename(&set_apart, &found[1]).unwrap();
    assert_eq!(open(directory.path(), 1).unwrap().1.last_sequence, 1000);
}

#[test]
fn lost_newest_segment_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 1000, 10, 0);
    journal.syncer().sync().unwrap();
    drop(journal);
    let found = segments(directory.path());
    std::fs::remove_file(found.last().unwrap()).unwrap();
    let refused = open(directory.path(), 1).unwrap_err();
    assert!(
        matches!(&refused, JournalError::NewestMissing { newest, .. } if *newest == found[found.len() - 2]),
        "{refused}"
    );
    assert!(matches!(read_all(directory.path(), boot(1), 1), Err(JournalError::SuccessorMissing { .. })));
}

#[test]
fn misplaced_segment_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let found = journal_of_segments(directory.path());
    let other_name = directory.path().join(d::segment_name(77));
    std::fs::copy(&found[1], &other_name).unwrap();
    let refused = open(directory.path(), 1).unwrap_err();
    assert!(matches!(refused, JournalError::NameMismatch { .. }), "{refused}");
    let prepared_name = directory.path().join(d::prepared_name(77));
    std::fs::rename(&other_name, &prepared_name).unwrap();
    let refused = open(directory.path(), 1).unwrap_err();
    assert!(matches!(refused, JournalError::Duplicate { .. }), "{refused}");
    std::fs::remove_file(&prepared_name).unwrap();
    assert_eq!(open(directory.path(), 1).unwrap().1.last_sequence, 1000);
}

#[test]
fn foreign_segment_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    journal_of_segments(directory.path());
    let mut foreign = options(directory.path());
    foreign.stream_id += 1;
    let refused = Journal::open(foreign).unwrap_err();
    assert!(
        matches!(refused, JournalError::ForeignStream { expected, found, .. } if expected == STREAM + 1 && found == STREAM)
    );

    let other = tempfile::tempdir().unwrap();
    let mut later = options(other.path());
    later.first_sequence = 1001;
    drop(Journal::open(later).unwrap());
    let segment = segments(other.path()).remove(0);
    std::fs::copy(&segment, directory.path().join(segment.file_name().unwrap())).unwrap();
    let refused = open(directory.path(), 1).unwrap_err();
    assert!(matches!(refused, JournalError::ForeignIncarnation { .. }), "{refused}");
}

#[test]
fn destroyed_index_is_rebuilt() {
    let directory = tempfile::tempdir().unwrap();
    let found = journal_of_segments(directory.path());
    for (i, segment) in found.iter().enumerate() {
        overwrite(segment, 4096, &vec![if i % 2 == 0 { 0 } else { 0x5b }; 4096]);
    }
    for from in [1, 100, 555, 999] {
        assert_holds(directory.path(), boot(1), from, 1000, 0);
    }
    drop(open(directory.path(), 1).unwrap());
    for segment in segments(directory.path()) {
        let bytes = std::fs::read(&segment).unwrap();
        let first = u64::from_le_bytes(bytes[4096..4104].try_into().unwrap());
        let position = u64::from_le_bytes(bytes[4104..4112].try_into().unwrap());
        assert_eq!(Frame::parse(&bytes[position as usize..]).unwrap().sequence(), first, "rebuilt by opening");
    }
}

#[test]
fn unused_segment_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    append(&mut journal, 200, 10, 0);
    while journal.preparer().run_once().unwrap() {}
    drop(journal);
    std::fs::write(directory.path().join(d::prepared_name(99)), b"died while it was made").unwrap();
    let leftovers =
        segments(directory.path()).iter().filter(|path| path.to_string_lossy().contains("prepared")).count();
    assert_eq!(leftovers, 2);
    let (_journal, report) = open(directory.path(), 1).unwrap();
    assert_eq!((report.removed.len(), report.last_sequence), (2, 200));
}
