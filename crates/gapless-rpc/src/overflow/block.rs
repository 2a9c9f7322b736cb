//! A block: consecutive records of one class, with one layout in memory and on disk.
//!
//! ```text
//! several records:  frame header (64) | u32 length, record | u32 length, record | … | padding to 8
//! a long record:    frame header (64) | part | frame header (64) | part | …        | padding to 8
//! ```
//!
//! The headers stay empty until the block goes to disk, so that spilling copies nothing.

use crate::overflow::priority::Priority;
use gapless_journal::JournalError;
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use gapless_wire::{Fragment, FrameHeader, FrameWriter, HEADER_LENGTH, aligned_length};

const PREFIX_LENGTH: usize = 4;

/// Frames with this payload need no padding.
const PART_LENGTH: usize = FRAME_LENGTH_MAX - HEADER_LENGTH;

#[derive(Debug)]
pub(crate) struct Block {
    /// Empty while the block is on disk.
    bytes: Vec<u8>,
    /// Length with headers and prefixes, without the padding at the end, bytes.
    length: usize,
    records: u32,
    popped: u32,
    read_position: usize,
    first_number: u64,
    is_long: bool,
    is_sealed: bool,
    fault: Option<Box<JournalError>>,
}

impl Block {
    pub(crate) const fn length_alone(record_length: usize) -> usize {
        if is_long(record_length) {
            record_length + record_length.div_ceil(PART_LENGTH) * HEADER_LENGTH
        } else {
            HEADER_LENGTH + PREFIX_LENGTH + record_length
        }
    }

    pub(crate) const fn length_more(record_length: usize) -> usize {
        PREFIX_LENGTH + record_length
    }

    pub(crate) fn open(mut bytes: Vec<u8>, first_number: u64) -> Self {
        bytes.clear();
        bytes.resize(HEADER_LENGTH, 0);
        Self {
            bytes,
            length: HEADER_LENGTH,
            records: 0,
            popped: 0,
            read_position: HEADER_LENGTH,
            first_number,
            is_long: false,
            is_sealed: false,
            fault: None,
        }
    }

    /// The block's number is set later.
    pub(crate) fn alone(record: &[u8]) -> Self {
        let mut block = Self::open(Vec::with_capacity(aligned_length(Self::length_alone(record.len()))), 0);
        if is_long(record.len()) {
            block.is_long = true;
            block.bytes.clear();
            for part in record.chunks(PART_LENGTH) {
                block.bytes.extend_from_slice(&[0; HEADER_LENGTH]);
                block.bytes.extend_from_slice(part);
            }
            (block.records, block.length) = (1, block.bytes.len());
        } else {
            block.push(record);
        }
        block.is_sealed = true;
        block
    }

    pub(crate) fn set_number(&mut self, number: u64) {
        self.first_number = number;
    }

    pub(crate) const fn has_room(&self, record_length: usize, block_bytes: usize, block_records: u32) -> bool {
        !self.is_sealed && self.records < block_records && self.length + Self::length_more(record_length) <= block_bytes
    }

    pub(crate) fn push(&mut self, record: &[u8]) {
        assert!(!self.is_sealed, "a block that goes to disk takes no more records");
        self.bytes.extend_from_slice(&(record.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(record);
        self.length = self.bytes.len();
        self.records += 1;
    }

    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    pub(crate) const fn length_on_disk(&self) -> usize {
        aligned_length(self.length)
    }

    pub(crate) const fn records_left(&self) -> u32 {
        self.records - self.popped
    }

    pub(crate) const fn next_number(&self) -> u64 {
        self.first_number + self.popped as u64
    }

    /// A single record is better copied without the lock.
    pub(crate) const fn is_alone(&self) -> bool {
        self.is_sealed && self.records == 1
    }

    pub(crate) fn take_fault(&mut self) -> Option<Box<JournalError>> {
        self.fault.take()
    }

    /// Removes the next record and copies it to `record`, replacing the content.
    ///
    /// # Panics
    /// If all records were popped.
    pub(crate) fn pop(&mut self, record: &mut Vec<u8>) {
        assert!(self.popped < self.records, "a block without records does not stay in its queue");
        record.clear();
        if self.is_long {
            for frame in self.bytes[..self.length].chunks(FRAME_LENGTH_MAX) {
                record.extend_from_slice(&frame[HEADER_LENGTH..]);
            }
        } else {
            let rest = &self.bytes[self.read_position..self.length];
            let (prefix, rest) = rest.split_first_chunk().expect("what was read back has its checksum");
            let length = u32::from_le_bytes(*prefix) as usize;
            record.extend_from_slice(&rest[..length]);
            self.read_position += PREFIX_LENGTH + length;
        }
        self.popped += 1;
    }

    pub(crate) const fn seal(&mut self) {
        self.is_sealed = true;
    }

    pub(crate) fn frames(&mut self, class: Priority, first_sequence: u64) -> &[u8] {
        self.bytes.resize(aligned_length(self.length), 0);
        let count = self.frame_count() as u16;
        for (index, bytes) in (0..).zip(self.bytes.chunks_mut(FRAME_LENGTH_MAX)) {
            let end = self.length - usize::from(index) * FRAME_LENGTH_MAX;
            let payload_length = end.min(FRAME_LENGTH_MAX) - HEADER_LENGTH;
            let header = FrameHeader {
                sequence: first_sequence + u64::from(index),
                session: class as u64,
                session_seq: self.first_number,
                fragment: Fragment { index, count },
                ..FrameHeader::default()
            };
            FrameWriter::new(bytes).finish(&header, payload_length);
        }
        &self.bytes
    }

    pub(crate) const fn frame_count(&self) -> u64 {
        self.length.div_ceil(FRAME_LENGTH_MAX) as u64
    }

    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn restore(&mut self, read: Result<Vec<u8>, JournalError>) {
        match read {
            Ok(bytes) => self.bytes = bytes,
            Err(fault) => self.fault = Some(Box::new(fault)),
        }
    }
}

const fn is_long(record_length: usize) -> bool {
    HEADER_LENGTH + PREFIX_LENGTH + record_length > FRAME_LENGTH_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_wire::Frame;

    #[test]
    fn records_survive_a_block() {
        let mut block = Block::open(vec![7; 100], 5);
        for record in [&b"one"[..], b"", b"three"] {
            assert!(block.has_room(record.len(), 100, 3));
            block.push(record);
        }
        assert!(!block.has_room(0, 100, 3), "three records are the limit");
        assert!(!block.has_room(100, 100, 9), "100 bytes are the limit");
        let mut record = Vec::new();
        for (number, expected) in [(5, &b"one"[..]), (6, b""), (7, b"three")] {
            assert_eq!(block.next_number(), number);
            block.pop(&mut record);
            assert_eq!(record, expected);
        }
        assert_eq!(block.records_left(), 0);
    }

    #[test]
    fn frames_are_whole_at_length_limits() {
        let alone = FRAME_LENGTH_MAX - HEADER_LENGTH - PREFIX_LENGTH;
        for length in [0, 1, alone - 1, alone, alone + 1, PART_LENGTH, PART_LENGTH + 1, 2 * PART_LENGTH, 16 << 20] {
            let whole = (0..length).map(|at| (at / 251 + at) as u8).collect::<Vec<_>>();
            let mut block = Block::alone(&whole);
            assert_eq!(block.length(), Block::length_alone(length), "{length}");
            let count = block.frame_count();
            let frames = block.frames(Priority::Low, 9).to_vec();
            let (mut rest, mut sequence) = (&frames[..], 9);
            while !rest.is_empty() {
                let frame = Frame::parse(rest).unwrap();
                frame.verify().unwrap();
                assert_eq!((frame.sequence(), u64::from(frame.fragment().count)), (sequence, count));
                rest = &rest[aligned_length(frame.length())..];
                sequence += 1;
            }
            assert_eq!(sequence, 9 + count, "{length}");
            assert_eq!(frames.len(), block.length_on_disk());
            block.restore(Ok(frames));
            let mut record = vec![1; 3];
            block.pop(&mut record);
            assert!(record == whole, "{length}");
        }
    }
}
