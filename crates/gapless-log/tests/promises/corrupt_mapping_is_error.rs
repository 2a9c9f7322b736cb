//! Arbitrary words anywhere in a mapping: an error, or bytes for `Frame::parse` to judge, after a bounded number of
//! steps.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gapless_log::{
    FreeCursor, FreeRead, LogError, MemoryKind, RingReader, RingWriter, StreamIdentity, Window, WindowOptions, ring,
};
use gapless_wire::{Frame, FrameHeader, FrameWriter, aligned_length};
use proptest::prelude::*;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

const CAPACITY: usize = 4096;
const FRAMES_MAX: usize = CAPACITY / 64 + 1;
const INDEX_SLOTS: usize = 16;

const LIVE_WORDS: [u64; 8] = [128, 136, 256, 264, 384, 512, 640, 768];

fn frame(sequence: u64, payload_length: usize) -> Vec<u8> {
    let mut bytes = vec![0; aligned_length(64 + payload_length)];
    FrameWriter::new(&mut bytes).finish(&FrameHeader { sequence, ..FrameHeader::default() }, payload_length);
    bytes
}

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0_u64..2048).prop_map(|each| each * 8),
        (0_u64..5000),
        (0_u64..5000).prop_map(|each| u64::MAX - each),
        (0_u64..64).prop_map(|each| (1 << each) - 1),
        (64_u64..300, any::<u32>()).prop_map(|(length, rest)| u64::from(rest) << 32 | length),
        any::<u64>(),
    ]
}

fn offset(index_bytes: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        prop::sample::select(&LIVE_WORDS[..]),
        (0..INDEX_SLOTS as u64).prop_map(|slot| 4096 + slot * 8),
        (0..CAPACITY as u64 / 8).prop_map(move |number| 4096 + index_bytes + number * 8),
        (0_u64..64).prop_map(move |number| 4096 + index_bytes + number * 64),
    ]
}

fn scribbles(index_bytes: u64) -> impl Strategy<Value = Vec<Vec<(u64, u64)>>> {
    prop::collection::vec(prop::collection::vec((offset(index_bytes), word()), 1..6), 1..12)
}

fn write(file: &File, words: &[(u64, u64)]) {
    for (offset, value) in words {
        file.write_all_at(&value.to_le_bytes(), *offset).unwrap();
    }
}

fn drain(reader: &mut RingReader) -> Result<usize, LogError> {
    let mut count = 0;
    while let Some(length) = reader.next_length()? {
        let mut copy = vec![0; aligned_length(length)];
        reader.copy(&mut copy);
        let _ = std::hint::black_box(Frame::parse(&copy).and_then(|frame| frame.verify()));
        reader.advance(length);
        count += 1;
        assert!(count <= FRAMES_MAX, "more frames than there is room for");
    }
    reader.release();
    Ok(count)
}

fn is_expected(error: &LogError) -> bool {
    matches!(error, LogError::Corrupt { .. } | LogError::Full { .. })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: gapless_testkit::random::rounds(300, 30) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ring_ends_survive_any_words(rounds in scribbles(0), lengths in prop::collection::vec(0_usize..1900, 12)) {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("ring");
        let (mut writer, mut reader) =
            ring::create(&MemoryKind::File(path.clone()), CAPACITY, StreamIdentity::default()).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        for (words, length) in rounds.iter().zip(lengths) {
            if let Err(error) = writer.append(&frame(0, length)) {
                prop_assert!(is_expected(&error), "{}", error);
            }
            let _ = writer.publish();
            write(&file, words);
            if let Err(error) = drain(&mut reader) {
                prop_assert!(is_expected(&error), "{}", error);
            }
            match RingReader::open_file(&path) {
                Ok(mut again) => drop(drain(&mut again)),
                Err(error) => prop_assert!(is_expected(&error), "{}", error),
            }
            match RingWriter::open_file(&path) {
                Ok(mut again) => {
                    drop(again.append(&frame(0, length)));
                    let _ = (again.publish(), again.backlog_bytes(), again.is_reader_closed());
                }
                Err(error) => prop_assert!(is_expected(&error), "{}", error),
            }
        }
    }

    #[test]
    fn free_cursor_survives_any_words(rounds in scribbles(4096), starts in prop::collection::vec(word(), 12), buffer in 0_usize..300) {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("window");
        let options = WindowOptions {
            memory: MemoryKind::File(path.clone()),
            capacity_bytes: CAPACITY,
            index_slots: INDEX_SLOTS,
            frame_length_max: 1024,
            ..WindowOptions::default()
        };
        let (mut writer, mut releaser) = options.create(1).unwrap();
        for sequence in 1..=40 {
            writer.append(&frame(sequence, sequence as usize * 7), sequence).unwrap();
            writer.publish();
            releaser.release(writer.tail(), sequence);
        }
        let window = Window::open_file(&path).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let mut begun = window.free_cursor(35);
        let mut many = [0; 2400];
        for (words, start) in rounds.iter().zip(starts) {
            let mut copy = Vec::new();
            begun.read(&mut copy).ok();
            write(&file, words);
            for cursor in [&mut begun, &mut window.free_cursor(1), &mut window.free_cursor(38), &mut window.free_cursor(start)] {
                prop_assert!(read_on(cursor, &mut many[..buffer * 8])?);
            }
        }
    }

    #[test]
    fn any_header_opens_or_is_refused(words in prop::collection::vec(word(), 8), kept in 0_usize..8) {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("ring");
        ring::create(&MemoryKind::File(path.clone()), CAPACITY, StreamIdentity::default()).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let shape = || {
            let mut bytes = [0; 32];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let sound = shape();
        for (number, word) in words.iter().enumerate().skip(kept) {
            file.write_all_at(&word.to_le_bytes(), number as u64 * 8).unwrap();
        }
        // Identity and limits come after the shape and may have any value.
        let is_sound = shape() == sound;
        prop_assert_eq!(RingReader::open_file(&path).is_ok(), is_sound);
        prop_assert!(Window::open_file(&path).is_err());
    }
}

fn read_on(cursor: &mut FreeCursor, many: &mut [u8]) -> Result<bool, TestCaseError> {
    let mut copy = Vec::new();
    for _ in 0..2 * FRAMES_MAX {
        let due = cursor.sequence();
        let read = match cursor.read_many(many) {
            Ok(FreeRead::Frame(0)) => cursor.read(&mut copy),
            Ok(FreeRead::Frame(length)) => {
                prop_assert!(length <= many.len() && cursor.sequence() > due || due == u64::MAX);
                continue;
            }
            other => other,
        };
        match read {
            Ok(FreeRead::Frame(length)) => {
                prop_assert_eq!(copy.len(), length);
                prop_assert!((64..=CAPACITY / 2).contains(&length) && cursor.sequence() > due || due == u64::MAX);
                let _ = std::hint::black_box(Frame::parse(&copy).and_then(|frame| frame.verify()));
            }
            Ok(FreeRead::Empty) => return Ok(true),
            Ok(FreeRead::Lapped { from_sequence }) => {
                prop_assert_eq!((from_sequence, cursor.sequence()), (due, due));
                return Ok(true);
            }
            Err(error) => {
                prop_assert!(matches!(error, LogError::Corrupt { .. }), "{}", error);
                return Ok(true);
            }
        }
    }
    // A chain of frames is no longer than the capacity.
    Ok(false)
}

#[test]
fn reported_sequences_stay_below_max() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("window");
    let options = WindowOptions { memory: MemoryKind::File(path.clone()), ..WindowOptions::default() };
    let (_writer, _releaser) = options.create(1).unwrap();
    write(&File::options().write(true).open(&path).unwrap(), &[(136, u64::MAX), (264, u64::MAX)]);
    let window = Window::open_file(&path).unwrap();
    assert!(window.released_sequence().max(window.appended_sequence()) < u64::MAX);
}

#[test]
fn position_inside_a_frame_is_corrupt() {
    for released in [2 * 64 + 4, 2 * 64 + 1, u64::MAX, u64::MAX - 7, (1 << 62) + 8, 0, 56, 64] {
        for reads_many in [false, true] {
            let directory = TempDir::new().unwrap();
            let path = directory.path().join("window");
            let options = WindowOptions {
                memory: MemoryKind::File(path.clone()),
                capacity_bytes: CAPACITY,
                index_slots: INDEX_SLOTS,
                frame_length_max: 1024,
                ..WindowOptions::default()
            };
            let (mut writer, mut releaser) = options.create(1).unwrap();
            for sequence in 1..=3 {
                writer.append(&frame(sequence, 0), sequence).unwrap();
            }
            writer.publish();
            releaser.release(64, 1);
            let mut cursor = Window::open_file(&path).unwrap().free_cursor(1);
            assert_eq!(cursor.read(&mut Vec::new()).unwrap(), FreeRead::Frame(64));
            write(&File::options().write(true).open(&path).unwrap(), &[(256, released), (264, 3)]);
            let outcome = if reads_many { cursor.read_many(&mut [0; 2048]) } else { cursor.read(&mut Vec::new()) };
            assert!(matches!(outcome, Err(LogError::Corrupt { .. })), "{released:#x}: {outcome:?}");
        }
    }
}

#[test]
fn position_past_the_end_is_corrupt() {
    for released in [4 * 64, CAPACITY as u64, 3 * CAPACITY as u64, 1 << 40] {
        for reads_many in [false, true] {
            let directory = TempDir::new().unwrap();
            let path = directory.path().join("window");
            let options = WindowOptions {
                memory: MemoryKind::File(path.clone()),
                capacity_bytes: CAPACITY,
                index_slots: INDEX_SLOTS,
                frame_length_max: 1024,
                ..WindowOptions::default()
            };
            let (mut writer, _releaser) = options.create(1).unwrap();
            for sequence in 1..=3 {
                writer.append(&frame(sequence, 0), sequence).unwrap();
            }
            writer.publish();
            write(&File::options().write(true).open(&path).unwrap(), &[(256, released), (264, 100)]);
            let mut cursor = Window::open_file(&path).unwrap().free_cursor(1);
            assert_eq!(cursor.read(&mut Vec::new()).unwrap(), FreeRead::Frame(64));
            let outcome = (0..4).find_map(|_| {
                let read = if reads_many { cursor.read_many(&mut [0; 2048]) } else { cursor.read(&mut Vec::new()) };
                read.err()
            });
            assert!(matches!(outcome, Some(LogError::Corrupt { .. })), "{released:#x}: {outcome:?}");
        }
    }
}
