//! Ordering argument 3: a free cursor never returns a frame that was overwritten during the copy, and finds every frame
//! that is still there.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::model::{FRAME_LENGTH, check, frame, parts, window};
use gapless_log::{FreeRead, Releaser, WindowWriter};
use loom::thread;

fn append_and_release(writer: &mut WindowWriter, releaser: &mut Releaser, sequence: u64) {
    writer.append(&frame(sequence, sequence * 10), sequence).unwrap();
    writer.publish();
    releaser.release(writer.tail(), sequence);
}

#[test]
fn torn_copy_is_discarded() {
    check(3, || {
        let (mut writer, mut releaser) = window(2);
        for sequence in 1..=2 {
            append_and_release(&mut writer, &mut releaser, sequence);
        }
        let mut cursor = writer.window().free_cursor(1);
        let publisher = thread::spawn(move || append_and_release(&mut writer, &mut releaser, 3));
        let mut buffer = Vec::new();
        let mut expected = 1;
        for _ in 0..2 {
            match cursor.read(&mut buffer).unwrap() {
                FreeRead::Frame(_) => {
                    assert_eq!(parts(&buffer), (expected, expected * 10));
                    expected += 1;
                }
                found => {
                    assert_eq!((found, expected), (FreeRead::Lapped { from_sequence: 1 }, 1), "only frame 1 goes");
                    break;
                }
            }
        }
        publisher.join().unwrap();
    });
}

#[test]
fn announced_range_is_never_read() {
    check(3, || {
        let (mut writer, mut releaser) = window(4);
        writer.announce_ahead(FRAME_LENGTH as u64);
        for sequence in 1..=4 {
            append_and_release(&mut writer, &mut releaser, sequence);
        }
        let mut cursor = writer.window().free_cursor(1);
        let publisher = thread::spawn(move || {
            append_and_release(&mut writer, &mut releaser, 5);
            append_and_release(&mut writer, &mut releaser, 6);
        });
        let mut buffer = Vec::new();
        let mut expected = 1;
        while expected <= 3 {
            match cursor.read(&mut buffer).unwrap() {
                FreeRead::Frame(_) => {
                    assert_eq!(parts(&buffer), (expected, expected * 10));
                    expected += 1;
                }
                found => {
                    assert_eq!(found, FreeRead::Lapped { from_sequence: expected });
                    assert!(expected <= 2, "frames 1 and 2 go, the others stay");
                    break;
                }
            }
        }
        publisher.join().unwrap();
    });
}

#[test]
fn abandoned_claim_loses_old_frames() {
    check(3, || {
        let (mut writer, mut releaser) = window(2);
        for sequence in 1..=2 {
            append_and_release(&mut writer, &mut releaser, sequence);
        }
        let mut cursor = writer.window().free_cursor(1);
        let publisher = thread::spawn(move || {
            // Never published, but frame 1 is gone.
            writer.append(&frame(3, 30), 3).unwrap();
            writer.truncate_after(2).unwrap();
        });
        let mut buffer = Vec::new();
        match cursor.read(&mut buffer).unwrap() {
            FreeRead::Frame(_) => assert_eq!(parts(&buffer), (1, 10)),
            found => assert_eq!(found, FreeRead::Lapped { from_sequence: 1 }),
        }
        publisher.join().unwrap();
    });
}

#[test]
fn released_frame_is_found_by_sequence() {
    check(3, || {
        let (mut writer, mut releaser) = window(4);
        append_and_release(&mut writer, &mut releaser, 1);
        let mut cursor = writer.window().free_cursor(2);
        let publisher = thread::spawn(move || {
            append_and_release(&mut writer, &mut releaser, 2);
            append_and_release(&mut writer, &mut releaser, 3);
        });
        let mut buffer = Vec::new();
        for _ in 0..2 {
            let sequence = cursor.sequence();
            match cursor.read(&mut buffer).unwrap() {
                FreeRead::Frame(length) => {
                    assert_eq!((length, parts(&buffer)), (FRAME_LENGTH, (sequence, sequence * 10)));
                }
                found => assert_eq!(found, FreeRead::Empty, "nothing is lapped here"),
            }
        }
        publisher.join().unwrap();
    });
}
