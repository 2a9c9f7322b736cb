//! `AgentFailure`, which names the failed agent, and the slot through which threads share it.

use std::error::Error as StdError;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::agent::AgentError;
use crate::wake::Waker;

#[derive(Clone, Debug)]
pub struct AgentFailure {
    /// Empty for a group without a name.
    pub thread: String,
    pub agent: String,
    /// [`crate::Error::AgentPanicked`] for a panic.
    pub error: Arc<dyn StdError + Send + Sync>,
    /// Further errors while the thread's agents were closed.
    pub while_closing: Vec<String>,
}

impl AgentFailure {
    #[must_use]
    pub fn new(agent: &str, error: AgentError) -> Self {
        Self { thread: String::new(), agent: agent.to_owned(), error: Arc::from(error), while_closing: Vec::new() }
    }
}

impl fmt::Display for AgentFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent {}", self.agent)?;
        if !self.thread.is_empty() && self.thread != self.agent {
            write!(f, " on thread {}", self.thread)?;
        }
        write!(f, ": {}", self.error)?;
        for other in &self.while_closing {
            write!(f, "; then, while closing: {other}")?;
        }
        Ok(())
    }
}

impl StdError for AgentFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.error)
    }
}

/// First failure among threads that belong together; clones share it. A report wakes all watching threads, which stop.
#[derive(Clone, Debug, Default)]
pub struct FailureSlot {
    inner: Arc<SharedFailure>,
}

#[derive(Debug, Default)]
struct SharedFailure {
    failed: AtomicBool,
    reported: Mutex<ReportedFailures>,
}

#[derive(Debug, Default)]
struct ReportedFailures {
    first: Option<AgentFailure>,
    watchers: Vec<Waker>,
}

impl FailureSlot {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports a failure and wakes the watchers; only the first is kept.
    pub fn report(&self, failure: AgentFailure) {
        let watchers = {
            let mut reported = self.reported();
            reported.first.get_or_insert(failure);
            // Release: pairs with the load in `has_failed`.
            self.inner.failed.store(true, Ordering::Release);
            reported.watchers.clone()
        };
        for watcher in watchers {
            watcher.interrupt();
        }
    }

    /// One load, for a duty cycle.
    #[inline]
    #[must_use]
    pub fn has_failed(&self) -> bool {
        // Acquire: pairs with the Release in `report`.
        self.inner.failed.load(Ordering::Acquire)
    }

    #[must_use]
    pub fn failure(&self) -> Option<AgentFailure> {
        if self.has_failed() { self.reported().first.clone() } else { None }
    }

    /// Interrupts `waker` when a failure is reported, or at once if there is one already.
    pub fn watch(&self, waker: &Waker) {
        self.reported().watchers.push(waker.clone());
        if self.has_failed() {
            waker.interrupt();
        }
    }

    fn reported(&self) -> MutexGuard<'_, ReportedFailures> {
        // No code under this lock can panic half-way: the data is consistent even if poisoned.
        self.inner.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
