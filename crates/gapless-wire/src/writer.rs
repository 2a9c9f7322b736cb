//! `FrameWriter`, which builds a frame in place, and `stamp`, which makes a published frame a sequenced one.

use crate::checksum::{frame_checksums, header_checksum};
use crate::descriptor::{self as d, HEADER_LENGTH, aligned_length};
use crate::frame::{FrameHeader, header_checksum_of};

pub struct FrameWriter<'a> {
    buffer: &'a mut [u8],
}

impl<'a> FrameWriter<'a> {
    /// Starts a frame at the start of `buffer`.
    ///
    /// # Panics
    /// If `buffer` does not hold a header.
    #[inline]
    pub fn new(buffer: &'a mut [u8]) -> Self {
        assert!(buffer.len() >= HEADER_LENGTH, "a frame needs {HEADER_LENGTH} bytes, the buffer has {}", buffer.len());
        Self { buffer }
    }

    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[HEADER_LENGTH..]
    }

    /// Zeroes the padding, and returns the frame's length without it.
    ///
    /// # Panics
    /// If the frame, with its padding, does not fit the buffer, or is longer than the layout allows.
    #[inline]
    pub fn finish(self, header: &FrameHeader, payload_length: usize) -> usize {
        let words = words_of(header, payload_length);
        let payload = &self.buffer[HEADER_LENGTH..HEADER_LENGTH + payload_length];
        let checksums = frame_checksums(payload, &words);
        self.put(&words, payload_length, checksums)
    }

    /// Finishes a frame whose payload checksum is known; see [`FrameWriter::finish`].
    ///
    /// # Panics
    /// See [`FrameWriter::finish`].
    #[inline]
    pub fn finish_with_checksum(self, header: &FrameHeader, payload_length: usize, payload_crc: u32) -> usize {
        let words = words_of(header, payload_length);
        let header_crc = header_checksum(&words, payload_crc);
        self.put(&words, payload_length, (payload_crc, header_crc))
    }

    #[inline]
    fn put(self, words: &[u64; 7], payload_length: usize, (payload_crc, header_crc): (u32, u32)) -> usize {
        let length = HEADER_LENGTH + payload_length;
        assert!(length <= d::FRAME_LENGTH_MAX, "a frame of {length} bytes is longer than {}", d::FRAME_LENGTH_MAX);
        self.buffer[length..aligned_length(length)].fill(0);
        let bytes = self.buffer.first_chunk_mut::<HEADER_LENGTH>().expect("new checks the length");
        let last = u64::from(payload_crc) | u64::from(header_crc) << 32;
        for (target, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words.iter().chain([&last])) {
            *target = word.to_le_bytes();
        }
        length
    }
}

/// Summed before they are stored: a sum over fields just stored one by one would wait until each has reached the cache.
#[inline]
fn words_of(header: &FrameHeader, payload_length: usize) -> [u64; 7] {
    [
        u64::from((HEADER_LENGTH + payload_length) as u32)
            | u64::from(d::VERSION) << 32
            | u64::from(header.kind as u8) << 40
            | u64::from(header.flags) << 48,
        header.sequence,
        header.timestamp_ns,
        header.session,
        header.session_seq,
        header.term,
        u64::from(header.schema) | u64::from(header.fragment.bits()) << 32,
    ]
}

/// Makes a published frame a sequenced one, and rewrites the header's checksum. The payload's checksum stays the
/// publisher's.
///
/// # Panics
/// If `bytes` does not hold a header.
#[inline]
pub fn stamp(bytes: &mut [u8], sequence: u64, timestamp_ns: u64, term: u64) {
    let header = bytes.first_chunk_mut::<HEADER_LENGTH>().expect("a frame holds a header");
    put(header, d::SEQUENCE_OFFSET, sequence.to_le_bytes());
    put(header, d::TIMESTAMP_OFFSET, timestamp_ns.to_le_bytes());
    put(header, d::TERM_OFFSET, term.to_le_bytes());
    let header_crc = header_checksum_of(header);
    put(header, d::HEADER_CRC_OFFSET, header_crc.to_le_bytes());
}

/// Sets the session of the frame at the start of `bytes`, as a sequencer does for a frame that opens one. Call
/// [`stamp`] afterwards, which rewrites the checksum.
///
/// # Panics
/// If `bytes` does not hold a header.
#[inline]
pub fn set_session(bytes: &mut [u8], session: u64) {
    let header = bytes.first_chunk_mut::<HEADER_LENGTH>().expect("a frame holds a header");
    put(header, d::SESSION_OFFSET, session.to_le_bytes());
}

/// Sets `flags` of the frame at the start of `bytes`, in addition to its own. Call [`stamp`] afterwards, which rewrites
/// the checksum.
///
/// # Panics
/// If `bytes` does not hold a header.
pub fn add_flags(bytes: &mut [u8], flags: u16) {
    let header = bytes.first_chunk_mut::<HEADER_LENGTH>().expect("a frame holds a header");
    let flags = u16::from_le_bytes([header[d::FLAGS_OFFSET], header[d::FLAGS_OFFSET + 1]]) | flags;
    put(header, d::FLAGS_OFFSET, flags.to_le_bytes());
}

#[inline]
fn put<const N: usize>(header: &mut [u8; HEADER_LENGTH], offset: usize, value: [u8; N]) {
    header[offset..offset + N].copy_from_slice(&value);
}
