//! [`SegmentView`]: a segment's bytes, copied word by word or borrowed in place. A segment may be truncated and
//! rewritten while it is read: a copy torn by that fails its checksums, and a checked copy stays valid. Only frames up
//! to a limit that is never truncated are read in place.

use std::sync::atomic::Ordering;

use gapless_wire::descriptor::{FRAME_LENGTH_MAX, PAYLOAD_CRC_OFFSET};
use gapless_wire::prefetch::BACKLOG_AHEAD_BYTES;
use gapless_wire::words::copy_words;
use gapless_wire::{HEADER_LENGTH, aligned_length};

use crate::mapping::FileMapping;

const COPIED_LENGTH: usize = 1024;
/// Bytes; stays in the processor's cache until the caller reads it.
const CHECK_AHEAD_LENGTH: usize = 32 * 1024;
/// Copies share the nearest cache with their sources.
const COPY_AHEAD_LENGTH: usize = 4 * 1024;

#[derive(Debug)]
pub(super) struct SegmentView {
    is_in_place: bool,
    copy: Vec<u8>,
    filled: usize,
    from: usize,
}

impl SegmentView {
    pub(super) fn with_copies() -> Self {
        Self { is_in_place: false, copy: vec![0; COPY_AHEAD_LENGTH + COPIED_LENGTH], filled: 0, from: 0 }
    }

    /// The viewed bytes must lie below a limit that is never truncated.
    pub(super) const fn in_place() -> Self {
        Self { is_in_place: true, copy: Vec::new(), filled: 0, from: 0 }
    }

    #[inline]
    pub(super) const fn ahead_length(&self) -> usize {
        if self.is_in_place { CHECK_AHEAD_LENGTH } else { COPY_AHEAD_LENGTH }
    }

    pub(super) fn begin(&mut self, from: usize) {
        (self.from, self.filled) = (from, 0);
    }

    #[inline]
    pub(super) const fn is_readable_at(&self, position: usize) -> bool {
        self.is_in_place || self.from <= position
    }

    /// Restarts at `position` once many bytes lie before it, which are not read again.
    pub(super) fn discard_before(&mut self, position: usize) {
        if position - self.from >= COPY_AHEAD_LENGTH {
            self.begin(position);
        }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    pub(super) fn bytes<'a>(&'a self, mapping: &'a FileMapping, position: usize, end: usize) -> &'a [u8] {
        if self.is_in_place {
            // SAFETY: the creator of this replay has promised that frames up to its limit are not truncated, so no
            // thread writes them. Other frames are not read (`Replay::check_ahead`).
            unsafe { mapping.bytes(position..end) }
        } else {
            &self.copy[position - self.from..end - self.from]
        }
    }

    /// The frame at `position`, by the length in its header and up to `limit`, and perhaps more.
    #[inline(always)]
    pub(super) fn frame_at<'a>(&'a mut self, mapping: &'a FileMapping, position: usize, limit: usize) -> &'a [u8] {
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
    fn copied_frame_at(&mut self, mapping: &FileMapping, position: usize, limit: usize) -> &[u8] {
        self.copy_until(mapping, position + HEADER_LENGTH, limit);
        if let Some(length) = self.copy[position - self.from..self.filled].first_chunk() {
            self.copy_until(mapping, position + padded_length(u32::from_le_bytes(*length)), limit);
        }
        &self.copy[position - self.from..self.filled]
    }

    #[inline(always)]
    fn copy_until(&mut self, mapping: &FileMapping, end: usize, limit: usize) {
        let copied_end = self.from + self.filled;
        if copied_end < end.min(limit) {
            self.extend(mapping, end.max(copied_end + COPIED_LENGTH).min(limit));
        }
    }

    #[inline(never)]
    fn extend(&mut self, mapping: &FileMapping, end: usize) {
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

    /// Another frame has other checksums.
    #[inline(always)]
    pub(super) fn is_current(&self, mapping: &FileMapping, position: usize) -> bool {
        // Relaxed: a changed frame is copied again, after the mark.
        let checksums = || mapping.words(position + PAYLOAD_CRC_OFFSET, 1)[0].load(Ordering::Relaxed).to_ne_bytes();
        self.is_in_place || self.copy[position - self.from + PAYLOAD_CRC_OFFSET..].starts_with(&checksums())
    }
}

#[inline]
pub(super) fn length_at(mapping: &FileMapping, position: usize) -> usize {
    // Relaxed: ordered by the journaled mark.
    let length = padded_length(u64::from_le(mapping.words(position, 1)[0].load(Ordering::Relaxed)) as u32);
    length.max(HEADER_LENGTH)
}

#[inline]
fn padded_length(length: u32) -> usize {
    aligned_length((length as usize).min(FRAME_LENGTH_MAX))
}
