//! What the ordering arguments stand on: the standard library's locks, words and parking, or loom's under `--cfg loom`.

#[cfg(loom)]
pub(super) use loom::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU8, AtomicUsize},
    },
    thread::{Thread, current, park},
};
#[cfg(not(loom))]
pub(super) use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU8, AtomicUsize},
    },
    thread::{Thread, current, park},
};

/// Parks, at most so long. Loom knows no time: there it parks.
pub(super) fn park_timeout(timeout: std::time::Duration) {
    #[cfg(not(loom))]
    std::thread::park_timeout(timeout);
    #[cfg(loom)]
    {
        let _ = timeout;
        park();
    }
}
