//! [`crate::park_flag`], [`crate::latch`] and [`crate::announcements`] are generic over [`AtomicWord`], so that loom checks
//! the shipped code itself.

use std::sync::atomic::{AtomicU64, Ordering, fence};

pub trait AtomicWord: Send + Sync {
    fn new(value: u64) -> Self;
    fn load(&self, ordering: Ordering) -> u64;
    fn store(&self, value: u64, ordering: Ordering);
    fn swap(&self, value: u64, ordering: Ordering) -> u64;
    fn add(&self, value: u64, ordering: Ordering);
    fn replace(&self, current: u64, new: u64, ordering: Ordering) -> bool;
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
    fn add(&self, value: u64, ordering: Ordering) {
        self.fetch_add(value, ordering);
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
