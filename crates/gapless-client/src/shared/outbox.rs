//! [`Outbox`]: waiting commands, and news of the connection for callers. Used with and without the connection's lock.

use super::call_state::{CallState, Ending};
use super::command_queue::CommandQueue;
use super::end_news::EndNews;
use super::subscribers::Subscribers;
use super::waiting_bound::{QueueFull, Waiting};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

pub(super) struct Outbox {
    pub queue: CommandQueue,
    pub waiting: Waiting,
    /// Reason for the lack of a service at the moment.
    trouble: Mutex<Option<String>>,
    notices: AtomicU64,
    seen_sequence: AtomicU64,
    pub subscribers: Subscribers,
    pub ended: EndNews,
}

impl Outbox {
    pub fn new(lanes: usize, waiting_max: usize) -> Self {
        Self {
            queue: CommandQueue::new(lanes),
            waiting: Waiting::new(waiting_max),
            trouble: Mutex::default(),
            notices: AtomicU64::new(0),
            seen_sequence: AtomicU64::new(0),
            subscribers: Subscribers::default(),
            ended: EndNews::default(),
        }
    }

    pub fn push(&self, state: &Arc<CallState>) -> Result<(), QueueFull> {
        self.waiting.enter(state.length())?;
        self.queue.push(Arc::clone(state), &self.waiting);
        Ok(())
    }

    pub fn push_again(&self, state: &Arc<CallState>) {
        self.waiting.enter_again(state.length());
        self.queue.push(Arc::clone(state), &self.waiting);
    }

    pub fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble() = trouble;
    }

    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reason for a call that has no reply after `given`.
    pub fn late_reason(&self, given: Duration) -> String {
        let milliseconds = given.as_millis();
        match &*self.trouble() {
            Some(trouble) => format!("no reply within {milliseconds} ms: {trouble}"),
            None => format!("no reply within {milliseconds} ms"),
        }
    }

    pub fn count_notices(&self, count: u64) {
        self.notices.fetch_add(count, Ordering::Relaxed);
    }

    pub fn see(&self, sequence: u64) {
        self.seen_sequence.store(sequence, Ordering::Relaxed);
    }

    pub fn seen_sequence(&self) -> u64 {
        self.seen_sequence.load(Ordering::Relaxed)
    }

    pub fn notices(&self) -> u64 {
        self.notices.load(Ordering::Relaxed)
    }

    /// There is no service any more. Wake `wakers` with no lock held.
    pub fn end(&self, reason: &str, wakers: &mut Vec<Waker>) {
        self.ended.set(reason, wakers);
        self.subscribers.end(wakers);
    }

    /// Ends a call without waiting any longer.
    pub fn give_up(&self, state: &CallState, given: Duration) -> Option<Ending> {
        state.give_up(&self.waiting, || self.late_reason(given))
    }

    /// The caller has left.
    pub fn abandon(&self, state: &CallState) {
        drop(state.give_up(&self.waiting, String::new));
    }
}
