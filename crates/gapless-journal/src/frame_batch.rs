//! `FrameBatch`: consecutive checked frames, returned by a replay.

use gapless_wire::{Frame, aligned_length};

/// Consecutive checked frames.
#[derive(Clone, Copy, Debug)]
pub struct FrameBatch<'a> {
    bytes: &'a [u8],
    first_sequence: u64,
}

impl<'a> FrameBatch<'a> {
    pub(crate) const fn new(bytes: &'a [u8], first_sequence: u64) -> Self {
        Self { bytes, first_sequence }
    }

    /// Returns the frames with their padding, in the format of a window.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[must_use]
    pub const fn first_sequence(&self) -> u64 {
        self.first_sequence
    }
}

impl<'a> Iterator for FrameBatch<'a> {
    type Item = Frame<'a>;

    #[inline]
    fn next(&mut self) -> Option<Frame<'a>> {
        if self.bytes.is_empty() {
            return None;
        }
        let frame = Frame::parse(self.bytes).expect("a batch holds frames that were checked");
        self.bytes = &self.bytes[aligned_length(frame.length())..];
        self.first_sequence += 1;
        Some(frame)
    }
}
