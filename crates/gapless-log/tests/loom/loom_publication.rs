//! Ordering argument 1: a reader that sees a frame's position sees the whole frame.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::model::{FRAME_LENGTH, check, frame, parts, ring, window};
use gapless_log::Scope;
use loom::thread;

#[test]
fn ring_reader_sees_frames_in_order() {
    check(3, || {
        let (mut writer, mut reader) = ring(2);
        let publisher = thread::spawn(move || {
            for sequence in 1..=2 {
                writer.append(&frame(sequence, sequence * 10)).unwrap();
                let _ = writer.publish();
            }
        });
        let mut buffer = [0; FRAME_LENGTH];
        let mut expected = 1;
        for _ in 0..3 {
            if let Some(length) = reader.next_length().unwrap() {
                reader.copy(&mut buffer);
                assert_eq!(parts(&buffer), (expected, expected * 10));
                reader.advance(length);
                expected += 1;
            }
        }
        publisher.join().unwrap();
    });
}

#[test]
fn batch_is_seen_as_a_whole() {
    check(3, || {
        let (mut writer, mut reader) = ring(4);
        let publisher = thread::spawn(move || {
            writer.append(&frame(1, 10)).unwrap();
            writer.append(&frame(2, 20)).unwrap();
            let _ = writer.publish();
        });
        if reader.next_length().unwrap().is_some() {
            assert_eq!(reader.known_bytes(), 2 * FRAME_LENGTH as u64);
            let mut buffer = [0; FRAME_LENGTH];
            reader.copy_at(FRAME_LENGTH, &mut buffer);
            assert_eq!(parts(&buffer), (2, 20));
        }
        publisher.join().unwrap();
    });
}

#[test]
fn cursor_sees_whole_frames_in_order() {
    check(3, || {
        let (mut writer, _releaser) = window(4);
        let mut cursor = writer.gating_cursor(Scope::Appended);
        let publisher = thread::spawn(move || {
            for sequence in 1..=2 {
                writer.append(&frame(sequence, sequence * 10), sequence).unwrap();
                writer.publish();
            }
        });
        let mut expected = 1;
        for _ in 0..3 {
            let mut bytes = Vec::new();
            cursor.copy_available(&mut bytes).unwrap();
            for each in bytes.chunks(FRAME_LENGTH) {
                assert_eq!(parts(each), (expected, expected * 10));
                expected += 1;
            }
            cursor.advance(bytes.len());
        }
        publisher.join().unwrap();
    });
}

#[test]
fn closed_ring_is_readable_to_its_end() {
    check(3, || {
        let (mut writer, mut reader) = ring(2);
        let publisher = thread::spawn(move || {
            writer.append(&frame(1, 10)).unwrap();
            let _ = writer.publish();
        });
        if reader.is_writer_closed() {
            assert_eq!(reader.next_length().unwrap(), Some(FRAME_LENGTH), "closed before its last frame was seen");
        }
        publisher.join().unwrap();
    });
}
