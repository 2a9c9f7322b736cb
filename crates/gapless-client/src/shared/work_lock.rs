//! [`WorkLock`]: a lock whose owner also does the work that others announce meanwhile, so that no one waits for it.

use gapless_agent::announcements::{Announced, Announcements};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Work is announced after it is visible, and done under the lock. No announcement is lost: either its own attempt
/// gets the lock, or the owner sees the announcement after it has let go.
#[derive(Debug, Default)]
pub(super) struct WorkLock<T> {
    inner: Mutex<T>,
    announcements: Announcements,
}

impl<T> WorkLock<T> {
    pub fn new(inner: T) -> Self {
        Self { inner: Mutex::new(inner), announcements: Announcements::new() }
    }

    /// Announces work that is visible to the owner of the lock. An attempt at the lock must follow.
    pub fn announce(&self) {
        self.announcements.announce();
    }

    /// `None` if another thread has the lock. Its work includes everything announced before this call.
    pub fn try_lock(&self) -> Option<(MutexGuard<'_, T>, Announced)> {
        let inner = match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some((inner, self.announcements.known()))
    }

    pub fn lock(&self) -> (MutexGuard<'_, T>, Announced) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        (inner, self.announcements.known())
    }

    /// Whether more work was announced since the lock was taken. Call it after the lock is released; if there is more,
    /// try the lock again.
    #[must_use]
    pub fn has_news(&self, known: Announced) -> bool {
        self.announcements.has_news(known)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::sync::Barrier;

    /// No thread waits for the lock, and none comes back later.
    #[test]
    fn announced_work_is_never_left() {
        const THREADS: usize = 3;
        const ROUNDS: usize = 3_000;
        let (queue, work) = (Mutex::new(VecDeque::new()), WorkLock::new(0));
        let barrier = Barrier::new(THREADS);
        let queued = || queue.lock().unwrap().pop_front();
        let produce = |thread: usize| {
            for round in 0..ROUNDS {
                barrier.wait();
                (0..thread * round % 7).for_each(|_| std::thread::yield_now());
                queue.lock().unwrap().push_back(1);
                work.announce();
                while let Some((mut sum, known)) = work.try_lock() {
                    while let Some(item) = queued() {
                        *sum += item;
                    }
                    // The others announce meanwhile, and go.
                    (0..5).for_each(|_| std::thread::yield_now());
                    drop(sum);
                    if !work.has_news(known) {
                        break;
                    }
                }
                barrier.wait();
                assert_eq!(*work.lock().0, (round + 1) * THREADS, "in round {round}");
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let produce = &produce;
                    scope.spawn(move || produce(thread))
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}
