//! [`OpenReaders`]: positions of a host's readers, so that no events are deleted that one of them still has to read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

#[derive(Clone, Default)]
pub(crate) struct OpenReaders(Arc<Mutex<Vec<Weak<AtomicU64>>>>);

/// Registered until it is dropped.
pub(crate) struct ReaderPosition(Arc<AtomicU64>);

impl OpenReaders {
    /// Registers a reader at a sequence.
    pub fn open(&self, sequence: u64) -> ReaderPosition {
        let position = Arc::new(AtomicU64::new(sequence));
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|position| position.strong_count() > 0);
        open.push(Arc::downgrade(&position));
        ReaderPosition(position)
    }

    /// Lowest position of all readers.
    pub fn lowest(&self) -> Option<u64> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: readers may move on at any time.
        open.iter().filter_map(Weak::upgrade).map(|position| position.load(Ordering::Relaxed)).min()
    }
}

impl ReaderPosition {
    /// Sets the sequence of the next frame to be read.
    #[inline]
    pub fn set(&self, sequence: u64) {
        // Relaxed: the position guards no data.
        self.0.store(sequence, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_open_reader_counts() {
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
