//! Hands work to the owner of a lock for which no one waits. The argument is Dekker's: an announcing thread publishes
//! work, counts it, fences, then tries the lock; the owner does the work that it finds, unlocks, fences, then reads the
//! count again. Both fences are SeqCst, so one comes first: either the attempt gets the lock, or the owner sees the
//! announcement. `tests/loom/loom_announcements.rs` checks every interleaving.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::atomic_word::AtomicWord;

/// Number of announcements of work.
#[derive(Debug, Default)]
pub struct Announcements<A: AtomicWord = AtomicU64> {
    count: A,
}

/// Announcements that the owner of a lock knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced(u64);

impl<A: AtomicWord> Announcements<A> {
    #[must_use]
    pub fn new() -> Self {
        Self { count: A::new(0) }
    }

    /// Announces published work. An attempt at the lock must follow.
    #[inline]
    pub fn announce(&self) {
        // Release: pairs with the load in `known`. The fence orders it before the attempt; pairs with that in `has_news`.
        self.count.add(1, Ordering::Release);
        A::fence(Ordering::SeqCst);
    }

    /// Owner, after it has the lock and before it looks for work.
    #[inline]
    pub fn known(&self) -> Announced {
        // Acquire: the work of a known announcement is visible; pairs with the addition in `announce`.
        Announced(self.count.load(Ordering::Acquire))
    }

    /// Owner, after it has unlocked: whether more was announced. It tries the lock again then.
    #[inline]
    #[must_use]
    pub fn has_news(&self, known: Announced) -> bool {
        // Pairs with the fence in `announce`, so the count may be read relaxed.
        A::fence(Ordering::SeqCst);
        Announced(self.count.load(Ordering::Relaxed)) != known
    }
}
