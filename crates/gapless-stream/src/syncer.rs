//! The helper thread of tier `sync`: it blocks in a sync, everything journaled meanwhile makes
//! the next group.

use crate::StreamError;
use gapless_agent::thread::spawn_helper;
use gapless_agent::{Counter, Waker};
use gapless_journal::Syncer;
use gapless_log::Releaser;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

#[derive(Default)]
struct SyncProgress {
    journaled_position: u64,
    journaled_sequence: u64,
    released_position: u64,
    waiting: bool,
    stopping: bool,
    failure: Option<String>,
}

#[derive(Default)]
struct SharedProgress {
    state: Mutex<SyncProgress>,
    changed: Condvar,
}

impl SharedProgress {
    fn lock(&self) -> MutexGuard<'_, SyncProgress> {
        // No holder leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The journaler's end.
#[derive(Clone)]
pub struct SyncRequests {
    shared: Arc<SharedProgress>,
}

/// The thread; dropping it stops it after what was asked for is on the device.
pub struct SyncThread {
    shared: Arc<SharedProgress>,
    thread: Option<JoinHandle<()>>,
}

impl SyncThread {
    /// Starts the thread, which releases what it has synced, notes it in `last_sequence` and wakes `downstream`.
    ///
    /// # Errors
    /// [`StreamError::System`] if no thread can be started.
    pub fn start(
        syncer: Syncer,
        mut releaser: Releaser,
        downstream: Vec<Waker>,
        last_sequence: Counter,
    ) -> Result<(Self, SyncRequests), StreamError> {
        let shared = Arc::<SharedProgress>::default();
        let thread_shared = Arc::clone(&shared);
        let run = move || {
            let mut watch = Watch { shared: &thread_shared, ended: false };
            loop {
                let (position, sequence) = {
                    let mut state = thread_shared.lock();
                    while state.journaled_position == state.released_position && !state.stopping {
                        state.waiting = true;
                        state = thread_shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                        state.waiting = false;
                    }
                    if state.journaled_position == state.released_position {
                        drop(state);
                        watch.ended = true;
                        return;
                    }
                    (state.journaled_position, state.journaled_sequence)
                };
                match syncer.sync() {
                    Ok(_) => {
                        releaser.release(position, sequence);
                        last_sequence.set(sequence);
                        thread_shared.lock().released_position = position;
                    }
                    Err(error) => {
                        thread_shared.lock().failure = Some(error.to_string());
                        watch.ended = true;
                        downstream.iter().for_each(Waker::wake);
                        return;
                    }
                }
                downstream.iter().for_each(Waker::wake);
            }
        };
        let failed = |error: gapless_agent::Error| StreamError::System {
            action: "starting the sync thread".to_owned(),
            source: std::io::Error::other(error),
        };
        let thread = spawn_helper("gapless-sync", run).map_err(failed)?;
        Ok((Self { shared: Arc::clone(&shared), thread: Some(thread) }, SyncRequests { shared }))
    }
}

/// Makes a panic of the thread a failure that the journaler sees.
struct Watch<'a> {
    shared: &'a SharedProgress,
    ended: bool,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.lock().failure = Some("the sync thread panicked".to_owned());
        }
    }
}

impl Drop for SyncThread {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by its message already.
            let _ = thread.join();
        }
    }
}

impl SyncRequests {
    /// Everything before `position`, the last of it `sequence`, is journaled and wants to be synced.
    pub(crate) fn journaled(&self, position: u64, sequence: u64) {
        let mut state = self.shared.lock();
        state.journaled_position = position;
        state.journaled_sequence = sequence;
        if state.waiting {
            drop(state);
            self.shared.changed.notify_one();
        }
    }

    /// Whether syncing still works.
    ///
    /// # Errors
    /// [`StreamError::System`] for ever after a sync has failed: what the device lost cannot be known.
    pub(crate) fn check(&self) -> Result<(), StreamError> {
        match &self.shared.lock().failure {
            None => Ok(()),
            Some(failure) => Err(StreamError::System {
                action: "syncing the journal".to_owned(),
                source: std::io::Error::other(failure.clone()),
            }),
        }
    }
}
