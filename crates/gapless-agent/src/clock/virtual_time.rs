//! `VirtualTime`: time set by hand, for the simulator and for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Controls of a virtual clock, set by hand; clones control the same clock, from any thread.
#[derive(Clone, Debug)]
pub struct VirtualTime {
    inner: Arc<SharedTime>,
}

#[derive(Debug)]
struct SharedTime {
    monotonic_ns: AtomicU64,
    wall_offset_ns: AtomicI64,
}

impl VirtualTime {
    #[must_use]
    pub fn new(monotonic_ns: u64, wall_ns: u64) -> Self {
        let wall_offset_ns = AtomicI64::new(wall_ns.wrapping_sub(monotonic_ns) as i64);
        Self { inner: Arc::new(SharedTime { monotonic_ns: AtomicU64::new(monotonic_ns), wall_offset_ns }) }
    }

    /// Advances both clocks by `ns`.
    pub fn advance(&self, ns: u64) {
        self.inner.monotonic_ns.fetch_add(ns, Ordering::SeqCst);
    }

    /// Advances both clocks to `monotonic_ns`; an earlier time has no effect.
    pub fn advance_to(&self, monotonic_ns: u64) {
        self.inner.monotonic_ns.fetch_max(monotonic_ns, Ordering::SeqCst);
    }

    /// Makes the wall clock jump without a change of monotonic time.
    pub fn jump_wall_clock(&self, ns: i64) {
        self.inner.wall_offset_ns.fetch_add(ns, Ordering::SeqCst);
    }

    #[must_use]
    pub fn monotonic_ns(&self) -> u64 {
        self.inner.monotonic_ns.load(Ordering::SeqCst)
    }

    /// Wall clock, ns since the epoch: the target of the slew.
    #[must_use]
    pub fn wall_ns(&self) -> u64 {
        self.monotonic_ns().wrapping_add_signed(self.inner.wall_offset_ns.load(Ordering::SeqCst))
    }
}
