//! No position or length leads outside, and every reader terminates.

use crate::input::{FuzzInput, assert_says_something, heal_frames, scratch};
use gapless_agent::CountersReader;
use gapless_agent::counters::descriptor as counters_layout;
use gapless_log::{FreeRead, LogError, RingReader, RingWriter, Window, descriptor as d};
use gapless_wire::{Frame, HEADER_LENGTH, aligned_length};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SealFlags};

const CAPACITY: usize = d::CAPACITY_MIN;
const INDEX_SLOTS: usize = 64;
const FRAMES_MAX: usize = CAPACITY / HEADER_LENGTH;

/// Modes in the first byte.
const RAW: u8 = 1;
const HEALED: u8 = 2;

/// Missing seals, by bits of the first byte.
const UNSEALED: [(u8, SealFlags); 2] = [(4, SealFlags::SHRINK), (8, SealFlags::GROW)];

fn memory_file(bytes: &[u8], mode: u8) -> (OwnedFd, bool) {
    let fd = rustix::fs::memfd_create("gapless-fuzz", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .expect("memory files are there");
    let mut position = 0;
    while position < bytes.len() {
        position += rustix::io::pwrite(&fd, &bytes[position..], position as u64).expect("memory can be written");
    }
    let missing = UNSEALED.iter().filter(|(bit, _)| mode & bit != 0).map(|(_, seal)| *seal).collect();
    let seals = (SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL) - missing;
    rustix::fs::fcntl_add_seals(&fd, seals).expect("memory can be sealed");
    (fd, missing.is_empty())
}

fn opened<T>(outcome: Result<T, LogError>, is_sealed: bool) -> Option<T> {
    assert!(is_sealed || matches!(outcome, Err(LogError::Foreign { field: "seals", .. })), "it may be cut under us");
    outcome.inspect_err(|error| assert_says_something(error)).ok()
}

fn same(fd: &OwnedFd) -> OwnedFd {
    fd.try_clone().expect("a descriptor can be doubled")
}

/// Sound, except for the words of `live`, the index and the data, which come from the input.
fn mapping(kind: u64, index_slots: usize, live: &[usize], input: &mut FuzzInput<'_>, heal: bool) -> Vec<u8> {
    let index_length = (index_slots * 8).next_multiple_of(4096);
    let mut bytes = vec![0; d::HEADER_LENGTH + index_length + CAPACITY];
    let sound = [
        (d::MAGIC_WORD, d::MAGIC),
        (d::KIND_WORD, kind),
        (d::CAPACITY_WORD, CAPACITY as u64),
        (d::INDEX_SLOTS_WORD, index_slots as u64),
        (d::FRAME_LENGTH_MAX_WORD, CAPACITY as u64 / 2),
    ];
    let live: Vec<(usize, u64)> = live.iter().map(|number| (*number, input.u64())).collect();
    for (number, value) in sound.into_iter().chain(live) {
        bytes[number * 8..number * 8 + 8].copy_from_slice(&value.to_le_bytes());
    }
    let index = input.bytes(index_slots * 8);
    bytes[d::HEADER_LENGTH..d::HEADER_LENGTH + index.len()].copy_from_slice(index);
    let data_offset = d::HEADER_LENGTH + index_length;
    let data = input.bytes(CAPACITY);
    bytes[data_offset..data_offset + data.len()].copy_from_slice(data);
    if heal {
        heal_frames(&mut bytes[data_offset..data_offset + data.len()]);
    }
    bytes
}

const RING_WORDS: [usize; 4] = [d::HEAD_WORD, d::TAIL_WORD, d::READER_PARKED_WORD, d::CLOSED_WORD];

pub fn ring(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let mode = input.byte();
    let file = match mode & RAW != 0 {
        true => input.rest().to_vec(),
        false => mapping(d::KIND_RING, 0, &RING_WORDS, &mut input, mode & HEALED != 0),
    };
    let (fd, is_sealed) = memory_file(&file, mode);
    if let Some(mut reader) = opened(RingReader::open(fd), is_sealed) {
        drain(&mut reader);
    }
    let (fd, _) = memory_file(&file, mode);
    if let Some(mut writer) = opened(RingWriter::open(same(&fd)), is_sealed) {
        let frame = [0; HEADER_LENGTH];
        for _ in 0..FRAMES_MAX + 1 {
            if let Err(error) = writer.append(&frame) {
                assert!(matches!(error, LogError::Full { .. } | LogError::Corrupt { .. }), "{error}");
                assert_says_something(&error);
                break;
            }
            let _ = writer.publish();
        }
        let _ = (writer.backlog_bytes(), writer.is_reader_closed());
    }
    assert!(matches!(Window::open(fd), Err(LogError::Foreign { .. })) || mode & RAW != 0, "a ring is no window");
}

fn drain(reader: &mut RingReader) {
    let mut copy = Vec::new();
    let _ = (reader.peek_sessions(&mut [0; 4]), reader.identity(), reader.is_writer_closed());
    for _ in 0..=FRAMES_MAX {
        let length = match reader.next_length() {
            Ok(Some(length)) => length,
            Ok(None) => {
                reader.release();
                return;
            }
            Err(error) => {
                assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
                assert_says_something(&error);
                assert!(reader.next_length().is_err(), "a corrupt ring stays corrupt");
                return;
            }
        };
        let known = reader.known_bytes();
        assert!((HEADER_LENGTH..=CAPACITY.max(known as usize)).contains(&length));
        assert!(aligned_length(length) as u64 <= known);
        let _ = reader.peek_sessions(&mut [0; 4]);
        copy.resize(aligned_length(length), 0);
        reader.copy(&mut copy);
        if let Err(error) = Frame::parse(&copy).and_then(|frame| frame.verify()) {
            assert_says_something(&error);
        }
        let mut last = [0; 8];
        reader.copy_at(aligned_length(length) - 8, &mut last);
        assert_eq!(copy[copy.len() - 8..], last, "nobody writes here now");
        reader.advance(length);
    }
    panic!("more frames than there is room for");
}

const WINDOW_WORDS: [usize; 5] =
    [d::TAIL_WORD, d::TAIL_SEQUENCE_WORD, d::RELEASED_WORD, d::RELEASED_SEQUENCE_WORD, d::CLAIMED_WORD];

pub fn window(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let mode = input.byte();
    let start = input.u64();
    let file = match mode & RAW != 0 {
        true => input.rest().to_vec(),
        false => mapping(d::KIND_WINDOW, INDEX_SLOTS, &WINDOW_WORDS, &mut input, mode & HEALED != 0),
    };
    let (fd, is_sealed) = memory_file(&file, mode);
    assert!(matches!(RingReader::open(same(&fd)), Err(LogError::Foreign { .. })) || mode & RAW != 0);
    let Some(window) = opened(Window::open(fd), is_sealed) else { return };
    let released = window.released_sequence();
    let _ = (window.identity(), window.appended(), window.released());
    assert!(released.max(window.appended_sequence()) < u64::MAX, "there is one behind each");
    for sequence in [start, 0, 1, released, released.saturating_sub(1), u64::MAX] {
        for many_bytes in [0, HEADER_LENGTH * 3 / 2, CAPACITY * 2] {
            read_on(&mut window.free_cursor(sequence), &mut vec![0; many_bytes]);
        }
    }
}

/// Like a late reader: many frames at a time, as far as they fit `many`, else a single one.
fn read_on(cursor: &mut gapless_log::FreeCursor, many: &mut [u8]) {
    let mut copy = Vec::new();
    for _ in 0..=FRAMES_MAX {
        let due = cursor.sequence();
        let read = match cursor.read_many(many) {
            Ok(FreeRead::Frame(0)) => cursor.read(&mut copy),
            Ok(FreeRead::Frame(length)) => {
                check_many(&many[..length], due);
                continue;
            }
            other => other,
        };
        match read {
            // Sequences end here, and with them any guarantee.
            Ok(FreeRead::Frame(_)) if due == u64::MAX => return,
            Ok(FreeRead::Frame(length)) => {
                assert_eq!(copy.len(), length);
                assert!((HEADER_LENGTH..=CAPACITY / 2).contains(&length));
                assert_eq!(cursor.sequence(), due + 1);
                if let Err(error) = Frame::parse(&copy).and_then(|frame| frame.verify()) {
                    assert_says_something(&error);
                }
            }
            Ok(FreeRead::Empty) => return assert_eq!(cursor.sequence(), due),
            Ok(FreeRead::Lapped { from_sequence }) => {
                assert_eq!((from_sequence, cursor.sequence()), (due, due));
                cursor.seek(due);
                return;
            }
            Err(error) => {
                assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
                return assert_says_something(&error);
            }
        }
    }
    panic!("more frames than there is room for");
}

fn check_many(mut frames: &[u8], mut due: u64) {
    while let Some(header) = frames.first_chunk::<16>() {
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        assert_eq!(header[8..], due.to_le_bytes());
        assert!((HEADER_LENGTH..=CAPACITY / 2).contains(&length));
        if let Err(error) = Frame::parse(frames).and_then(|frame| frame.verify()) {
            assert_says_something(&error);
        }
        frames = &frames[aligned_length(length)..];
        due = due.saturating_add(1);
    }
    assert!(frames.is_empty(), "frames are whole");
}

const COUNTERS: usize = 4;

pub fn counters(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let mode = input.byte();
    let mut file = input.rest().to_vec();
    if mode & RAW == 0 {
        file.resize(counters_layout::file_length(COUNTERS), 0);
        file[..counters_layout::MAGIC.len()].copy_from_slice(&counters_layout::MAGIC);
        let (version, capacity) = (counters_layout::VERSION_OFFSET, counters_layout::CAPACITY_OFFSET);
        file[version..version + 4].copy_from_slice(&counters_layout::VERSION.to_le_bytes());
        file[capacity..capacity + 4].copy_from_slice(&(COUNTERS as u32).to_le_bytes());
    }
    let directory = scratch();
    let path = directory.path().join("counters");
    std::fs::write(&path, &file).expect("a file can be written");
    let read = CountersReader::open(&path).and_then(|reader| {
        let _ = (reader.owner_pid(), reader.is_removed());
        reader.read()
    });
    match read {
        Ok(counters) => {
            assert!(counters.len() * counters_layout::RECORD_LENGTH <= file.len());
            for (label, _) in counters {
                assert!((1..=counters_layout::LABEL_LENGTH_MAX).contains(&label.len()));
                assert!(!label.chars().any(char::is_control), "{label:?}");
            }
        }
        Err(error) => assert_says_something(&error),
    }
}
