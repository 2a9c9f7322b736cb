//! A cursor beyond the cut learns of it and reads no mixture of old and new bytes.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::model::{FRAME_LENGTH, check, frame, parts, window};
use gapless_log::{GatingCursor, LogError, Scope, WindowWriter};
use loom::thread;

/// A reader gives up a frame only after an error says so.
#[derive(Default)]
struct Belief(Vec<(u64, u64)>);

impl Belief {
    fn poll(&mut self, cursor: &mut GatingCursor) {
        let mut bytes = Vec::new();
        match cursor.copy_available(&mut bytes) {
            Ok(()) => {
                for each in bytes.chunks(FRAME_LENGTH) {
                    let (sequence, mark) = parts(each);
                    assert_eq!(sequence, self.0.len() as u64 + 1, "a sequence came twice or not at all");
                    self.0.push((sequence, mark));
                }
                cursor.advance(bytes.len());
            }
            Err(LogError::Truncated { position, .. }) => {
                self.0.truncate(position as usize / FRAME_LENGTH);
                cursor.rewind();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn replace_second(writer: &mut WindowWriter) {
    writer.truncate_after(1).unwrap();
    append_second(writer);
}

fn append_second(writer: &mut WindowWriter) {
    match writer.append(&frame(2, 21), 2) {
        Ok(()) => writer.publish(),
        Err(error) => assert!(matches!(error, LogError::Full { .. }), "{error}"),
    }
}

#[test]
fn cursor_sees_the_cut_first() {
    check(3, || {
        let (mut writer, _releaser) = window(4);
        let mut cursor = writer.gating_cursor(Scope::Appended);
        for sequence in 1..=2 {
            writer.append(&frame(sequence, sequence * 10), sequence).unwrap();
            writer.publish();
        }
        let sequencer = thread::spawn(move || {
            replace_second(&mut writer);
            writer
        });
        let mut belief = Belief::default();
        for _ in 0..2 {
            belief.poll(&mut cursor);
        }
        let mut writer = sequencer.join().unwrap();
        belief.poll(&mut cursor);
        if writer.last_sequence() == 1 {
            append_second(&mut writer);
        }
        while belief.0.last() != Some(&(2, 21)) {
            belief.poll(&mut cursor);
        }
        assert_eq!(belief.0, [(1, 10), (2, 21)]);
    });
}

#[test]
fn late_cursor_is_not_overrun() {
    check(3, || {
        let (mut writer, _releaser) = window(4);
        let mut cursor = writer.gating_cursor(Scope::Appended);
        for sequence in 1..=2 {
            writer.append(&frame(sequence, sequence * 10), sequence).unwrap();
        }
        writer.publish();
        let reader = thread::spawn(move || {
            let mut belief = Belief::default();
            belief.poll(&mut cursor);
            belief.poll(&mut cursor);
            (belief, cursor)
        });
        writer.truncate_after(1).unwrap();
        append_second(&mut writer);
        append_second_later(&mut writer);
        let (mut belief, mut cursor) = reader.join().unwrap();
        belief.poll(&mut cursor);
        append_second_later(&mut writer);
        while belief.0.last() != Some(&(2, 21)) {
            belief.poll(&mut cursor);
        }
        assert_eq!(belief.0, [(1, 10), (2, 21)]);
    });
}

#[test]
fn both_of_two_cuts_are_noted() {
    check(3, || {
        let (mut writer, _releaser) = window(4);
        let mut cursor = writer.gating_cursor(Scope::Appended);
        let mut belief = Belief::default();
        for sequence in 1..=3 {
            writer.append(&frame(sequence, sequence * 10), sequence).unwrap();
        }
        writer.publish();
        belief.poll(&mut cursor);
        let reader = thread::spawn(move || {
            belief.poll(&mut cursor);
            belief.poll(&mut cursor);
            (belief, cursor)
        });
        writer.truncate_after(2).unwrap();
        writer.truncate_after(1).unwrap();
        append_second(&mut writer);
        let (mut belief, mut cursor) = reader.join().unwrap();
        belief.poll(&mut cursor);
        append_second_later(&mut writer);
        while belief.0.last() != Some(&(2, 21)) {
            belief.poll(&mut cursor);
        }
        assert_eq!(belief.0, [(1, 10), (2, 21)]);
    });
}

#[test]
fn read_after_cut_is_whole() {
    check(3, || {
        let (mut writer, _releaser) = window(4);
        let mut cursor = writer.gating_cursor(Scope::Appended);
        let sequencer = thread::spawn(move || {
            for attempt in 0..2 {
                // The second time the space is announced already, so no fence helps.
                for sequence in 1..=2 {
                    writer.append(&frame(sequence, sequence * 10 + attempt), sequence).unwrap();
                }
                if attempt == 0 {
                    writer.truncate_after(0).unwrap();
                }
            }
            writer.publish();
            writer.truncate_after(1).unwrap();
        });
        let mut belief = Belief::default();
        belief.poll(&mut cursor);
        assert!(belief.0.iter().all(|(sequence, mark)| *mark == sequence * 10 + 1), "{:?}", belief.0);
        sequencer.join().unwrap();
    });
}

fn append_second_later(writer: &mut WindowWriter) {
    if writer.last_sequence() == 1 {
        append_second(writer);
    }
}
