//! The parked flag: how a waker knows whether it must make a system call, and no wake-up is lost.
//!
//! Used by [`crate::Waker`]. It decides; it never waits and never makes the call itself.
//!
//! The argument is Dekker's. The parking thread writes the flag, fences, then looks for work; the
//! waking thread publishes work, fences, then reads the flag. Both fences are SeqCst, so one comes
//! first: either the waker sees the flag, or the parking thread sees the work. `tests/loom/loom_parking.rs`
//! runs every interleaving of this code, and shows that it fails without the fences.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::atomic_word::AtomicWord;

const AWAKE: u64 = 0;
const PARKED: u64 = 1;
const NEVER_PARKS: u64 = 2;

/// The flag between one thread that parks and any number that wake it.
#[derive(Debug, Default)]
pub struct ParkFlag<A: AtomicWord = AtomicU64> {
    state: A,
}

impl<A: AtomicWord> ParkFlag<A> {
    /// A flag that says awake.
    #[must_use]
    pub fn new() -> Self {
        Self { state: A::new(AWAKE) }
    }

    /// Parking thread: from now on it wants to be woken. It must look for work once more after
    /// this and before it waits.
    pub fn announce(&self) {
        // Relaxed is enough: the fence orders it before the look for work; pairs with the fence in `claim_wake`.
        self.state.store(PARKED, Ordering::Relaxed);
        A::fence(Ordering::SeqCst);
    }

    /// Parking thread: awake again. True if a waker has claimed the wake-up, whose signal has
    /// arrived or is about to.
    pub fn withdraw(&self) -> bool {
        // AcqRel pairs with the exchange in `claim_wake`: what the waker published is seen.
        self.state.swap(AWAKE, Ordering::AcqRel) != PARKED
    }

    /// The owner spins for ever: wakers may skip the fence. Only before the thread's first park,
    /// and for good.
    pub fn set_never_parks(&self) {
        // Relaxed: a waker that does not see it yet only takes the slower way.
        self.state.store(NEVER_PARKS, Ordering::Relaxed);
    }

    /// Waking thread, after it has published work: true if it must signal the parked thread. Of
    /// several that wake at once only one is told so.
    #[inline]
    pub fn claim_wake(&self) -> bool {
        // Relaxed: NEVER_PARKS never changes back, so an early look cannot miss a park.
        if self.state.load(Ordering::Relaxed) == NEVER_PARKS {
            return false;
        }
        A::fence(Ordering::SeqCst);
        // Relaxed: ordered after the publication by the fence; pairs with the fence in `announce`.
        if self.state.load(Ordering::Relaxed) != PARKED {
            return false;
        }
        // AcqRel pairs with the swap in `withdraw`.
        self.state.replace(PARKED, AWAKE, Ordering::AcqRel)
    }

    /// Whether the thread has announced that it parks. A hint.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        // Relaxed: a hint, pairs with nothing.
        self.state.load(Ordering::Relaxed) == PARKED
    }
}
