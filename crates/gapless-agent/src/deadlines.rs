//! [`Deadlines`]: callbacks at deadlines, for tasks and callbacks whose waiting code checks no clock.
//!
//! Entering and leaving cost one short lock of one of eight shards. The thread is woken only for a deadline earlier
//! than the one it sleeps for, so calls with the same timeout cost one wake-up for each such period.
//!
//! No deadline is overslept. The sleeper first stores "forever", then scans the shards, then lowers the stored time to
//! the earliest deadline found, then parks. An entry made after the scan of its shard reads, by the order of the
//! shard's lock, a value at least as recent as "forever", lowers it and wakes; an entry made before is found by the
//! scan.

use crate::foreign;
use crate::process_mark::ProcessMark;
use crate::timer_wheel::{Wheel, WheelKey};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::monotonic::monotonic_ns;

const SHARDS: usize = 8;

pub trait DeadlineTarget: Send + Sync {
    fn expire(&self);
}

impl DeadlineTarget for Waker {
    fn expire(&self) {
        foreign::wake(self.clone());
    }
}

/// Wakes a task at a given time, unless it is dropped before.
#[derive(Debug)]
pub struct Alarm {
    deadlines: Arc<Deadlines>,
    key: DeadlineKey,
}

impl Alarm {
    /// Sets an alarm at `time_ns` of the monotonic clock.
    #[must_use]
    pub fn set(time_ns: u64, task: Waker) -> Self {
        let deadlines = Deadlines::of_process();
        let key = deadlines.enter(time_ns, Arc::new(task));
        Self { deadlines, key }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.deadlines.leave(self.key);
    }
}

#[derive(Clone, Copy, Debug)]
pub struct DeadlineKey {
    shard: usize,
    key: WheelKey,
}

#[derive(Default)]
#[repr(align(128))]
struct DeadlineShard(Mutex<Wheel<Arc<dyn DeadlineTarget>>>);

pub struct Deadlines {
    shards: [DeadlineShard; SHARDS],
    /// 0 while the sleeper is awake and will scan.
    sleeps_until_ns: AtomicU64,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Deadlines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deadlines").field("waiting", &self.len()).finish_non_exhaustive()
    }
}

impl Deadlines {
    /// Creates deadlines for a caller of [`Deadlines::expire`]. `wake` is called when the next deadline has become
    /// earlier; it must not be lost if the caller is not waiting yet.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self { shards: Default::default(), sleeps_until_ns: AtomicU64::new(0), wake: Box::new(wake) }
    }

    /// Deadlines of this process, with their own thread from the first use.
    #[must_use]
    pub fn of_process() -> Arc<Self> {
        type OwnedDeadlines = (ProcessMark, Arc<Deadlines>);
        static OF_PROCESS: OnceLock<OwnedDeadlines> = OnceLock::new();
        static OF_CHILD: Mutex<Option<OwnedDeadlines>> = Mutex::new(None);
        let (mark, deadlines) = OF_PROCESS.get_or_init(|| (ProcessMark::current(), spawn()));
        if mark.is_here() {
            return Arc::clone(deadlines);
        }
        // The thread of inherited deadlines exists only in the process that forked this one.
        let mut of_child = OF_CHILD.lock().unwrap_or_else(PoisonError::into_inner);
        let of_parent = of_child.take_if(|(mark, _)| !mark.is_here());
        std::mem::forget(of_parent);
        Arc::clone(&of_child.get_or_insert_with(|| (ProcessMark::current(), spawn())).1)
    }

    /// Runs all callbacks due at `now_ns` of the monotonic clock. Returns the time of the next call, `u64::MAX` for
    /// never; `wake` is called if that becomes earlier.
    pub fn expire(&self, now_ns: u64) -> u64 {
        let mut due = Vec::new();
        for shard in &self.shards {
            lock(shard).expire(now_ns, |timed| due.push(timed));
        }
        // Without a lock: a callback may run any code, and enter or leave here.
        due.into_iter().for_each(|timed| timed.expire());
        self.next_deadline_ns()
    }

    /// Time of the next [`Deadlines::expire`], `u64::MAX` for never; up to half a second early for a distant deadline.
    /// The caller sleeps until then, or until `wake`.
    pub fn next_deadline_ns(&self) -> u64 {
        // SeqCst throughout, once for each sleep: see the module.
        self.sleeps_until_ns.store(u64::MAX, Ordering::SeqCst);
        let next = self.shards.iter().map(|shard| lock(shard).next_ns()).min().unwrap_or(u64::MAX);
        self.sleeps_until_ns.fetch_min(next, Ordering::SeqCst).min(next)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds `timed`, which expires at `deadline_ns` of the monotonic clock unless it leaves before.
    pub fn enter(&self, deadline_ns: u64, timed: Arc<dyn DeadlineTarget>) -> DeadlineKey {
        let shard = shard_of_thread();
        let key = lock(&self.shards[shard]).insert(deadline_ns, timed);
        // Relaxed: the shard's lock orders it after the sleeper's "forever". The store after the scan can only cause
        // one extra wake-up.
        if deadline_ns < self.sleeps_until_ns.load(Ordering::Relaxed) {
            self.wake_for(deadline_ns);
        }
        DeadlineKey { shard, key }
    }

    /// No effect if the entry has expired.
    pub fn leave(&self, key: DeadlineKey) {
        let timed = lock(&self.shards[key.shard]).remove(key.key);
        drop(timed);
    }

    #[cold]
    fn wake_for(&self, deadline_ns: u64) {
        if self.sleeps_until_ns.fetch_min(deadline_ns, Ordering::SeqCst) > deadline_ns {
            (self.wake)();
        }
    }
}

fn lock(shard: &DeadlineShard) -> std::sync::MutexGuard<'_, Wheel<Arc<dyn DeadlineTarget>>> {
    // No code that can panic runs under these locks.
    shard.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shard_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: only a number; publishes nothing.
    thread_local!(static SHARD: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
    SHARD.try_with(|shard| *shard).unwrap_or(0)
}

fn spawn() -> Arc<Deadlines> {
    let thread = Arc::new(OnceLock::<std::thread::Thread>::new());
    let to_wake = Arc::clone(&thread);
    let deadlines = Arc::new(Deadlines::new(move || {
        if let Some(thread) = to_wake.get() {
            thread.unpark();
        }
    }));
    let told = Arc::clone(&deadlines);
    let spawned = std::thread::Builder::new().name("gapless-deadlines".to_owned()).spawn(move || {
        // Set before its first scan, so that it can be woken whenever it sleeps.
        let _ = thread.set(std::thread::current());
        foreign::own_this_thread();
        loop {
            let next_ns = told.expire(monotonic_ns());
            match next_ns.saturating_sub(monotonic_ns()) {
                0 => {}
                _ if next_ns == u64::MAX => std::thread::park(),
                wait_ns => std::thread::park_timeout(Duration::from_nanos(wait_ns)),
            }
        }
    });
    if let Err(error) = spawned {
        // Callers that block or poll check their own timeouts; workers check theirs at the start of a call.
        tracing::error!("no thread for deadlines: {error}; calls of tasks end late where nobody answers");
    }
    deadlines
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::random::Random;
    use gapless_testkit::wait;

    struct Flag(AtomicU64);

    impl DeadlineTarget for Flag {
        fn expire(&self) {
            self.0.store(monotonic_ns(), Ordering::SeqCst);
        }
    }

    #[test]
    fn deadlines_expire_in_time() {
        let mut random = Random::seeded();
        let deadlines = Deadlines::of_process();
        let begun_ns = monotonic_ns();
        let flags: Vec<_> = (0..2_000)
            .map(|_| {
                let deadline_ns = begun_ns + random.below(500_000_000);
                let flag = Arc::new(Flag(AtomicU64::new(0)));
                let key = deadlines.enter(deadline_ns, flag.clone());
                let leaves = random.happens(300);
                if leaves {
                    deadlines.leave(key);
                }
                (deadline_ns, flag, leaves)
            })
            .collect();
        for (deadline_ns, flag, leaves) in &flags {
            if !leaves {
                wait::until("an expiry", || flag.0.load(Ordering::SeqCst) != 0);
                assert!(flag.0.load(Ordering::SeqCst) >= *deadline_ns);
            }
        }
        for (deadline_ns, flag, leaves) in &flags {
            let told_ns = flag.0.load(Ordering::SeqCst);
            assert!(!leaves || told_ns == 0 || told_ns >= *deadline_ns);
        }
    }

    #[test]
    fn only_an_earlier_deadline_wakes() {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = wakes.clone();
        let deadlines = Deadlines::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        let flag = || Arc::new(Flag(AtomicU64::new(0)));
        assert_eq!(deadlines.expire(1), u64::MAX);
        let second = 1_000_000_000;
        let keys: Vec<_> = (0..1_000).map(|number| deadlines.enter(second + number, flag())).collect();
        assert_eq!(wakes.load(Ordering::SeqCst), 1);
        keys.into_iter().for_each(|key| deadlines.leave(key));
        deadlines.enter(2 * second, flag());
        assert_eq!(wakes.load(Ordering::SeqCst), 1);
        deadlines.enter(second / 2, flag());
        assert_eq!(wakes.load(Ordering::SeqCst), 2);
        assert!(deadlines.next_deadline_ns() <= second / 2);
        assert_eq!(deadlines.len(), 2);
        deadlines.expire(3 * second);
        assert!(deadlines.is_empty());
    }
}
