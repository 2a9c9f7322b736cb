//! [`Unindexed`]: the keys of the events that the writer has decided and the index may not have yet.

use crate::store::IndexKey;
use rustc_hash::FxHashSet;

/// Keys of a generation at least.
const GENERATION_KEYS: usize = 1024;

/// See the head of the file. Keys are forgotten by generations: a younger one is begun when the index has reached the end of the older.
#[derive(Default)]
pub(super) struct Unindexed {
    /// All events behind this sequence were told and are not forgotten; nobody tells any without it.
    behind: Option<u64>,
    older: Generation,
    younger: Generation,
}

#[derive(Default)]
struct Generation {
    keys: FxHashSet<IndexKey>,
    /// The sequence of its last event.
    through: u64,
}

impl Unindexed {
    /// Whether events are to be told.
    #[inline]
    pub const fn is_active(&self) -> bool {
        self.behind.is_some()
    }

    /// From now on all events behind that sequence are told.
    pub fn begin_behind(&mut self, sequence: u64) {
        *self = Self { behind: Some(sequence), ..Self::default() };
    }

    /// Whether all events of the stream were told.
    pub fn is_whole(&self) -> bool {
        self.behind == Some(0)
    }

    /// Whether all events behind that sequence were told, and none of them is forgotten.
    pub fn covers(&self, sequence: u64) -> bool {
        self.behind.is_some_and(|behind| behind <= sequence)
    }

    /// An event was decided.
    pub fn add(&mut self, key: IndexKey, sequence: u64) {
        self.younger.keys.insert(key);
        self.younger.through = sequence;
    }

    /// Whether events with that key were told, and not forgotten.
    pub fn has(&self, key: IndexKey) -> bool {
        self.younger.keys.contains(&key) || self.older.keys.contains(&key)
    }

    /// The index has everything up to there; without one nothing is forgotten.
    #[inline]
    pub fn forget(&mut self, indexed: u64, has_index: bool) {
        if has_index && indexed >= self.older.through && self.younger.keys.len() >= GENERATION_KEYS {
            // Of those that are forgotten not all are told any more.
            self.behind = self.behind.max(Some(self.older.through));
            std::mem::swap(&mut self.older, &mut self.younger);
            self.younger.keys.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_indexed_is_forgotten_and_nothing_else() {
        let mut unindexed = Unindexed::default();
        assert!(!unindexed.is_active() && !unindexed.covers(7) && !unindexed.is_whole());
        unindexed.begin_behind(5);
        assert!(unindexed.covers(7) && !unindexed.covers(4) && !unindexed.is_whole());
        for sequence in 6..10_000 {
            unindexed.add(IndexKey(sequence), sequence);
            // The index is ten behind.
            unindexed.forget(sequence.saturating_sub(10), true);
            assert!((sequence.saturating_sub(9).max(6)..=sequence).all(|key| unindexed.has(IndexKey(key))));
        }
        assert!(
            !unindexed.has(IndexKey(7000)) && !unindexed.covers(6999),
            "an index that is made anew may not have it either"
        );
        unindexed.begin_behind(0);
        for sequence in 1..10_000 {
            unindexed.add(IndexKey(sequence), sequence);
            unindexed.forget(u64::MAX, false);
        }
        assert!(unindexed.is_whole() && unindexed.has(IndexKey(1)));
    }
}
