//! One thread counts, any number wait. As in [`park_flag`](crate::park_flag), a waiter announces itself, fences and
//! reads the number; the counting thread stores the number, fences and checks for waiters.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A number that only grows.
///
/// ```
/// # use gapless_agent::progress::{ProgressCounter, WaitResult};
/// # use std::time::Duration;
/// let progress = ProgressCounter::new(7);
/// std::thread::scope(|scope| {
///     let waiter = scope.spawn(|| progress.wait_for(9, Duration::from_secs(60)));
///     progress.advance_to(9);
///     assert_eq!(waiter.join().unwrap(), WaitResult::Reached);
/// });
/// progress.end();
/// assert_eq!(progress.wait_for(10, Duration::from_secs(60)), WaitResult::Ended);
/// ```
#[derive(Debug)]
pub struct ProgressCounter {
    reached: AtomicU64,
    waiting: AtomicUsize,
    is_ended: Mutex<bool>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitResult {
    Reached,
    TimedOut,
    Ended,
}

impl ProgressCounter {
    #[must_use]
    pub const fn new(reached: u64) -> Self {
        let (reached, waiting) = (AtomicU64::new(reached), AtomicUsize::new(0));
        Self { reached, waiting, is_ended: Mutex::new(false), changed: Condvar::new() }
    }

    /// Counting thread: sets the number; one fence and one load without waiters.
    #[inline]
    pub fn advance_to(&self, number: u64) {
        // Release: pairs with the Acquire in `has_reached`.
        self.reached.store(number, Ordering::Release);
        // SeqCst: pairs with the fence in `wait_for`; either this side sees the waiter, or the waiter sees the number.
        fence(Ordering::SeqCst);
        // Relaxed: ordered by the fence.
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // A waiter between its check and its sleep holds the lock.
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Ends all waits: the number will not grow any more.
    pub fn end(&self) {
        *self.lock() = true;
        self.changed.notify_all();
    }

    /// Sleeps until the number is at least `number`, has ended, or `timeout` has passed.
    pub fn wait_for(&self, number: u64, timeout: Duration) -> WaitResult {
        if self.has_reached(number) {
            return WaitResult::Reached;
        }
        let begun = Instant::now();
        let mut is_ended = self.lock();
        // Relaxed: the fence orders it before the read of the number; pairs with the fence in `advance_to`.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let waited = loop {
            if self.has_reached(number) {
                break WaitResult::Reached;
            }
            let left = timeout.saturating_sub(begun.elapsed());
            if *is_ended || left.is_zero() {
                break if *is_ended { WaitResult::Ended } else { WaitResult::TimedOut };
            }
            is_ended = self.changed.wait_timeout(is_ended, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        // Relaxed: a count seen too late costs one unneeded wake-up.
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        waited
    }

    fn has_reached(&self, number: u64) -> bool {
        self.reached.load(Ordering::Acquire) >= number
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn every_waiter_is_woken_at_its_number() {
        let progress = ProgressCounter::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    (1..=10_000).for_each(|number| assert_eq!(progress.wait_for(number, LONG), WaitResult::Reached))
                });
            }
            (1..=10_000).for_each(|number| progress.advance_to(number));
        });
    }

    #[test]
    fn wait_ends_by_timeout_or_end() {
        let progress = ProgressCounter::new(3);
        assert_eq!(progress.wait_for(4, Duration::from_millis(1)), WaitResult::TimedOut);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| progress.wait_for(4, LONG));
            progress.end();
            assert_eq!(waiter.join().unwrap(), WaitResult::Ended);
        });
        assert_eq!(progress.wait_for(3, LONG), WaitResult::Reached);
    }
}
