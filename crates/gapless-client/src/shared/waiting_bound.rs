//! [`Waiting`]: the bound on commands that are not sent yet.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Most bytes of waiting commands.
pub const WAITING_BYTES_MAX: usize = 64 << 20;

/// Number of commands that are not sent yet, and their bytes.
#[derive(Debug)]
pub(super) struct Waiting {
    count: AtomicUsize,
    bytes: AtomicUsize,
    count_max: usize,
}

/// No more commands may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueFull {
    pub waiting: usize,
}

impl Waiting {
    pub const fn new(count_max: usize) -> Self {
        Self { count: AtomicUsize::new(0), bytes: AtomicUsize::new(0), count_max }
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Counts a command of `length` bytes, unless there are too many. A longer one than all may be waits alone.
    pub fn enter(&self, length: usize) -> Result<(), QueueFull> {
        let waiting = self.count.fetch_add(1, Ordering::SeqCst);
        let bytes = self.bytes.fetch_add(length, Ordering::Relaxed);
        if waiting >= self.count_max || bytes > 0 && bytes + length > WAITING_BYTES_MAX {
            self.leave(length);
            return Err(QueueFull { waiting });
        }
        Ok(())
    }

    /// Counts a command that was sent in vain or has a bound of its own, beyond this bound if need be.
    pub fn enter_again(&self, length: usize) {
        self.bytes.fetch_add(length, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    pub fn leave(&self, length: usize) {
        self.bytes.fetch_sub(length, Ordering::Relaxed);
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_exact() {
        let waiting = Waiting::new(2);
        assert_eq!(waiting.enter(1), Ok(()));
        assert_eq!(waiting.enter(1), Ok(()));
        assert_eq!(waiting.enter(1), Err(QueueFull { waiting: 2 }));
        waiting.leave(1);
        assert_eq!(waiting.enter(WAITING_BYTES_MAX), Err(QueueFull { waiting: 1 }));
        assert_eq!(waiting.enter(WAITING_BYTES_MAX - 1), Ok(()));
        waiting.leave(1);
        waiting.leave(WAITING_BYTES_MAX - 1);
        assert_eq!(waiting.enter(WAITING_BYTES_MAX + 1), Ok(()));
        assert_eq!(waiting.enter(1), Err(QueueFull { waiting: 1 }));
    }
}
