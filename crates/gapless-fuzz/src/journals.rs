//! Nothing panics, and only frames in their place are replayed. A journal that is reported sound is as long as its
//! valid mark says, and a recovered one can be continued.
//!
//! The input is a list of segments, each in this form, so that small inputs reach everything:
//!
//! ```text
//!  0  u8   flags: 1 the header's checksum is repaired, 2 those of marks, 4 those of frames,
//!          8 the file ends with its frames, 16 it is a prepared segment, 32 the rest is the file as it is,
//!          64 it has a mark for records of consensus
//!  1  u64  number in the file's name
//!  9  u16  length of the rest
//! 11  …    fixed header (128), five marks (64 each), four index entries (16 each), the mark for records if it has one
//!          (64), frames and records
//! ```
//!
//! One byte precedes the list: 1 for another boot of the machine, 2 to check all segments.

use crate::input::{FuzzInput, assert_says_something, heal_frames, scratch};
use gapless_journal::{
    BootId, ConsensusRecord, Journal, JournalEnvironment, JournalError, JournalOptions, JournalReader, MarkName,
    RecoveryCheck, Replay, ReplayStop, descriptor as d,
    inspect::{info_in, verify_in},
};
use gapless_wire::checksum::crc32c;
use gapless_wire::{Frame, FrameHeader, FrameWriter, HEADER_LENGTH, aligned_length};
use std::path::Path;

pub const STREAM_ID: u128 = 0x5eed;
/// A header page, a page of index and two pages of frames.
pub const SEGMENT_LENGTH: u64 = 16 * 1024;
/// Longest frame of the stream of the seeds.
pub const FRAME_LENGTH_MAX: usize = 1024;

const OTHER_BOOT: u8 = 1;
const CHECK_ALL: u8 = 2;

const HEALED_HEADER: u8 = 1;
const HEALED_MARKS: u8 = 2;
const HEALED_FRAMES: u8 = 4;
const CUT: u8 = 8;
const PREPARED: u8 = 16;
const RAW: u8 = 32;
const HAS_RECORDS: u8 = 64;

const MARKS: [usize; 5] = [
    d::BOOT_MARK_OFFSET,
    d::OPENED_MARK_OFFSET,
    d::JOURNALED_MARK_OFFSET,
    d::SYNCED_MARK_OFFSET,
    d::FAILED_MARK_OFFSET,
];
const MARK_LENGTH: usize = d::MARK_WORDS * 8;
const INDEX_LENGTH: usize = 4 * d::INDEX_ENTRY_LENGTH;
/// Caps the length that a header states, so that a target is quick.
const SEGMENT_LENGTH_MAX: u64 = 64 * 1024;
const SEGMENTS_MAX: usize = 4;
const FRAMES_MAX: u64 = SEGMENTS_MAX as u64 * SEGMENT_LENGTH_MAX / HEADER_LENGTH as u64;

#[must_use]
pub fn environment(is_other_boot: bool) -> JournalEnvironment {
    JournalEnvironment { boot_id: Some(BootId(1 + u128::from(is_other_boot))), epoch_ns: || 1_000_000_000, disk: None }
}

#[must_use]
pub fn options(directory: &Path) -> JournalOptions {
    JournalOptions {
        segment_length_bytes: SEGMENT_LENGTH,
        frame_length_max: FRAME_LENGTH_MAX,
        environment: environment(false),
        ..JournalOptions::new(directory, STREAM_ID)
    }
}

#[must_use]
pub fn pack(first_sequence: u64, file: &[u8]) -> Vec<u8> {
    let mut body = file[..d::FIXED_LENGTH].to_vec();
    for offset in MARKS {
        body.extend_from_slice(&file[offset..offset + MARK_LENGTH]);
    }
    body.extend_from_slice(&file[d::INDEX_OFFSET..d::INDEX_OFFSET + INDEX_LENGTH]);
    let records_mark = &file[d::RECORDS_MARK_OFFSET..d::RECORDS_MARK_OFFSET + MARK_LENGTH];
    let has_records = records_mark.iter().any(|byte| *byte != 0);
    if has_records {
        body.extend_from_slice(records_mark);
    }
    let frames = &file[d::frames_offset(SEGMENT_LENGTH) as usize..];
    let end = frames.iter().rposition(|byte| *byte != 0).map_or(0, |last| (last + 1).next_multiple_of(8));
    body.extend_from_slice(&frames[..end]);
    let mut packed = vec![HEALED_HEADER | HEALED_MARKS | HEALED_FRAMES | if has_records { HAS_RECORDS } else { 0 }];
    packed.extend_from_slice(&first_sequence.to_le_bytes());
    packed.extend_from_slice(&(body.len() as u16).to_le_bytes());
    packed.extend_from_slice(&body);
    packed
}

fn unpack(input: &mut FuzzInput<'_>, directory: &Path) {
    for _ in 0..SEGMENTS_MAX {
        if input.is_empty() {
            return;
        }
        let flags = input.byte();
        let number = input.u64();
        let length = usize::from(input.u16());
        let body = input.bytes(length);
        let name = if flags & PREPARED == 0 { d::segment_name(number) } else { d::prepared_name(number) };
        let file = if flags & RAW == 0 { unpack_one(flags, &mut FuzzInput(body)) } else { body.to_vec() };
        std::fs::write(directory.join(name), file).expect("a file can be written");
    }
}

fn unpack_one(flags: u8, body: &mut FuzzInput<'_>) -> Vec<u8> {
    let mut header: [u8; d::FIXED_LENGTH] = body.array();
    let mut segment_length = u64::from_le_bytes(header[48..56].try_into().expect("eight bytes"));
    if segment_length > SEGMENT_LENGTH_MAX {
        segment_length = SEGMENT_LENGTH;
        header[48..56].copy_from_slice(&segment_length.to_le_bytes());
    }
    if flags & HEALED_HEADER != 0 {
        let sum = crc32c(&header[..d::FIXED_CRC_OFFSET]);
        header[d::FIXED_CRC_OFFSET..].copy_from_slice(&sum.to_le_bytes());
    }
    let frames_offset = d::frames_offset(segment_length) as usize;
    let mut file = vec![0; frames_offset.max(d::INDEX_OFFSET + INDEX_LENGTH)];
    file[..d::FIXED_LENGTH].copy_from_slice(&header);
    for offset in MARKS {
        file[offset..offset + MARK_LENGTH].copy_from_slice(&unpack_mark(flags, body));
    }
    file[d::INDEX_OFFSET..d::INDEX_OFFSET + INDEX_LENGTH].copy_from_slice(&body.array::<INDEX_LENGTH>());
    if flags & HAS_RECORDS != 0 {
        let mark = unpack_mark(flags, body);
        file[d::RECORDS_MARK_OFFSET..d::RECORDS_MARK_OFFSET + MARK_LENGTH].copy_from_slice(&mark);
    }
    file.truncate(frames_offset);
    let mut frames = body.rest().to_vec();
    if flags & HEALED_FRAMES != 0 {
        heal_frames(&mut frames);
    }
    file.extend_from_slice(&frames);
    if flags & CUT == 0 {
        file.resize(segment_length as usize, 0);
    }
    file
}

fn unpack_mark(flags: u8, body: &mut FuzzInput<'_>) -> [u8; MARK_LENGTH] {
    let mut mark: [u8; MARK_LENGTH] = body.array();
    if flags & HEALED_MARKS != 0 {
        for slot in mark.chunks_exact_mut(MARK_LENGTH / 2) {
            let check = 1 << 32 | u64::from(crc32c(&slot[..24]));
            slot[24..].copy_from_slice(&check.to_le_bytes());
        }
    }
    mark
}

pub fn read(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let mode = input.byte();
    let directory = scratch();
    unpack(&mut input, directory.path());
    check_fixed_header(bytes);
    read_directory(directory.path(), environment(mode & OTHER_BOOT != 0));
}

fn check_fixed_header(bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk::<{ d::FIXED_LENGTH }>() else { return };
    let mut healed = *bytes;
    let sum = crc32c(&healed[..d::FIXED_CRC_OFFSET]);
    healed[d::FIXED_CRC_OFFSET..].copy_from_slice(&sum.to_le_bytes());
    for bytes in [bytes, &healed] {
        if let Ok(header) = d::FixedHeader::from_bytes(bytes) {
            assert_eq!(d::FixedHeader::from_bytes(&header.to_bytes()), Ok(header));
            assert!(header.segment_length <= d::SEGMENT_LENGTH_MAX && header.frames_offset < header.segment_length);
        }
    }
}

fn read_directory(directory: &Path, environment: JournalEnvironment) {
    let reader = match JournalReader::open_in(directory, environment.clone()) {
        Ok(reader) => reader,
        Err(error) => {
            assert_says_something(&error);
            assert!(
                info_in(directory, environment.clone()).is_err() && verify_in(directory, environment.clone()).is_err()
            );
            return;
        }
    };
    let first = reader.first_sequence();
    let good = reader.good_mark();
    let replayed = replay(&reader, first);
    if let Ok(last) = reader.last_sequence() {
        let _ = replay(&reader, last.saturating_add(1));
        let _ = replay(&reader, last / 2 + 1);
    }
    for sequence in [0, first.saturating_sub(1), u64::MAX] {
        let _ = replay(&reader, sequence);
    }
    if let Ok(info) = info_in(directory, environment.clone()) {
        assert_eq!(info.first_sequence(), first);
        let _ = (info.journaled_sequence(), info.synced_sequence(), info.file_bytes());
        info.segments.iter().for_each(|segment| assert_says_something(segment));
    }
    let records = records(&reader);
    match verify_in(directory, environment.clone()) {
        Ok(report) => {
            if let (true, Some(records)) = (report.problems.is_empty(), &records) {
                assert!(records.len() as u64 <= report.records, "{} records, {report:?}", records.len());
                let has_newest = records.first().is_some_and(|record| record.is_checkpoint);
                assert_eq!(has_newest, report.newest_checkpoint.is_some(), "{report:?}");
            }
            report.problems.iter().for_each(|problem| assert_says_something(problem));
            assert!(report.frames <= FRAMES_MAX);
            if let (true, Ok((name, sequence))) = (report.problems.is_empty(), good) {
                // Corruption is an error, never a shorter log.
                assert!(
                    report.last_sequence >= sequence || sequence < first,
                    "called sound up to {}, but the {name} mark says {sequence}",
                    report.last_sequence
                );
            }
            if let (true, Some(last)) = (report.problems.is_empty(), replayed) {
                assert_eq!(last, report.last_sequence, "replay and verification agree");
            }
        }
        Err(error) => assert_says_something(&error),
    }
}

fn records(reader: &JournalReader) -> Option<Vec<ConsensusRecord>> {
    let records: Vec<ConsensusRecord> = match reader.records() {
        Ok(records) => records.collect(),
        Err(error) => {
            assert_says_something(&error);
            return None;
        }
    };
    assert!(records.len() as u64 <= FRAMES_MAX);
    assert!(records.is_sorted_by_key(|record| record.after_sequence), "each stands behind the one before it");
    assert!(records.iter().skip(1).all(|record| !record.is_checkpoint), "none is needed before a checkpoint");
    assert!(records.iter().all(|record| record.after_sequence + 1 >= reader.first_sequence()));
    Some(records)
}

fn replay(reader: &JournalReader, from: u64) -> Option<u64> {
    let last = replay_on(reader.replay(from), from)?;
    let in_place = replay_on(reader.replay_until(from, last), from);
    assert_eq!(in_place, Some(last), "frames are the same in place");
    Some(last)
}

fn replay_on(replay: Result<Replay, JournalError>, from: u64) -> Option<u64> {
    let mut replay = match replay {
        Ok(replay) => replay,
        Err(error) => {
            assert_says_something(&error);
            return None;
        }
    };
    let mut due = from;
    loop {
        match replay.next_frame() {
            Ok(Some(frame)) => {
                assert_eq!(frame.sequence(), due, "sequences are gapless");
                assert_eq!(frame.verify(), Ok(()));
                due += 1;
                assert!(due - from <= FRAMES_MAX, "more frames than there is room for");
            }
            Ok(None) => {
                let _ = replay.stop().map(ReplayStop::to_string);
                assert_eq!(replay.next_sequence(), due);
                return Some(due - 1);
            }
            Err(error) => {
                assert_says_something(&error);
                return None;
            }
        }
    }
}

pub fn recovery(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let mode = input.byte();
    let directory = scratch();
    unpack(&mut input, directory.path());
    let environment = environment(mode & OTHER_BOOT != 0);
    let mut options = options(directory.path());
    options.environment = environment.clone();
    if mode & CHECK_ALL != 0 {
        options.check = RecoveryCheck::All;
    }
    let good = JournalReader::open_in(directory.path(), environment.clone()).and_then(|reader| reader.good_mark());
    let (mut journal, report) = match Journal::open(options.clone()) {
        Ok(opened) => opened,
        Err(error) => return assert_says_something(&error),
    };
    report.removed_tail.iter().for_each(|cut| assert_says_something(cut));
    if let Ok((name, sequence)) = good {
        assert_eq!((name, sequence), report.good_mark);
        assert!(
            report.last_sequence >= sequence || name == MarkName::Synced && sequence < report.first_sequence,
            "recovered up to {}, but the {name} mark says {sequence}",
            report.last_sequence
        );
    }
    assert_eq!(journal.last_sequence(), report.last_sequence);
    read_directory(directory.path(), environment.clone());
    let reader = JournalReader::open_in(directory.path(), environment.clone()).expect("it was just recovered");
    let before = records(&reader);
    let is_taken = journal.append_record(b"new").map_err(|error| assert_says_something(&error)).is_ok();
    let next = report.last_sequence + 1;
    let appended = journal.append(&small_frame(next), next, next);
    let last = match appended {
        Ok(()) => {
            assert_eq!(journal.commit().expect("a frame can be journaled"), next);
            next
        }
        Err(error) => {
            assert_says_something(&error);
            report.last_sequence
        }
    };
    journal.commit().expect("a record can be journaled");
    if last == next
        && let Err(error) = check_cut(&mut journal, &reader, last)
    {
        return assert_says_something(&error);
    }
    drop(journal);
    let (journal, again) = Journal::open(options).expect("a journal that was just recovered opens again");
    let reader = JournalReader::open_in(directory.path(), environment.clone()).expect("it was just recovered");
    if let (Some(mut before), Some(after)) = (before, records(&reader)) {
        let (after_sequence, payload) = (report.last_sequence, b"new".to_vec());
        before.extend(is_taken.then_some(ConsensusRecord { after_sequence, is_checkpoint: false, payload }));
        assert_eq!(after, before, "what was recovered and what was appended");
    }
    assert_eq!((again.last_sequence, again.first_sequence), (last, report.first_sequence));
    assert!(again.removed_tail.is_none(), "{:?}", again.removed_tail);
    drop(journal);
}

/// A returned frame after `last` stays unchanged when it is cut off and replaced by another.
fn check_cut(journal: &mut Journal, reader: &JournalReader, last: u64) -> Result<(), JournalError> {
    let next = last + 1;
    let put = |journal: &mut Journal, payload| {
        journal.append(&frame_of(next, payload), next, next)?;
        journal.commit()
    };
    put(journal, b"one")?;
    let mut replay = reader.replay(next)?;
    let frame = replay.next_frame()?.expect("it was journaled");
    let before = frame.bytes().to_vec();
    journal.truncate_after(last)?;
    put(journal, b"two")?;
    assert_eq!(frame.bytes(), before, "it has changed while it was borrowed");
    journal.truncate_after(last)
}

fn small_frame(sequence: u64) -> Vec<u8> {
    frame_of(sequence, b"new")
}

fn frame_of(sequence: u64, payload: &[u8; 3]) -> Vec<u8> {
    let mut frame = vec![0; aligned_length(HEADER_LENGTH + 3)];
    let mut writer = FrameWriter::new(&mut frame);
    writer.payload_mut()[..3].copy_from_slice(payload);
    let length = writer.finish(&FrameHeader { sequence, ..FrameHeader::default() }, 3);
    assert!(Frame::parse(&frame[..length]).is_ok());
    frame
}
