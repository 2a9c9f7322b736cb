//! [`SyncWorker`]: the helper thread of tier `quorum-sync`. It blocks in a sync; everything journaled meanwhile is the
//! next group. [`Durable`] is the worker, or what does its work by hand.

use crate::ClusterError;
use gapless_agent::Waker;
use gapless_agent::thread::spawn_helper;
use gapless_journal::Syncer;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

#[derive(Default)]
struct State {
    /// The last poll that was journaled, and that is on the device.
    asked: u64,
    done: u64,
    stopping: bool,
    failure: Option<String>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No holder leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread; dropping it stops it.
pub(crate) struct SyncWorker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl SyncWorker {
    /// Starts it; it wakes `member` when something is on the device.
    pub fn start(syncer: Syncer, member: Waker) -> Result<Self, ClusterError> {
        let shared = Arc::<Shared>::default();
        let seen = Arc::clone(&shared);
        let run = move || {
            loop {
                let asked = {
                    let mut state = seen.lock();
                    while state.asked == state.done && !state.stopping {
                        state = seen.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    }
                    if state.asked == state.done {
                        return;
                    }
                    state.asked
                };
                let synced = syncer.sync();
                let mut state = seen.lock();
                match synced {
                    Ok(_) => state.done = asked,
                    // Never tried again: what the device has lost cannot be known.
                    Err(error) => {
                        state.failure = Some(error.to_string());
                        drop(state);
                        member.wake();
                        return;
                    }
                }
                drop(state);
                member.wake();
            }
        };
        let thread = spawn_helper("gapless-sync", run).map_err(ClusterError::Agent)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Everything up to the poll `number` is journaled and is to be synced.
    pub fn ask(&self, number: u64) {
        self.shared.lock().asked = number;
        self.shared.changed.notify_one();
    }

    /// The poll up to which everything is on the device.
    pub fn done(&self) -> Result<u64, ClusterError> {
        let state = self.shared.lock();
        match &state.failure {
            None => Ok(state.done),
            Some(reason) => Err(ClusterError::Sync { reason: reason.clone() }),
        }
    }
}

/// Who syncs at tier `quorum-sync`.
pub(crate) enum Durable {
    /// A thread.
    Thread(SyncWorker),
    /// The caller: what one turn asks for is on the device when the next one looks.
    Caller(SyncByHand),
}

/// Syncs without a thread.
pub(crate) struct SyncByHand {
    syncer: Syncer,
    asked: u64,
    /// Asked for before the last look.
    due: u64,
    done: u64,
}

impl Durable {
    pub const fn by_hand(syncer: Syncer) -> Self {
        Self::Caller(SyncByHand { syncer, asked: 0, due: 0, done: 0 })
    }

    /// Everything up to the poll `number` is journaled and is to be synced.
    pub fn ask(&mut self, number: u64) {
        match self {
            Self::Thread(worker) => worker.ask(number),
            Self::Caller(by_hand) => by_hand.asked = number,
        }
    }

    /// The poll up to which everything is on the device.
    pub fn done(&mut self) -> Result<u64, ClusterError> {
        match self {
            Self::Thread(worker) => worker.done(),
            Self::Caller(by_hand) => {
                if by_hand.due > by_hand.done {
                    by_hand.syncer.sync()?;
                    by_hand.done = by_hand.due;
                }
                by_hand.due = by_hand.asked;
                Ok(by_hand.done)
            }
        }
    }
}

impl Drop for SyncWorker {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It cannot panic: it calls the journal and the waker alone.
            let _ = thread.join();
        }
    }
}
