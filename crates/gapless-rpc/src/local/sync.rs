//! Locks, atomics and parking: the standard library's, or loom's under `--cfg loom`.

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

/// Loom has no time: there it just parks.
pub(super) fn park_timeout(timeout: std::time::Duration) {
    #[cfg(not(loom))]
    std::thread::park_timeout(timeout);
    #[cfg(loom)]
    {
        let _ = timeout;
        park();
    }
}
