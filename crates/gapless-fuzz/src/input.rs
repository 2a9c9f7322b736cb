//! Splits the bytes of an input, and repairs checksums so that the bytes get past them.

use gapless_wire::checksum::crc32c;
use gapless_wire::descriptor::{FRAME_LENGTH_MAX, HEADER_CRC_OFFSET, PAYLOAD_CRC_OFFSET};
use gapless_wire::{HEADER_LENGTH, MESSAGE_ALIGNMENT, aligned_length};
use tempfile::TempDir;

/// Zeros after the end.
pub struct FuzzInput<'a>(pub &'a [u8]);

impl<'a> FuzzInput<'a> {
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        let bytes = self.bytes(N);
        field[..bytes.len()].copy_from_slice(bytes);
        field
    }

    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Walks by the length fields. A frame that would exceed the end is cut to it, so that one wrong length does not hide
/// all that follows.
pub fn heal_frames(bytes: &mut [u8]) {
    let mut rest = bytes;
    while rest.len() >= HEADER_LENGTH {
        let mut length = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
        if !(HEADER_LENGTH..=FRAME_LENGTH_MAX).contains(&length) {
            return;
        }
        if length > rest.len() {
            length = rest.len();
            rest[..4].copy_from_slice(&(length as u32).to_le_bytes());
        }
        let payload_crc = crc32c(&rest[HEADER_LENGTH..length]);
        rest[PAYLOAD_CRC_OFFSET..PAYLOAD_CRC_OFFSET + 4].copy_from_slice(&payload_crc.to_le_bytes());
        let header_crc = crc32c(&rest[..HEADER_CRC_OFFSET]);
        rest[HEADER_CRC_OFFSET..HEADER_LENGTH].copy_from_slice(&header_crc.to_le_bytes());
        rest = rest.split_at_mut(aligned_length(length).min(rest.len())).1;
    }
}

#[must_use]
pub fn whole_words(bytes: &[u8], limit_bytes: usize) -> Vec<u8> {
    let mut words = bytes[..bytes.len().min(limit_bytes)].to_vec();
    words.resize(words.len().next_multiple_of(MESSAGE_ALIGNMENT), 0);
    words
}

pub fn assert_says_something(error: &dyn std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.trim().is_empty(), "an error without a text");
    assert!(!text.contains('\n'), "an error of more than one line: {text:?}");
}

/// In memory if possible, because targets sync their files.
///
/// # Panics
/// If no directory can be made.
#[must_use]
pub fn scratch() -> TempDir {
    let in_memory = tempfile::Builder::new().prefix("gapless-fuzz-").tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).expect("a directory can be made")
}
