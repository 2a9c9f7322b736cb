//! Atomics for which this crate's ordering arguments are written.
//!
//! [`crate::park_flag`] and [`crate::latch`] are generic over [`AtomicWord`], so that loom checks the shipped code
//! itself. No other module uses it.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A 64-bit atomic and its fence.
pub trait AtomicWord: Send + Sync {
    fn new(value: u64) -> Self;
    fn load(&self, ordering: Ordering) -> u64;
    fn store(&self, value: u64, ordering: Ordering);
    /// Atomic exchange; returns the old value.
    fn swap(&self, value: u64, ordering: Ordering) -> u64;
    /// Stores `new` if the word holds `current`; returns whether it did.
    fn replace(&self, current: u64, new: u64, ordering: Ordering) -> bool;
    /// A fence among words of this kind.
    fn fence(ordering: Ordering);
}

impl AtomicWord for AtomicU64 {
    #[inline(always)]
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }
    #[inline(always)]
    fn load(&self, ordering: Ordering) -> u64 {
        AtomicU64::load(self, ordering)
    }
    #[inline(always)]
    fn store(&self, value: u64, ordering: Ordering) {
        AtomicU64::store(self, value, ordering);
    }
    #[inline(always)]
    fn swap(&self, value: u64, ordering: Ordering) -> u64 {
        AtomicU64::swap(self, value, ordering)
    }
    #[inline(always)]
    fn replace(&self, current: u64, new: u64, ordering: Ordering) -> bool {
        // The value read by a failed exchange is not used.
        self.compare_exchange(current, new, ordering, Ordering::Relaxed).is_ok()
    }
    #[inline(always)]
    fn fence(ordering: Ordering) {
        fence(ordering);
    }
}
