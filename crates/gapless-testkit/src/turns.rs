//! [`TestSemaphore`]: for tests that are too large to run all at once.

use std::sync::{Condvar, Mutex, PoisonError};

pub struct TestSemaphore {
    free: Mutex<usize>,
    freed: Condvar,
}

impl TestSemaphore {
    #[must_use]
    pub const fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    /// The turn ends when the result is dropped, also by a failure.
    #[must_use]
    pub fn take(&'static self) -> TestPermit {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        TestPermit(self)
    }
}

pub struct TestPermit(&'static TestSemaphore);

impl Drop for TestPermit {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::TestSemaphore;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn at_most_count_run_at_once() {
        static TURNS: TestSemaphore = TestSemaphore::new(2);
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        let run = || {
            for _ in 0..100 {
                let _turn = TURNS.take();
                assert!(RUNNING.fetch_add(1, Ordering::SeqCst) < 2, "three have a turn");
                std::thread::yield_now();
                RUNNING.fetch_sub(1, Ordering::SeqCst);
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(run))));
        assert!(
            std::panic::catch_unwind(|| {
                let _turn = TURNS.take();
                panic!("a test fails")
            })
            .is_err()
        );
        let _both = [TURNS.take(), TURNS.take()];
    }
}
