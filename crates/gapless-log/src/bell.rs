//! [`Bell`]: how callers wake the workers of one copy of a route. A region of one page that the copy makes and its callers map.
//!
//! ```text
//!    0  of threads: u32 epoch, on which they sleep | u16 asleep or about to be | u16 of those, rung and not come yet
//!   64  of tasks, which an eventfd wakes: u32 unused | u16 asleep | u16 of those, rung and not woken yet
//!  128  u64 handlers that wait to be told that their calls were withdrawn, which an eventfd does
//!  192  u64 0, or while a worker looks for work before it sleeps: 1, or 2 if it was spared a ring
//! ```
//! The argument is that of every parking here (Dekker's): a worker announces itself, fences, and looks for work once more; a caller
//! publishes work, fences, and looks at who has announced itself. Each ring takes up one announcement: a caller that finds none left
//! rings another copy, and a worker that has found work by itself learns that a ring was meant for it. While a worker looks nobody
//! is rung, because a sleeper comes later than it does; it rings for what it sees beside what it takes. `tests/loom/loom_calls.rs` runs
//! every order. Callers can write what they like here, so no wait may be for ever: a spoiled bell costs the length of one wait.

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

/// One of the two words.
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

    /// Changes a word; what stood there before. Acquire and Release: who sees another's change sees what it did before.
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

/// Who was rung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// Nobody sleeps whom no other ring has woken.
    Nobody,
    /// A thread is awake, or was looking for work.
    Thread,
    /// A task: the copy's eventfd is to be written.
    Task,
}

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
    /// announcement. True if it found work and was rung all the same: what the ring was for may be something else, and it is to ring
    /// another if it sees more than it takes.
    pub fn park(&self, timeout: Duration, found_work: impl FnOnce() -> bool) -> bool {
        let word = self.region.word(THREADS);
        // In one step with the epoch: every ring that takes this announcement up changes the epoch, and the sleep ends at once.
        let announced = |sleepers: Sleepers| Some(Sleepers { asleep: sleepers.asleep.saturating_add(1), ..sleepers });
        let epoch = Sleepers::change(word, announced).map_or(0, |before| before.epoch);
        // SeqCst: pairs with the fence in `ring`; the caller sees the announcement, or this side its work.
        fence(Ordering::SeqCst);
        let found = found_work();
        if !found {
            self.region.wait(THREADS, epoch, timeout);
        }
        // Without a ring since its announcement none was for it; of several that were, each thread takes one back, so that none that
        // sleeps on counts as rung.
        let come = |sleepers: Sleepers| {
            let asleep = sleepers.asleep.saturating_sub(1);
            let rung = sleepers.rung.saturating_sub((sleepers.epoch != epoch).into()).min(asleep);
            Some(Sleepers { asleep, rung, ..sleepers })
        };
        let before = Sleepers::change(word, come);
        found && before.is_some_and(|before| before.epoch != epoch)
    }

    /// Worker: looks for work from now on, and is the only one of its copy that does.
    pub fn begin_look(&self) {
        // Relaxed: a caller that does not see it rings a sleeper.
        self.region.word(LOOKING).store(IS_LOOKING, Ordering::Relaxed);
    }

    /// Worker: looks no more. Whether it was spared a ring: then it looks at everything before it sleeps, and rings for what it
    /// sees beside what it takes.
    #[must_use]
    pub fn end_look(&self) -> bool {
        // Acquire: sees the work for which it was spared a ring.
        self.region.word(LOOKING).swap(0, Ordering::AcqRel) == SPARED
    }

    /// Spares the worker that looks a ring; false if none does.
    fn spare_ring(&self) -> bool {
        let word = self.region.word(LOOKING);
        // Relaxed: what it says is confirmed in the next step.
        if word.load(Ordering::Relaxed) == 0 {
            return false;
        }
        // Release: the work is there before the ring is spared.
        let spared = |looking| [IS_LOOKING, SPARED].contains(&looking).then_some(SPARED);
        word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, spared).is_ok()
    }

    /// Tasks of the copy: so many sleep now. The copy's lock puts these changes in order; a task that goes to sleep looks for work
    /// once more after this. True if fewer sleep than were rung: one that stays awake by itself was rung.
    pub fn announce_tasks(&self, asleep: usize) -> bool {
        let asleep = u16::try_from(asleep).unwrap_or(u16::MAX);
        let announced = |sleepers: Sleepers| Some(Sleepers { asleep, rung: sleepers.rung.min(asleep), ..sleepers });
        let before = Sleepers::change(self.region.word(TASKS), announced);
        // SeqCst: as in `park`.
        fence(Ordering::SeqCst);
        before.is_some_and(|before| before.rung > asleep)
    }

    /// Tasks of the copy: how many of the `asleep` that sleep were rung and are to be woken now; the others sleep on. With the
    /// copy's lock.
    #[must_use]
    pub fn take_rung_tasks(&self, asleep: usize) -> usize {
        let left = |rung: u16| u16::try_from(asleep).unwrap_or(u16::MAX).saturating_sub(rung);
        let taken = |sleepers: Sleepers| Some(Sleepers { asleep: left(sleepers.rung), rung: 0, ..sleepers });
        let before = Sleepers::change(self.region.word(TASKS), taken);
        before.map_or(0, |before| usize::from(before.rung).min(asleep))
    }

    /// Handlers of the copy: so many wait now to be told that their calls were withdrawn. The copy's lock puts these changes in order;
    /// one that begins to wait looks at its claim once more after this.
    pub fn announce_watchers(&self, waiting: usize) {
        // Relaxed: the fence orders it.
        self.region.word(WATCHERS).store(waiting as u64, Ordering::Relaxed);
        // SeqCst: pairs with the fence in `has_watchers`; the handler sees the withdrawal, or the caller the announcement.
        fence(Ordering::SeqCst);
    }

    /// Caller, after it has withdrawn a call: whether the copy's eventfd is to be written, because a handler may wait for that.
    #[must_use]
    pub fn has_watchers(&self) -> bool {
        // SeqCst: pairs with the fence in `announce_watchers`.
        fence(Ordering::SeqCst);
        self.region.word(WATCHERS).load(Ordering::Relaxed) != 0
    }

    /// Whether a thread or a task sleeps that was not rung, or a thread looks for work. A hint, for choosing a copy.
    #[must_use]
    pub fn is_anyone_idle(&self) -> bool {
        // Relaxed: a hint, pairs with nothing.
        self.region.word(LOOKING).load(Ordering::Relaxed) != 0
            || [THREADS, TASKS].iter().any(|word| {
                let word = self.region.word(*word).load(Ordering::Relaxed);
                Sleepers::from_word(word).is_anyone_left()
            })
    }

    /// After publishing work: wakes one worker if one sleeps that was not rung, unless one looks for work.
    #[must_use]
    pub fn ring(&self) -> Rung {
        // SeqCst: pairs with the fence in `park` and `announce_tasks`.
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

    /// Wakes every thread of the copy: it stops, or has a new caller. Counts that a caller has spoiled are right again afterwards.
    pub fn ring_all(&self) {
        let all = |sleepers: Sleepers| {
            Some(Sleepers { epoch: sleepers.epoch.wrapping_add(1), rung: sleepers.asleep, ..sleepers })
        };
        let _ = Sleepers::change(self.region.word(THREADS), all);
        fence(Ordering::SeqCst);
        self.region.wake(THREADS, i32::MAX as u32);
    }
}
