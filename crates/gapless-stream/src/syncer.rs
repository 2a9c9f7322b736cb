//! `SyncThread`: the helper thread of the tiers that sync to the device.

use gapless_agent::thread::spawn_helper;
use gapless_agent::{CpuMask, Waker};
use gapless_journal::Syncer;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

struct SyncProgress<E> {
    journaled: E,
    synced: E,
    is_waiting: bool,
    is_stopping: bool,
    failure: Option<String>,
}

struct SharedSyncProgress<E> {
    progress: Mutex<SyncProgress<E>>,
    changed: Condvar,
}

impl<E> SharedSyncProgress<E> {
    fn lock(&self) -> MutexGuard<'_, SyncProgress<E>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handle of the journaling side.
pub struct SyncRequests<E>(Arc<SharedSyncProgress<E>>);

impl<E> Clone for SyncRequests<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Syncs groups: frames journaled during a sync form the next. Dropping it stops it after all requested ends are on the
/// device.
pub struct SyncThread<E> {
    shared: Arc<SharedSyncProgress<E>>,
    thread: Option<JoinHandle<()>>,
}

impl<E: Copy + Default + PartialEq + Send + 'static> SyncThread<E> {
    /// Starts the thread; each synced end goes to `on_synced` and wakes `downstream`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        syncer: Syncer,
        mut on_synced: impl FnMut(E) + Send + 'static,
        downstream: Vec<Waker>,
        cpus: Option<CpuMask>,
    ) -> Result<(Self, SyncRequests<E>), gapless_agent::Error> {
        let (journaled, synced) = (E::default(), E::default());
        let progress = SyncProgress { journaled, synced, is_waiting: false, is_stopping: false, failure: None };
        let shared = Arc::new(SharedSyncProgress { progress: Mutex::new(progress), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let run = move || {
            if let Some(Err(warning)) = cpus.map(|cpus| cpus.pin_current_thread()) {
                tracing::warn!(%warning, "the sync thread is not pinned");
            }
            let mut guard = PanicGuard { shared: &of_thread, has_ended: false };
            while let Some(end) = of_thread.next_group() {
                let synced = syncer.sync();
                let has_failed = synced.is_err();
                match synced {
                    Ok(_) => {
                        on_synced(end);
                        of_thread.lock().synced = end;
                    }
                    // Never retried: there is no way to know which data the device has lost.
                    Err(error) => of_thread.lock().failure = Some(error.to_string()),
                }
                downstream.iter().for_each(Waker::wake);
                if has_failed {
                    break;
                }
            }
            guard.has_ended = true;
        };
        let thread = spawn_helper("gapless-sync", run)?;
        Ok((Self { shared: Arc::clone(&shared), thread: Some(thread) }, SyncRequests(shared)))
    }
}

impl<E: Copy + PartialEq> SharedSyncProgress<E> {
    fn next_group(&self) -> Option<E> {
        let mut progress = self.lock();
        while progress.journaled == progress.synced && !progress.is_stopping {
            progress.is_waiting = true;
            progress = self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner);
            progress.is_waiting = false;
        }
        (progress.journaled != progress.synced).then_some(progress.journaled)
    }
}

struct PanicGuard<'a, E> {
    shared: &'a SharedSyncProgress<E>,
    has_ended: bool,
}

impl<E> Drop for PanicGuard<'_, E> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.shared.lock().failure = Some("the sync thread panicked".to_owned());
        }
    }
}

impl<E> Drop for SyncThread<E> {
    fn drop(&mut self) {
        self.shared.lock().is_stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The message of a panic has been printed already.
            let _ = thread.join();
        }
    }
}

impl<E: Copy> SyncRequests<E> {
    /// Requests a sync up to `end`, which is journaled.
    pub fn journaled(&self, end: E) {
        let mut progress = self.0.lock();
        progress.journaled = end;
        if progress.is_waiting {
            drop(progress);
            self.0.changed.notify_one();
        }
    }

    /// End of the synced part.
    ///
    /// # Errors
    /// Reason of the failed sync, which is final.
    pub fn synced(&self) -> Result<E, String> {
        let progress = self.0.lock();
        progress.failure.clone().map_or(Ok(progress.synced), Err)
    }
}
