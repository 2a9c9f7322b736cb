//! Ordering argument 4: a reader that goes to sleep with a frame before it is always reported to the writer.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::model::{check, frame, ring};
use loom::thread;

#[test]
fn no_wake_up_is_lost() {
    check(3, || {
        let (mut writer, mut reader) = ring(2);
        let publisher = thread::spawn(move || {
            writer.append(&frame(1, 10)).unwrap();
            (writer.publish(), writer)
        });
        reader.arm();
        let sleeps = reader.next_length().unwrap().is_none();
        let (is_told_to_wake, _writer) = publisher.join().unwrap();
        assert!(!sleeps || is_told_to_wake, "the reader sleeps without a wake-up");
    });
}

#[test]
fn reader_is_reported_at_each_sleep() {
    check(3, || {
        let (mut writer, mut reader) = ring(4);
        let publisher = thread::spawn(move || {
            for sequence in 1..=2 {
                writer.append(&frame(sequence, sequence * 10)).unwrap();
                if sequence == 1 {
                    let _ = writer.publish();
                }
            }
            (writer.publish(), writer)
        });
        reader.arm();
        if let Some(length) = reader.next_length().unwrap() {
            reader.disarm();
            reader.advance(length);
            reader.arm();
            let sleeps = reader.next_length().unwrap().is_none();
            let (is_told_to_wake, _writer) = publisher.join().unwrap();
            assert!(!sleeps || is_told_to_wake, "the reader sleeps and nobody wakes it");
        } else {
            publisher.join().unwrap();
        }
    });
}
