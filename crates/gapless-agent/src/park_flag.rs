//! Tells a waker whether it must make a system call, without losing a wake-up. The argument is Dekker's: the parking
//! thread writes the flag, fences, then looks for work; the waking thread publishes work, fences, then reads the flag.
//! Both fences are SeqCst, so one comes first: either the waker sees the flag, or the parking thread sees the work.
//! `tests/loom/loom_parking.rs` checks every interleaving.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::atomic_word::AtomicWord;

const AWAKE: u64 = 0;
const PARKED: u64 = 1;
const NEVER_PARKS: u64 = 2;

/// Flag between one parking thread and any number of waking threads.
#[derive(Debug, Default)]
pub struct ParkFlag<A: AtomicWord = AtomicU64> {
    state: A,
}

impl<A: AtomicWord> ParkFlag<A> {
    #[must_use]
    pub fn new() -> Self {
        Self { state: A::new(AWAKE) }
    }

    /// Parking thread: requests wake-ups, then must look for work once more before it waits.
    pub fn announce(&self) {
        // Relaxed: the fence orders it before the search for work; pairs with the fence in `claim_wake`.
        self.state.store(PARKED, Ordering::Relaxed);
        A::fence(Ordering::SeqCst);
    }

    /// Parking thread: withdraws the request; true if a waker has claimed the wake-up, whose signal has arrived or is
    /// about to.
    pub fn withdraw(&self) -> bool {
        // AcqRel: pairs with the exchange in `claim_wake`, so that work published by the waker is seen.
        self.state.swap(AWAKE, Ordering::AcqRel) != PARKED
    }

    /// Declares that the owner spins forever, so that wakers may skip the fence. Irrevocable, and only before the
    /// thread's first park.
    pub fn set_never_parks(&self) {
        // Relaxed: a waker that does not see it yet takes the slower path.
        self.state.store(NEVER_PARKS, Ordering::Relaxed);
    }

    /// Waking thread, after publishing work: true if it must signal the parked thread; only one of several concurrent
    /// wakers gets true.
    #[inline]
    pub fn claim_wake(&self) -> bool {
        // Relaxed: NEVER_PARKS never changes back, so an early read cannot miss a park.
        if self.state.load(Ordering::Relaxed) == NEVER_PARKS {
            return false;
        }
        A::fence(Ordering::SeqCst);
        // Relaxed: ordered after the publication by the fence; pairs with the fence in `announce`.
        if self.state.load(Ordering::Relaxed) != PARKED {
            return false;
        }
        // AcqRel: pairs with the swap in `withdraw`.
        self.state.replace(PARKED, AWAKE, Ordering::AcqRel)
    }

    #[must_use]
    pub fn is_parked(&self) -> bool {
        // Relaxed: a hint, pairs with nothing.
        self.state.load(Ordering::Relaxed) == PARKED
    }
}
