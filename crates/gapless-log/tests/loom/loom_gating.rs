//! Ordering argument 2: a frame is overwritten only after its last reader has finished with it.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::model::{FRAME_LENGTH, check, frame, parts, ring, window};
use gapless_log::{LogError, Scope, WindowWriter};
use loom::thread;

#[test]
fn wrapping_ring_spares_read_frames() {
    check(3, || {
        let (mut writer, mut reader) = ring(2);
        let publisher = thread::spawn(move || {
            let mut sequence = 1;
            for _ in 0..4 {
                match writer.append(&frame(sequence, sequence * 10)) {
                    Ok(()) => sequence += 1,
                    Err(error) => assert!(matches!(error, LogError::Full { .. }), "{error}"),
                }
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
                reader.release();
                expected += 1;
            }
        }
        publisher.join().unwrap();
    });
}

fn overwrite_first(writer: &mut WindowWriter) {
    match writer.append(&frame(3, 30), 3) {
        Ok(()) => writer.publish(),
        Err(error) => assert!(matches!(error, LogError::Full { .. }), "{error}"),
    }
}

#[test]
fn window_waits_for_slowest_cursor() {
    check(2, || {
        let (mut writer, mut releaser) = window(2);
        let cursors = [writer.gating_cursor(Scope::Appended), writer.gating_cursor(Scope::Released)];
        for sequence in 1..=2 {
            writer.append(&frame(sequence, sequence * 10), sequence).unwrap();
        }
        writer.publish();
        releaser.release(2 * FRAME_LENGTH as u64, 2);
        let readers = cursors.map(|mut cursor| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                cursor.copy_available(&mut bytes).unwrap();
                assert_eq!(parts(&bytes), (1, 10));
                cursor.advance(FRAME_LENGTH);
                // Dropping the cursor would let the writer go on.
                cursor
            })
        });
        overwrite_first(&mut writer);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn cursor_gates_until_it_is_dropped() {
    check(3, || {
        let (mut writer, mut releaser) = window(2);
        let mut cursor = writer.gating_cursor(Scope::Released);
        for sequence in 1..=2 {
            writer.append(&frame(sequence, sequence * 10), sequence).unwrap();
        }
        writer.publish();
        releaser.release(2 * FRAME_LENGTH as u64, 2);
        let reader = thread::spawn(move || {
            let mut bytes = Vec::new();
            cursor.copy_available(&mut bytes).unwrap();
            assert_eq!(parts(&bytes), (1, 10));
        });
        overwrite_first(&mut writer);
        reader.join().unwrap();
        if writer.last_sequence() == 2 {
            writer.append(&frame(3, 30), 3).unwrap();
        }
    });
}
