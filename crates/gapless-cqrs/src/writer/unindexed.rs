//! `Unindexed`: keys of decided events that the index may not have yet.

use crate::store::IndexKey;
use rustc_hash::FxHashSet;

const GENERATION_KEYS: usize = 1024;

/// Keys of decided events that the index may lack, forgotten by generations: a younger one begins once the index has
/// reached the end of the older.
#[derive(Default)]
pub(super) struct Unindexed {
    /// All events after this sequence were reported and are not forgotten; `None` while none are reported.
    after: Option<u64>,
    older: Generation,
    younger: Generation,
}

#[derive(Default)]
struct Generation {
    keys: FxHashSet<IndexKey>,
    through: u64,
}

impl Unindexed {
    /// Whether events are to be reported.
    #[inline]
    pub const fn is_active(&self) -> bool {
        self.after.is_some()
    }

    /// Starts again after `sequence`.
    pub fn begin_after(&mut self, sequence: u64) {
        *self = Self { after: Some(sequence), ..Self::default() };
    }

    /// All events of the stream were reported.
    pub fn is_whole(&self) -> bool {
        self.after == Some(0)
    }

    /// All later events were reported, and none is forgotten.
    pub fn covers(&self, sequence: u64) -> bool {
        self.after.is_some_and(|after| after <= sequence)
    }

    /// Reports an event.
    pub fn add(&mut self, key: IndexKey, sequence: u64) {
        self.younger.keys.insert(key);
        self.younger.through = sequence;
    }

    /// Whether there are remembered events with that key.
    pub fn has(&self, key: IndexKey) -> bool {
        self.younger.keys.contains(&key) || self.older.keys.contains(&key)
    }

    /// Forgets keys up to `indexed`; none without an index.
    #[inline]
    pub fn forget(&mut self, indexed: u64, has_index: bool) {
        if has_index && indexed >= self.older.through && self.younger.keys.len() >= GENERATION_KEYS {
            self.after = self.after.max(Some(self.older.through));
            std::mem::swap(&mut self.older, &mut self.younger);
            self.younger.keys.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_indexed_keys_are_forgotten() {
        let mut unindexed = Unindexed::default();
        assert!(!unindexed.is_active() && !unindexed.covers(7) && !unindexed.is_whole());
        unindexed.begin_after(5);
        assert!(unindexed.covers(7) && !unindexed.covers(4) && !unindexed.is_whole());
        for sequence in 6..10_000 {
            unindexed.add(IndexKey(sequence), sequence);
            unindexed.forget(sequence.saturating_sub(10), true);
            assert!((sequence.saturating_sub(9).max(6)..=sequence).all(|key| unindexed.has(IndexKey(key))));
        }
        assert!(!unindexed.has(IndexKey(7000)) && !unindexed.covers(6999), "forgotten keys are still covered");
        unindexed.begin_after(0);
        for sequence in 1..10_000 {
            unindexed.add(IndexKey(sequence), sequence);
            unindexed.forget(u64::MAX, false);
        }
        assert!(unindexed.is_whole() && unindexed.has(IndexKey(1)));
    }
}
