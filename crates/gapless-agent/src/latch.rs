//! A few words that change together, written rarely and read constantly. The writer fills the slot that readers are not
//! using and then advances the count: unlike with a sequence lock, a writer that lost its core half-way blocks no
//! reader (`seqcount_latch` of Linux). `tests/loom/loom_latch.rs` checks the interleavings.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::atomic_word::AtomicWord;

/// `N` words that change together, with one writer at a time.
#[derive(Debug)]
pub struct Latch<const N: usize, A: AtomicWord = AtomicU64> {
    /// Number of writes; the last is in slot `count % 2`.
    count: A,
    slots: [[A; N]; 2],
}

impl<const N: usize, A: AtomicWord> Latch<N, A> {
    #[must_use]
    pub fn new(words: [u64; N]) -> Self {
        Self { count: A::new(0), slots: [words.map(A::new), [0; N].map(A::new)] }
    }

    #[inline]
    pub fn read(&self) -> [u64; N] {
        loop {
            // Acquire: pairs with the Release store in `write`, so the slot is filled.
            let count = self.count.load(Ordering::Acquire);
            let slot = &self.slots[(count & 1) as usize];
            // Relaxed: checked below.
            let words = std::array::from_fn(|index| slot[index].load(Ordering::Relaxed));
            // Pairs with the Release fence in `write`: if a word above came from the write after the next, the load
            // below sees at least the count of the next.
            A::fence(Ordering::Acquire);
            // Relaxed: ordered by the fence.
            if self.count.load(Ordering::Relaxed) == count {
                return words;
            }
        }
    }

    /// Writers must exclude each other by a lock.
    pub fn write(&self, words: [u64; N]) {
        // Relaxed: only writers change it, under their lock.
        let count = self.count.load(Ordering::Relaxed);
        // Pairs with the Acquire fence in `read`: the current count is seen before the words below.
        A::fence(Ordering::Release);
        let next = count.wrapping_add(1);
        for (word, value) in self.slots[(next & 1) as usize].iter().zip(words) {
            // Relaxed: published by the store below.
            word.store(value, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire load in `read`.
        self.count.store(next, Ordering::Release);
    }
}
