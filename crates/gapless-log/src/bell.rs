//! [`Bell`]: wakes the workers of one instance of a route.
//!
//! ```text
//!   0  threads: u32 epoch, their futex | u16 asleep or about to be | u16 of those, rung and not awake yet
//!  64  tasks, woken by an eventfd: u32 unused | u16 asleep | u16 of those, rung and not woken yet
//! 128  u64 handlers that wait for the withdrawal of their calls, signalled by an eventfd
//! 192  u64 0, or while a worker looks for work before it sleeps: 1, or 2 if it was spared a ring
//! ```
//!
//! The argument is that of all parking here (Dekker's): a worker announces itself, fences, and looks for work once
//! more; a caller publishes work, fences, and looks for announcements. Each ring consumes one announcement: a caller
//! that finds none left rings another instance, and a worker that has found work by itself learns that a ring was meant
//! for it. While a worker looks, no sleeper is rung, because it would come later than the looking worker; that worker
//! rings for any work that it does not take. Callers can write anything here, so no wait may be unbounded: a corrupted
//! bell costs the length of one wait.

use crate::sync::{AtomicU64, Ordering, fence};
use crate::{LogError, Region};
use std::time::Duration;

/// Length of a bell's region, bytes.
pub const BELL_LENGTH: usize = 4096;

const THREADS: usize = 0;
const TASKS: usize = 64;
const WATCHERS: usize = 128;
const LOOKING: usize = 192;

const IS_LOOKING: u64 = 1;
const SPARED: u64 = 2;

#[derive(Clone, Copy)]
struct Sleepers {
    epoch: u32,
    asleep: u16,
    rung: u16,
}

impl Sleepers {
    const fn from_word(word: u64) -> Self {
        Self { epoch: word as u32, asleep: (word >> 32) as u16, rung: (word >> 48) as u16 }
    }

    const fn to_word(self) -> u64 {
        (self.rung as u64) << 48 | (self.asleep as u64) << 32 | self.epoch as u64
    }

    fn change(word: &AtomicU64, change: impl Fn(Self) -> Option<Self>) -> Option<Self> {
        let changed = |word| change(Self::from_word(word)).map(Self::to_word);
        word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, changed).ok().map(Self::from_word)
    }

    const fn is_anyone_left(self) -> bool {
        self.asleep > self.rung
    }

    fn ring(self) -> Option<Self> {
        self.is_anyone_left().then(|| Self { epoch: self.epoch.wrapping_add(1), rung: self.rung + 1, ..self })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    Nobody,
    Thread,
    /// The caller must write the instance's eventfd.
    Task,
}

#[derive(Debug)]
pub struct Bell {
    region: Region,
}

impl Bell {
    /// Makes the bell of an instance.
    ///
    /// # Errors
    /// As [`Region::create`].
    pub fn create() -> Result<Self, LogError> {
        Ok(Self { region: Region::create(BELL_LENGTH)? })
    }

    #[must_use]
    pub const fn new(region: Region) -> Self {
        Self { region }
    }

    #[must_use]
    pub const fn region(&self) -> &Region {
        &self.region
    }

    /// Worker: sleeps until [`Bell::ring`] or for `timeout`, unless `found_work`, called after the announcement,
    /// returns true. True if there was work and also a ring, perhaps for other work: ring another if there is more than
    /// this worker takes.
    pub fn park(&self, timeout: Duration, found_work: impl FnOnce() -> bool) -> bool {
        let word = self.region.word(THREADS);
        // In one step with the epoch: a ring that consumes this announcement ends the sleep at once.
        let announced = |sleepers: Sleepers| Some(Sleepers { asleep: sleepers.asleep.saturating_add(1), ..sleepers });
        let epoch = Sleepers::change(word, announced).map_or(0, |before| before.epoch);
        // SeqCst: pairs with the fence in `ring`. Either the caller sees the announcement, or this worker sees the
        // work.
        fence(Ordering::SeqCst);
        let found = found_work();
        if !found {
            self.region.wait(THREADS, epoch, timeout);
        }
        // Several rings may have come since: each thread takes one back, so that no sleeper counts as rung.
        let come = |sleepers: Sleepers| {
            let asleep = sleepers.asleep.saturating_sub(1);
            let rung = sleepers.rung.saturating_sub((sleepers.epoch != epoch).into()).min(asleep);
            Some(Sleepers { asleep, rung, ..sleepers })
        };
        let before = Sleepers::change(word, come);
        found && before.is_some_and(|before| before.epoch != epoch)
    }

    /// Begins a look for work; one worker of an instance at a time.
    pub fn begin_look(&self) {
        // Relaxed: a caller that does not see it rings a sleeper.
        self.region.word(LOOKING).store(IS_LOOKING, Ordering::Relaxed);
    }

    /// True if the worker was spared a ring: it must check everything before it sleeps, and ring for any work that it
    /// does not take.
    #[must_use]
    pub fn end_look(&self) -> bool {
        // Acquire: sees the work for which it was spared a ring.
        self.region.word(LOOKING).swap(0, Ordering::AcqRel) == SPARED
    }

    fn spare_ring(&self) -> bool {
        let word = self.region.word(LOOKING);
        // Relaxed: confirmed in the next step.
        if word.load(Ordering::Relaxed) == 0 {
            return false;
        }
        // Release: the work is there before the ring is spared.
        let spared = |looking| [IS_LOOKING, SPARED].contains(&looking).then_some(SPARED);
        word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, spared).is_ok()
    }

    /// Under the instance's lock; a task must look for work once more after this. True if a task that stays awake was
    /// rung.
    pub fn announce_tasks(&self, asleep: usize) -> bool {
        let asleep = u16::try_from(asleep).unwrap_or(u16::MAX);
        let announced = |sleepers: Sleepers| Some(Sleepers { asleep, rung: sleepers.rung.min(asleep), ..sleepers });
        let before = Sleepers::change(self.region.word(TASKS), announced);
        // SeqCst: as in `park`.
        fence(Ordering::SeqCst);
        before.is_some_and(|before| before.rung > asleep)
    }

    /// Number of the `asleep` tasks that were rung and must be woken now; call it with the instance's lock.
    #[must_use]
    pub fn take_rung_tasks(&self, asleep: usize) -> usize {
        let left = |rung: u16| u16::try_from(asleep).unwrap_or(u16::MAX).saturating_sub(rung);
        let taken = |sleepers: Sleepers| Some(Sleepers { asleep: left(sleepers.rung), rung: 0, ..sleepers });
        let before = Sleepers::change(self.region.word(TASKS), taken);
        before.map_or(0, |before| usize::from(before.rung).min(asleep))
    }

    /// Announces how many handlers wait for the withdrawal of their calls, under the instance's lock; a handler must
    /// check its claim once more after this.
    pub fn announce_watchers(&self, waiting: usize) {
        // Relaxed: ordered by the fence.
        self.region.word(WATCHERS).store(waiting as u64, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `has_watchers`. Either the handler sees the withdrawal, or the caller sees
        // the announcement.
        fence(Ordering::SeqCst);
    }

    /// Caller, after a withdrawal: reports whether to write the instance's eventfd, because a handler may wait for it.
    #[must_use]
    pub fn has_watchers(&self) -> bool {
        // SeqCst: pairs with the fence in `announce_watchers`.
        fence(Ordering::SeqCst);
        self.region.word(WATCHERS).load(Ordering::Relaxed) != 0
    }

    /// A hint, for the choice of an instance: a thread or a task sleeps that was not rung, or a thread looks for work.
    #[must_use]
    pub fn is_anyone_idle(&self) -> bool {
        // Relaxed: a hint that synchronises nothing.
        self.region.word(LOOKING).load(Ordering::Relaxed) != 0
            || [THREADS, TASKS].iter().any(|word| {
                let word = self.region.word(*word).load(Ordering::Relaxed);
                Sleepers::from_word(word).is_anyone_left()
            })
    }

    /// Caller, after publishing work: wakes one sleeping worker that was not rung, unless a worker is looking for work.
    #[must_use]
    pub fn ring(&self) -> Rung {
        // SeqCst: pairs with the fences in `park` and `announce_tasks`.
        fence(Ordering::SeqCst);
        if self.spare_ring() {
            return Rung::Thread;
        }
        if Sleepers::change(self.region.word(THREADS), Sleepers::ring).is_some() {
            self.region.wake(THREADS, 1);
            return Rung::Thread;
        }
        match Sleepers::change(self.region.word(TASKS), Sleepers::ring) {
            Some(_) => Rung::Task,
            None => Rung::Nobody,
        }
    }

    /// Wakes every thread of the instance, and repairs counts that a caller has corrupted.
    pub fn ring_all(&self) {
        let all = |sleepers: Sleepers| {
            Some(Sleepers { epoch: sleepers.epoch.wrapping_add(1), rung: sleepers.asleep, ..sleepers })
        };
        let _ = Sleepers::change(self.region.word(THREADS), all);
        fence(Ordering::SeqCst);
        self.region.wake(THREADS, i32::MAX as u32);
    }
}
