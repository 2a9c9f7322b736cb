//! [`KeptCommand`]: one command that is kept, and the tasks that wait for its outcome.

use crate::polled::MessageType;
use crate::shared::call_state::Ending;
use gapless_agent::foreign;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

pub(super) struct KeptCommand {
    pub id: u64,
    pub message: MessageType,
    pub payload: Vec<u8>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    ending: Option<Arc<Ending>>,
    /// This process does nothing more for it, for this reason; the next one does.
    stopped: Option<String>,
    waiters: BTreeMap<u64, Waker>,
    last_waiter: u64,
}

/// Progress of a command, for a task that waits for its outcome.
pub(super) enum KeptProgress {
    Settled(Arc<Ending>),
    Stopped(String),
    /// The task is woken.
    Waiting,
}

impl KeptCommand {
    pub fn new(id: u64, message: MessageType, payload: Vec<u8>) -> Self {
        Self { id, message, payload, progress: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn ending(&self) -> Option<Arc<Ending>> {
        self.lock().ending.clone()
    }

    pub fn is_settled(&self) -> bool {
        self.lock().ending.is_some()
    }

    /// Keeps the first ending. [`Wake::wake`] wakes the tasks that wait for it, with no lock held.
    pub fn settle(&self, ending: Ending) -> Arc<Ending> {
        Arc::clone(self.lock().ending.get_or_insert_with(|| Arc::new(ending)))
    }

    /// Ends the waits for the outcome in this process; as for [`KeptCommand::settle`].
    pub fn stop(&self, reason: String) {
        self.lock().stopped.get_or_insert(reason);
    }

    /// Outcome, or the reason for none; otherwise the waker is registered under the entry, which is made at first.
    pub fn progress_or_register(&self, entry: &mut Option<u64>, waker: &Waker) -> KeptProgress {
        let mut progress = self.lock();
        match &*progress {
            Progress { ending: Some(ending), .. } => return KeptProgress::Settled(Arc::clone(ending)),
            Progress { stopped: Some(reason), .. } => return KeptProgress::Stopped(reason.clone()),
            Progress { .. } => {}
        }
        let number = *entry.get_or_insert_with(|| {
            progress.last_waiter += 1;
            progress.last_waiter
        });
        progress.waiters.insert(number, waker.clone());
        KeptProgress::Waiting
    }

    pub fn leave(&self, entry: u64) {
        self.lock().waiters.remove(&entry);
    }
}

impl Wake for KeptCommand {
    fn wake(self: Arc<Self>) {
        let waiters = std::mem::take(&mut self.lock().waiters);
        waiters.into_values().for_each(foreign::wake);
    }
}
