//! A reader of segments that are truncated later continues with those that replace them.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::support::{self, options, push_frame};
use gapless_journal::{Journal, JournalError, JournalOptions, JournalReader, Replay};
use gapless_wire::Frame;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

fn append(journal: &mut Journal, length: usize) {
    let (mut bytes, sequence) = (Vec::new(), journal.last_sequence() + 1);
    push_frame(&mut bytes, sequence, &vec![7; length]);
    journal.append(&bytes, sequence, sequence).unwrap();
    journal.commit().unwrap();
}

fn read(replay: &mut Replay, last: u64) {
    while replay.next_sequence() <= last {
        let due = replay.next_sequence();
        assert_eq!(replay.next_frame().unwrap().map(|frame| frame.sequence()), Some(due));
    }
}

fn two_segments(directory: &std::path::Path) -> (Journal, Replay, u64) {
    let (mut journal, _) = Journal::open(options(directory)).unwrap();
    while journal.segments_begun() < 2 {
        append(&mut journal, 1000);
    }
    let second = journal.last_sequence();
    append(&mut journal, 1000);
    journal.sync().unwrap();
    let replay = JournalReader::open_in(directory, support::boot(1)).unwrap().replay(1).unwrap();
    (journal, replay, second)
}

#[test]
fn reader_finds_earlier_segment() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, mut replay, second) = two_segments(directory.path());
    read(&mut replay, 3);
    journal.truncate_after(second - 10).unwrap();
    while journal.segments_begun() < 3 {
        append(&mut journal, 1900);
    }
    let last = journal.last_sequence();
    assert!(last < second, "longer frames fill a segment sooner");
    journal.sync().unwrap();
    read(&mut replay, last);
    assert!(replay.next_frame().unwrap().is_none());
}

#[test]
fn reader_waits_for_next_segment() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, mut replay, second) = two_segments(directory.path());
    read(&mut replay, second - 1);
    journal.truncate_after(second - 1).unwrap();
    assert!(replay.next_frame().unwrap().is_none());
    append(&mut journal, 1900);
    journal.sync().unwrap();
    read(&mut replay, second);
    assert!(replay.next_frame().unwrap().is_none());
}

fn half_read(directory: &std::path::Path) -> (Journal, Replay) {
    let (mut journal, _) = Journal::open(options(directory)).unwrap();
    (0..10).for_each(|_| append(&mut journal, 100));
    let mut replay = JournalReader::open_in(directory, support::boot(1)).unwrap().replay(1).unwrap();
    replay.read_until(5);
    read(&mut replay, 5);
    (journal, replay)
}

#[test]
fn frames_after_limit_are_hidden() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, mut replay) = half_read(directory.path());
    assert!(replay.next_frame().unwrap().is_none());
    assert!(!replay.has_next().unwrap() && replay.next_batch().unwrap().is_none());
    journal.truncate_after(5).unwrap();
    assert!(replay.next_frame().unwrap().is_none());
    (0..3).for_each(|_| append(&mut journal, 333));
    replay.read_until(7);
    for _ in 6..=7 {
        assert_eq!(replay.next_frame().unwrap().unwrap().payload().len(), 333);
    }
    assert!(replay.next_frame().unwrap().is_none());
}

#[test]
fn prechecked_frames_are_replaced() {
    for length in [10, 100, 333] {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, mut replay) = half_read(directory.path());
        replay.read_until(u64::MAX);
        assert!(replay.has_next().unwrap(), "all ten are checked ahead");
        journal.truncate_after(5).unwrap();
        (0..2).for_each(|_| append(&mut journal, length));
        for sequence in 6..=7 {
            let frame = replay.next_frame().unwrap().unwrap();
            assert_eq!((frame.sequence(), frame.payload().len()), (sequence, length));
        }
        if length == 333 {
            assert!(replay.next_frame().unwrap().is_none());
        }
    }
}

#[test]
fn truncated_frames_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, mut replay) = half_read(directory.path());
    replay.read_until(u64::MAX);
    read(&mut replay, 10);
    journal.truncate_after(5).unwrap();
    for _ in 0..2 {
        let error = replay.next_frame().unwrap_err();
        assert!(matches!(error, JournalError::Rewound { .. }), "{error}");
    }
}

#[test]
fn rewritten_segment_has_new_boot() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, _, second) = two_segments(directory.path());
    drop(journal);
    let again = JournalOptions { environment: support::boot(2), ..options(directory.path()) };
    let (mut journal, report) = Journal::open(again.clone()).unwrap();
    assert!(!report.is_same_boot);
    journal.truncate_after(second - 10).unwrap();
    let reader = JournalReader::open_in(directory.path(), support::boot(2)).unwrap();
    assert!(reader.is_same_boot());
    let mut replay = reader.replay(1).unwrap();
    read(&mut replay, second - 10);
    append(&mut journal, 1000);
    drop(journal);
    read(&mut replay, second - 9);

    // Damage in a frame journaled on this boot is an error, not a shorter journal.
    let (path, position) = replay.position();
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[8; 16], position - 500).unwrap();
    let error = Journal::open(again).unwrap_err();
    assert!(matches!(error, JournalError::Corrupt { .. }), "{error}");
}

#[test]
fn replaced_segment_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, mut replay, second) = two_segments(directory.path());
    read(&mut replay, second - 2);
    journal.truncate_after(second - 1).unwrap();
    append(&mut journal, 1900);
    journal.commit().unwrap();
    // The segment has no final name yet.
    assert!(!directory.path().join(format!("{second:020}.segment")).exists());
    read(&mut replay, second);
    assert!(replay.next_frame().unwrap().is_none());
}

#[test]
fn returned_frames_do_not_change() {
    for by_batch in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, mut replay) = half_read(directory.path());
        replay.read_until(u64::MAX);
        let returned: Vec<Frame<'_>> = match by_batch {
            false => replay.next_frame().unwrap().into_iter().collect(),
            true => replay.next_batch().unwrap().unwrap().collect(),
        };
        let before: Vec<Vec<u8>> = returned.iter().map(|frame| frame.bytes().to_vec()).collect();
        journal.truncate_after(5).unwrap();
        (0..5).for_each(|_| append(&mut journal, 333));
        assert!(returned.iter().map(Frame::bytes).eq(before), "a frame has changed while it was borrowed");
    }
}

fn read_during_truncations(limit: Option<u64>) -> u32 {
    const KEPT: u64 = 40;
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    (0..KEPT).for_each(|_| append(&mut journal, 150));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..400 {
                (0..10).for_each(|number| append(&mut journal, 1 + (round * 37 + number * 11) % 700));
                journal.truncate_after(KEPT).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let mut reported = 0;
        while !is_over.load(Ordering::Relaxed) {
            let reader = JournalReader::open_in(directory.path(), support::boot(1)).unwrap();
            let mut replay = match limit {
                Some(limit) => reader.replay_until(30, limit),
                None => reader.replay(30),
            }
            .unwrap();
            let mut due = 30;
            loop {
                match replay.next_frame() {
                    Ok(Some(frame)) => {
                        assert_eq!((frame.sequence(), frame.verify()), (due, Ok(())));
                        due += 1;
                    }
                    Ok(None) => break,
                    Err(error) => {
                        assert!(limit.is_none(), "{error}");
                        reported += 1;
                        break;
                    }
                }
            }
            assert!(due > KEPT, "kept frames are read");
            assert!(limit.is_none_or(|limit| due == limit + 1));
        }
        reported
    })
}

#[test]
fn truncation_keeps_frames_intact() {
    read_during_truncations(None);
}

#[test]
fn limit_hides_the_truncation() {
    assert_eq!(read_during_truncations(Some(40)), 0);
}

#[test]
fn reading_ends_at_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, _) = Journal::open(options(directory.path())).unwrap();
    (0..10).for_each(|_| append(&mut journal, 100));
    let reader = JournalReader::open_in(directory.path(), support::boot(1)).unwrap();
    let (_, position) = reader.replay(6).unwrap().position().to_owned();
    let mut replay = reader.replay_until(3, 5).unwrap();
    // Garbage after the limit, as in the middle of a truncation.
    let path = replay.position().0.to_owned();
    std::fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(&[9; 900], position).unwrap();
    read(&mut replay, 5);
    assert!(replay.next_frame().unwrap().is_none() && replay.next_batch().unwrap().is_none());
    replay.read_until(6);
    assert!(matches!(replay.next_frame(), Err(JournalError::Corrupt { sequence: 6, .. })));
    assert!(matches!(reader.replay_until(8, 6), Err(JournalError::NotHeld { .. } | JournalError::Corrupt { .. })));
}
