//! A cursor of scope `Released` sees only whole released frames, though it never synchronises with the writer itself.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::model::{FRAME_LENGTH, check, frame, parts, window};
use gapless_log::Scope;
use loom::thread;

#[test]
fn only_whole_released_frames_are_seen() {
    check(2, || {
        let (mut writer, mut releaser) = window(2);
        let window = writer.window();
        let mut cursor = writer.gating_cursor(Scope::Released);
        let sequencer = thread::spawn(move || {
            for sequence in 1..=2 {
                writer.append(&frame(sequence, sequence * 10), sequence).unwrap();
                writer.publish();
            }
        });
        let journaler = thread::spawn({
            let window = window.clone();
            move || {
                if window.appended() > 0 {
                    releaser.release(FRAME_LENGTH as u64, 1);
                }
            }
        });
        let mut bytes = Vec::new();
        cursor.copy_available(&mut bytes).unwrap();
        if !bytes.is_empty() {
            assert_eq!(bytes.len(), FRAME_LENGTH, "frame 2 is not released");
            assert_eq!(parts(&bytes), (1, 10));
            assert!(window.appended() >= window.released());
        }
        sequencer.join().unwrap();
        journaler.join().unwrap();
    });
}
