//! `Latch`: a few words that change together, written seldom and read all the time.
//!
//! The clock keeps its current piece of the time line here. Two slots and a count: the writer
//! fills the slot that nobody is sent to and then moves the count, so that a reader is never held
//! up by a writer that lost its core in the middle (which a plain sequence lock does); Linux has it as `seqcount_latch`. A reader
//! only tries again if a whole write came in between. `tests/loom/loom_latch.rs` runs the interleavings.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::atomic_word::AtomicWord;

/// `N` words that change together. One writer at a time; the caller sees to that.
#[derive(Debug)]
pub struct Latch<const N: usize, A: AtomicWord = AtomicU64> {
    /// How many writes there were; the last is in slot `count % 2`.
    count: A,
    slots: [[A; N]; 2],
}

impl<const N: usize, A: AtomicWord> Latch<N, A> {
    /// A latch holding `words`.
    #[must_use]
    pub fn new(words: [u64; N]) -> Self {
        Self { count: A::new(0), slots: [words.map(A::new), [0; N].map(A::new)] }
    }

    /// The words of one write.
    #[inline]
    pub fn read(&self) -> [u64; N] {
        loop {
            // Acquire pairs with the Release store in `write`: the slot is filled.
            let count = self.count.load(Ordering::Acquire);
            let slot = &self.slots[(count & 1) as usize];
            // Relaxed: checked below.
            let words = std::array::from_fn(|index| slot[index].load(Ordering::Relaxed));
            // Pairs with the Release fence in `write`: if any word above came from the write after
            // the next, the load below sees the count of the next at least.
            A::fence(Ordering::Acquire);
            // Relaxed: ordered by the fence.
            if self.count.load(Ordering::Relaxed) == count {
                return words;
            }
        }
    }

    /// Replaces the words. Writers exclude each other by a lock.
    pub fn write(&self, words: [u64; N]) {
        // Relaxed: only writers change it, and they hold the lock.
        let count = self.count.load(Ordering::Relaxed);
        // Pairs with the Acquire fence in `read`: the count as it is now is seen before the words below.
        A::fence(Ordering::Release);
        let next = count.wrapping_add(1);
        for (word, value) in self.slots[(next & 1) as usize].iter().zip(words) {
            // Relaxed: published by the store below.
            word.store(value, Ordering::Relaxed);
        }
        // Release pairs with the Acquire load in `read`.
        self.count.store(next, Ordering::Release);
    }
}
