#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_log::{LogError, WindowOptions, WindowWriter};
use gapless_wire::{Frame, FrameHeader, FrameWriter, HEADER_LENGTH};

const CAPACITY_BYTES: usize = 64 << 10;
const INDEX_SLOTS: usize = 256;

fn append(writer: &mut WindowWriter, sequence: u64, length: usize) -> Result<(), LogError> {
    let claim = writer.claim(HEADER_LENGTH + length)?;
    let mut frame = FrameWriter::new(claim);
    frame.payload_mut()[..length].fill(sequence as u8);
    let length = frame.finish(&FrameHeader { sequence, ..FrameHeader::default() }, length);
    claim[length..].fill(0);
    writer.commit(length, sequence);
    writer.publish();
    Ok(())
}

fn check(writer: &WindowWriter, first: u64, last: u64) {
    let mut bytes = writer.frames(first, last).unwrap_or_else(|| panic!("{first} to {last} are there"));
    for sequence in first..=last {
        let frame = Frame::parse(bytes).unwrap();
        frame.verify().unwrap();
        assert_eq!(frame.sequence(), sequence);
        assert!(frame.payload().iter().all(|byte| *byte == sequence as u8));
        bytes = &bytes[frame.length().next_multiple_of(8)..];
    }
    assert!(bytes.is_empty(), "nothing else");
}

#[test]
fn only_kept_frames_are_found() {
    for payload in [0, 40, 900] {
        let options = WindowOptions {
            capacity_bytes: CAPACITY_BYTES,
            index_slots: INDEX_SLOTS,
            frame_length_max: 4096,
            ..WindowOptions::default()
        };
        let (mut writer, mut releaser) = options.create(1000).unwrap();
        assert!(
            writer.frames(1, 1).is_none() && writer.frames(999, 999).is_none() && writer.frames(1000, 1000).is_none()
        );
        assert_eq!(writer.end_of(999), Some(0));
        for sequence in 1000..4000 {
            append(&mut writer, sequence, payload + (sequence % 7) as usize).unwrap();
            releaser.release(writer.tail(), sequence);
            let held = (INDEX_SLOTS as u64).min((CAPACITY_BYTES / 2 / (payload + HEADER_LENGTH + 16)) as u64);
            let first = (sequence + 1).saturating_sub(held).max(1000);
            check(&writer, first, sequence);
            check(&writer, first, first);
            assert_eq!(writer.end_of(sequence), Some(writer.tail()));
            assert!(writer.frames(first, sequence + 1).is_none() && writer.frames(sequence, first - 1).is_none());
            assert!(writer.frames(999, sequence).is_none() && writer.frames(0, sequence).is_none());
            for length in [0, 100, 5_000, CAPACITY_BYTES / 2, usize::MAX] {
                let near = writer.first_within(length);
                let fits = |first| writer.frames(first, sequence).is_some_and(|frames| frames.len() <= length);
                assert!(near > sequence || fits(near), "{near} to {sequence} are within {length} bytes");
                assert!(!fits(near - 1), "{} to {sequence} are within {length} bytes, too", near - 1);
            }
            if sequence > 1000 + 2 * INDEX_SLOTS as u64 {
                assert!(writer.frames(sequence - INDEX_SLOTS as u64, sequence).is_none(), "the index slot was reused");
            }
        }
    }
}

#[test]
fn overwritten_and_cut_frames_are_gone() {
    let options = WindowOptions {
        capacity_bytes: CAPACITY_BYTES,
        index_slots: 1 << 12,
        frame_length_max: 4096,
        ..WindowOptions::default()
    };
    let (mut writer, mut releaser) = options.create(1).unwrap();
    for sequence in 1..=200 {
        append(&mut writer, sequence, 1000).unwrap();
        releaser.release(writer.tail(), sequence);
    }
    assert!(writer.frames(1, 200).is_none() && writer.frames(100, 200).is_none(), "64 KiB hold 61 frames of 1,064");
    check(&writer, 145, 200);
    let end = writer.tail();
    for sequence in 201..=210 {
        append(&mut writer, sequence, 100).unwrap();
    }
    writer.truncate_after(205).unwrap();
    check(&writer, 160, 205);
    assert!(writer.frames(206, 206).is_none() && writer.frames(205, 206).is_none());
    assert_eq!(writer.end_of(200), Some(end));
    append(&mut writer, 206, 333).unwrap();
    check(&writer, 200, 206);
}
