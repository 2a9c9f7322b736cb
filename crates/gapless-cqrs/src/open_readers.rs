//! [`OpenReaders`]: where the readers of a host's events are, so that none of what they have before them is deleted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// See the head of the file. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct OpenReaders(Arc<Mutex<Vec<Weak<AtomicU64>>>>);

/// Where one reader is. It is open until this is dropped.
pub(crate) struct ReaderPosition(Arc<AtomicU64>);

impl OpenReaders {
    /// Adds one that reads from a sequence on.
    pub fn open(&self, sequence: u64) -> ReaderPosition {
        let position = Arc::new(AtomicU64::new(sequence));
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|position| position.strong_count() > 0);
        open.push(Arc::downgrade(&position));
        ReaderPosition(position)
    }

    /// What the one that is furthest behind reads next.
    pub fn lowest(&self) -> Option<u64> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: they may go on meanwhile.
        open.iter().filter_map(Weak::upgrade).map(|position| position.load(Ordering::Relaxed)).min()
    }
}

impl ReaderPosition {
    /// Everything before that sequence is read.
    #[inline]
    pub fn set(&self, sequence: u64) {
        // Relaxed: it guards nothing.
        self.0.store(sequence, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_of_those_that_are_open_counts() {
        let readers = OpenReaders::default();
        assert_eq!(readers.lowest(), None);
        let (first, second) = (readers.open(1), readers.open(7));
        assert_eq!(readers.lowest(), Some(1));
        first.set(9);
        assert_eq!(readers.lowest(), Some(7));
        drop(second);
        assert_eq!(readers.lowest(), Some(9));
        drop(first);
        assert_eq!(readers.lowest(), None);
    }
}
