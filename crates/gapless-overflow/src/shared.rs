//! State shared by the users of a queue and its helper thread.

use crate::options::{NoticeReceiver, Sizes};
use crate::state::State;
use gapless_journal::Disk;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    pub(crate) directory: PathBuf,
    pub(crate) sizes: Sizes,
    pub(crate) notice: Option<NoticeReceiver>,
    pub(crate) disk: Option<Arc<dyn Disk>>,
    state: Mutex<State>,
    wake: Condvar,
}

impl Shared {
    pub(crate) fn new(
        name: Arc<str>,
        directory: PathBuf,
        sizes: Sizes,
        notice: Option<NoticeReceiver>,
        disk: Option<Arc<dyn Disk>>,
    ) -> Self {
        Self { name, directory, sizes, notice, disk, state: Mutex::default(), wake: Condvar::new() }
    }

    /// Locks the state. A panic while it was locked is a bug that was reported already, and the state is still used.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the helper sleep until it is woken or `until` has come.
    pub(crate) fn wait<'a>(&self, state: MutexGuard<'a, State>, until: Option<Instant>) -> MutexGuard<'a, State> {
        match until {
            None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let rest = until.saturating_duration_since(Instant::now());
                self.wake.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Wakes the helper if it sleeps: one system call, made after the lock is released.
    pub(crate) fn wake(&self, mut state: MutexGuard<'_, State>) {
        // The next caller must not wake it as well.
        let sleeps = std::mem::take(&mut state.helper_sleeps);
        drop(state);
        if sleeps {
            self.wake.notify_one();
        }
    }
}
