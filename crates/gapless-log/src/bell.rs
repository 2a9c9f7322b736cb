//! [`Bell`]: how callers wake the workers of one copy of a route. A region of one page that the copy makes and its callers map.
//!
//! ```text
//!    0  u64  epoch; its low half is what threads sleep on
//!   64  u64  threads that sleep or are about to
//!  128  u64  tasks that sleep, which an eventfd wakes
//! ```
//! The argument is that of every parking here (Dekker's): a worker announces itself, fences, and looks for work once more; a caller
//! publishes work, fences, and looks at who has announced itself. `tests/loom/loom_calls.rs` runs every order. Callers can write
//! what they like here, so no wait may be for ever: a spoiled bell costs the length of one wait.

use crate::sync::{Ordering, fence};
use crate::{LogError, Region};
use std::time::Duration;

/// Length of a bell's region, bytes.
pub const BELL_LENGTH: usize = 4096;

const EPOCH: usize = 0;
const PARKED_THREADS: usize = 64;
const PARKED_TASKS: usize = 128;

/// Wakes workers.
#[derive(Debug)]
pub struct Bell {
    region: Region,
}

impl Bell {
    /// A bell of a copy.
    ///
    /// # Errors
    /// As [`Region::create`].
    pub fn create() -> Result<Self, LogError> {
        Ok(Self { region: Region::create(BELL_LENGTH)? })
    }

    /// The bell in a region that its copy has passed.
    #[must_use]
    pub const fn new(region: Region) -> Self {
        Self { region }
    }

    /// Its memory.
    #[must_use]
    pub const fn region(&self) -> &Region {
        &self.region
    }

    /// Worker: sleeps until [`Bell::ring`] or for `timeout`, unless `found_work` finds some, which is asked after the
    /// announcement. True if it found work.
    pub fn park(&self, timeout: Duration, found_work: impl FnOnce() -> bool) -> bool {
        // Relaxed: ordered by the fence.
        self.region.word(PARKED_THREADS).fetch_add(1, Ordering::Relaxed);
        // Acquire: read before the look for work; a ring after it changes the epoch, and the sleep ends at once.
        let epoch = self.region.word(EPOCH).load(Ordering::Acquire);
        // SeqCst: pairs with the fence in `ring`; the caller sees the announcement, or this side its work.
        fence(Ordering::SeqCst);
        let found = found_work();
        if !found {
            self.region.wait(EPOCH, epoch as u32, timeout);
        }
        // Relaxed: a caller that still sees it makes one needless call.
        self.region.word(PARKED_THREADS).fetch_sub(1, Ordering::Relaxed);
        found
    }

    /// Tasks of the copy: so many sleep now. The copy's lock puts these changes in order; a task that goes to sleep looks for work
    /// once more after this.
    pub fn announce_tasks(&self, asleep: usize) {
        // Relaxed: ordered by the fence. A caller that still sees a task asleep that is not makes one needless call.
        self.region.word(PARKED_TASKS).store(asleep as u64, Ordering::Relaxed);
        // SeqCst: as in `park`.
        fence(Ordering::SeqCst);
    }

    /// Whether a thread or the tasks sleep. A hint, for choosing a copy.
    #[must_use]
    pub fn is_anyone_parked(&self) -> bool {
        // Relaxed: a hint, pairs with nothing.
        self.region.word(PARKED_THREADS).load(Ordering::Relaxed) != 0
            || self.region.word(PARKED_TASKS).load(Ordering::Relaxed) != 0
    }

    /// After publishing work: wakes one worker if one sleeps. True if the copy's eventfd is to be written, because its tasks
    /// sleep.
    #[must_use]
    pub fn ring(&self) -> bool {
        // SeqCst: pairs with the fence in `park` and `announce_tasks`.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence.
        if self.region.word(PARKED_THREADS).load(Ordering::Relaxed) != 0 {
            // Release: the sleeper that sees the new epoch sees the work.
            self.region.word(EPOCH).fetch_add(1, Ordering::Release);
            self.region.wake(EPOCH, 1);
            return false;
        }
        // Relaxed: as above. It stays as it is: only the copy knows which task it has woken, and which sleep on.
        self.region.word(PARKED_TASKS).load(Ordering::Relaxed) != 0
    }

    /// Wakes every thread of the copy: it stops, or has a new caller.
    pub fn ring_all(&self) {
        self.region.word(EPOCH).fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
        self.region.wake(EPOCH, i32::MAX as u32);
    }
}
