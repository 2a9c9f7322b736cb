//! State shared by the users of a queue and its helper thread.

use crate::overflow::options::{NoticeReceiver, QueueSizes};
use crate::overflow::state::SpillState;
use gapless_journal::Disk;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub(crate) struct SharedQueue {
    pub(crate) name: Arc<str>,
    pub(crate) directory: PathBuf,
    pub(crate) sizes: QueueSizes,
    pub(crate) notice: Option<NoticeReceiver>,
    pub(crate) disk: Option<Arc<dyn Disk>>,
    state: Mutex<SpillState>,
    wake: Condvar,
}

impl SharedQueue {
    pub(crate) fn new(
        name: Arc<str>,
        directory: PathBuf,
        sizes: QueueSizes,
        notice: Option<NoticeReceiver>,
        disk: Option<Arc<dyn Disk>>,
    ) -> Self {
        Self { name, directory, sizes, notice, disk, state: Mutex::default(), wake: Condvar::new() }
    }

    /// A panic while it was locked was reported already, and the state is still used.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SpillState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait<'a>(
        &self,
        state: MutexGuard<'a, SpillState>,
        until: Option<Instant>,
    ) -> MutexGuard<'a, SpillState> {
        match until {
            None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let rest = until.saturating_duration_since(Instant::now());
                self.wake.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// One system call, made after the lock is released.
    pub(crate) fn wake(&self, mut state: MutexGuard<'_, SpillState>) {
        // The next caller must not wake it as well.
        let sleeps = std::mem::take(&mut state.helper_sleeps);
        drop(state);
        if sleeps {
            self.wake.notify_one();
        }
    }
}
