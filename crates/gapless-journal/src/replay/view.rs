//! The bytes that a replay looks at: those of a segment, copied word by word, or in place.
//!
//! A segment may be cut and written anew while it is read (`truncation.rs`). A copy that was torn by that fails its
//! checksums, and one that was checked stays what it is. In place stands only what nobody cuts off: frames up to a limit that
//! the replay was given.

use std::sync::atomic::Ordering;

use gapless_wire::descriptor::{FRAME_LENGTH_MAX, PAYLOAD_CRC_OFFSET};
use gapless_wire::prefetch::BACKLOG_AHEAD_BYTES;
use gapless_wire::words::copy_words;
use gapless_wire::{HEADER_LENGTH, aligned_length};

use crate::mapping::Mapping;

/// The length that is copied at once: the bytes after it are on their way meanwhile.
const COPIED_LENGTH: usize = 1024;
/// Frames are checked this far ahead of the one that is returned, in bytes: few enough to be in the
/// processor's cache when the caller reads them.
const CHECK_AHEAD_LENGTH: usize = 32 * 1024;
/// The same for copies, which share the nearest cache with their sources.
const COPY_AHEAD_LENGTH: usize = 4 * 1024;

/// How a replay looks at a segment.
#[derive(Debug)]
pub(super) struct View {
    /// Nothing is copied.
    is_in_place: bool,
    /// Filled up to `filled`; as long as was ever needed.
    copy: Vec<u8>,
    filled: usize,
    /// Where in the segment the copy begins.
    from: usize,
}

impl View {
    /// Of copies.
    pub(super) fn copying() -> Self {
        Self { is_in_place: false, copy: vec![0; COPY_AHEAD_LENGTH + COPIED_LENGTH], filled: 0, from: 0 }
    }

    /// Of the bytes in the segment. The bytes in view must lie below a limit that nobody cuts.
    pub(super) const fn in_place() -> Self {
        Self { is_in_place: true, copy: Vec::new(), filled: 0, from: 0 }
    }

    /// How far frames are checked ahead, bytes.
    #[inline]
    pub(super) const fn ahead_length(&self) -> usize {
        if self.is_in_place { CHECK_AHEAD_LENGTH } else { COPY_AHEAD_LENGTH }
    }

    /// Begins anew at `from`, a multiple of 8, with nothing.
    pub(super) fn begin(&mut self, from: usize) {
        (self.from, self.filled) = (from, 0);
    }

    /// Whether what begins at `position` can still be looked at.
    #[inline]
    pub(super) const fn reaches_back_to(&self, position: usize) -> bool {
        self.is_in_place || self.from <= position
    }

    /// Begins anew at `position` once much stands before it, which nobody looks at again.
    pub(super) fn forget_before(&mut self, position: usize) {
        if position - self.from >= COPY_AHEAD_LENGTH {
            self.begin(position);
        }
    }

    /// The bytes from `position` to `end`, which were looked at.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(super) fn bytes<'a>(&'a self, mapping: &'a Mapping, position: usize, end: usize) -> &'a [u8] {
        if self.is_in_place {
            // SAFETY: the caller that made this replay has said that frames up to its limit are not cut off, and then
            // nobody writes them; of others nothing is looked at (`Replay::check_ahead`).
            unsafe { mapping.bytes(position..end) }
        } else {
            &self.copy[position - self.from..end - self.from]
        }
    }

    /// The bytes from `position` on: the frame there, of the length in its header and as far as `limit`, and perhaps
    /// more.
    #[inline(always)]
    pub(super) fn frame_at<'a>(&'a mut self, mapping: &'a Mapping, position: usize, limit: usize) -> &'a [u8] {
        if self.is_in_place {
            let room = limit.saturating_sub(position);
            let length = if room < HEADER_LENGTH { room } else { length_at(mapping, position).min(room) };
            mapping.prefetch(position + BACKLOG_AHEAD_BYTES, length);
            self.bytes(mapping, position, position + length)
        } else {
            self.copied_frame_at(mapping, position, limit)
        }
    }

    #[inline]
    fn copied_frame_at(&mut self, mapping: &Mapping, position: usize, limit: usize) -> &[u8] {
        self.need(mapping, position + HEADER_LENGTH, limit);
        if let Some(length) = self.copy[position - self.from..self.filled].first_chunk() {
            self.need(mapping, position + padded_length(u32::from_le_bytes(*length)), limit);
        }
        &self.copy[position - self.from..self.filled]
    }

    /// Copies as far as `end` and some more, as far as `limit` and whole words go.
    #[inline(always)]
    fn need(&mut self, mapping: &Mapping, end: usize, limit: usize) {
        let copied_end = self.from + self.filled;
        if copied_end < end.min(limit) {
            self.extend(mapping, end.max(copied_end + COPIED_LENGTH).min(limit));
        }
    }

    #[inline(never)]
    fn extend(&mut self, mapping: &Mapping, end: usize) {
        let start = self.from + self.filled;
        let words = (end - start) / 8;
        let filled = self.filled + words * 8;
        if filled > self.copy.len() {
            self.copy.resize(filled, 0);
        }
        if words > 0 {
            copy_words(mapping.words(start, words), &mut self.copy[self.filled..filled]);
            mapping.prefetch(end, BACKLOG_AHEAD_BYTES);
        }
        self.filled = filled;
    }

    /// Whether the frame at `position`, which was looked at, is the one that stands there now: another has other checksums.
    #[inline(always)]
    pub(super) fn is_current(&self, mapping: &Mapping, position: usize) -> bool {
        // Relaxed: if it is another's it is copied again, after the mark; pairs with nothing.
        let checksums = || mapping.words(position + PAYLOAD_CRC_OFFSET, 1)[0].load(Ordering::Relaxed).to_ne_bytes();
        self.is_in_place || self.copy[position - self.from + PAYLOAD_CRC_OFFSET..].starts_with(&checksums())
    }
}

/// The length, padded, that the frame at `position` says it has; no more than any frame has.
#[inline]
pub(super) fn length_at(mapping: &Mapping, position: usize) -> usize {
    // Relaxed: ordered by the journaled mark.
    let length = padded_length(u64::from_le(mapping.words(position, 1)[0].load(Ordering::Relaxed)) as u32);
    length.max(HEADER_LENGTH)
}

#[inline]
fn padded_length(length: u32) -> usize {
    aligned_length((length as usize).min(FRAME_LENGTH_MAX))
}
