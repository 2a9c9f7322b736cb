//! Sparse index of a segment. Only a hint: an entry is used only if the frame that it names is there and valid. Without
//! entries a search begins at the first frame.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::descriptor::INDEX_STRIDE;

#[inline]
pub(crate) fn slot_of(position: usize, frames_offset: usize) -> usize {
    (position - frames_offset) / INDEX_STRIDE
}

#[inline]
pub(crate) fn record(words: &[AtomicU64], slot: usize, sequence: u64, position: usize) {
    if let Some([entry_sequence, entry_position]) = words.get(slot * 2..slot * 2 + 2) {
        // Relaxed: a reader checks the frame, and the journaled mark publishes frames.
        entry_sequence.store(sequence.to_le(), Ordering::Relaxed);
        entry_position.store((position as u64).to_le(), Ordering::Relaxed);
    }
}

pub(crate) fn clear_from(words: &[AtomicU64], position: usize) {
    for entry in words.chunks_exact(2) {
        if read(entry).1 >= position as u64 {
            // Relaxed: as in `record`.
            entry[0].store(0, Ordering::Relaxed);
            entry[1].store(0, Ordering::Relaxed);
        }
    }
}

/// Tells whether the first batch has its entry, without which recovery rebuilds the index. Records may precede that
/// batch.
pub(crate) fn is_begun(words: &[AtomicU64], first_sequence: u64, frames_offset: usize) -> bool {
    let mut used = words.chunks_exact(2).map(read).filter(|&(sequence, _)| sequence != 0);
    used.next().is_some_and(|(sequence, position)| sequence == first_sequence && position >= frames_offset as u64)
}

pub(crate) fn is_free(words: &[AtomicU64], slot: usize) -> bool {
    words.get(slot * 2..slot * 2 + 2).is_some_and(|entry| read(entry).0 == 0)
}

pub(crate) fn last_entry(words: &[AtomicU64], sequence: u64) -> Option<(u64, usize)> {
    let entries = words.chunks_exact(2).map(read).filter(|&(first, _)| first != 0 && first <= sequence);
    entries.max().map(|(first, position)| (first, position as usize))
}

/// Nearest indexed position at or before `sequence` with a valid frame. `frames`: readable range.
pub(crate) fn nearest(
    words: &[AtomicU64],
    frames: Range<usize>,
    sequence: u64,
    mut is_frame: impl FnMut(u64, usize) -> bool,
) -> Option<(u64, usize)> {
    let mut entries: Vec<(u64, usize)> = words
        .chunks_exact(2)
        .map(read)
        .filter(|&(first, _)| first != 0 && first <= sequence)
        .filter_map(|(first, position)| Some((first, usize::try_from(position).ok()?)))
        .filter(|(_, position)| frames.contains(position) && position.is_multiple_of(8))
        .collect();
    entries.sort_unstable();
    entries.into_iter().rev().find(|&(first, position)| is_frame(first, position))
}

/// Entries after the end of `frames` are not checked.
pub(crate) fn count_bad(
    words: &[AtomicU64],
    frames: Range<usize>,
    mut is_frame: impl FnMut(u64, usize) -> bool,
) -> u64 {
    let is_bad = |&(first, position): &(u64, u64)| {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        let mut leads_nowhere = || !position.is_multiple_of(8) || !is_frame(first, position);
        let is_unused = first == 0 && position == 0;
        !is_unused && (position < frames.start || (position < frames.end && leads_nowhere()))
    };
    words.chunks_exact(2).map(read).filter(is_bad).count() as u64
}

fn read(entry: &[AtomicU64]) -> (u64, u64) {
    // Relaxed: as in `record`.
    (u64::from_le(entry[0].load(Ordering::Relaxed)), u64::from_le(entry[1].load(Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::check_frame;
    use crate::test_frames::frames;

    fn words(entries: &[(u64, usize)]) -> Vec<AtomicU64> {
        let words: Vec<AtomicU64> = (0..16).map(|_| AtomicU64::new(0)).collect();
        for (slot, &(sequence, position)) in entries.iter().enumerate() {
            record(&words, slot, sequence, position);
        }
        words
    }

    #[test]
    fn false_index_entry_is_skipped() {
        let bytes = frames(1, 8, 64);
        let words = words(&[(1, 0), (3, 256), (6, 256), (5, 512), (4, 3), (7, 1 << 40), (8, 1024)]);
        let is_frame = |first, position: usize| check_frame(&bytes[position..], first, 1376).is_ok();
        let nearest = |sequence| nearest(&words, 0..bytes.len(), sequence, is_frame);
        assert_eq!(nearest(8), Some((5, 512)));
        assert_eq!(nearest(4), Some((3, 256)));
        assert_eq!(nearest(2), Some((1, 0)));
        assert_eq!(nearest(0), None);
    }

    #[test]
    fn clear_removes_later_entries() {
        let words = words(&[(1, 0), (3, 256), (5, 512)]);
        assert!(is_begun(&words, 1, 0));
        clear_from(&words, 256);
        assert_eq!(words.iter().map(|w| w.load(Ordering::SeqCst)).sum::<u64>(), 1);
        assert!(!is_begun(&words, 2, 0));
    }
}
