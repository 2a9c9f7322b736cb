//! `CommandQueue`: passes commands of handlers and other threads to the one owner that polls a bus.

use super::completion::{AnswerResult, Completion};
use crate::error::BusError;
use crate::identity::TypeKey;
use gapless_agent::Waker;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

const SLEEP_MAX: Duration = Duration::from_millis(100);

pub(crate) struct QueuedCommand {
    pub command: TypeKey,
    pub bytes: Vec<u8>,
    pub completion: Arc<Completion>,
}

pub(crate) struct CommandQueue {
    inner: Mutex<QueueInner>,
    length: AtomicUsize,
    length_max: usize,
    room: Condvar,
    owner: Waker,
}

#[derive(Default)]
struct QueueInner {
    commands: VecDeque<QueuedCommand>,
    polled_by: Option<ThreadId>,
    is_disconnected: bool,
}

impl CommandQueue {
    pub fn new(length_max: usize, owner: Waker) -> Arc<Self> {
        let (inner, length) = (Mutex::default(), AtomicUsize::new(0));
        Arc::new(Self { inner, length, length_max, room: Condvar::new(), owner })
    }

    /// Queues a command; waits while the queue is full, except on the polling thread.
    pub fn send(&self, queued: QueuedCommand, may_wait: bool) {
        let mut inner = self.lock();
        let this = std::thread::current().id();
        while may_wait
            && !inner.is_disconnected
            && inner.commands.len() >= self.length_max
            && inner.polled_by != Some(this)
        {
            inner = self.room.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        if inner.is_disconnected {
            drop(inner);
            return queued.completion.deliver_now(Err(BusError::Disconnected));
        }
        inner.commands.push_back(queued);
        self.length.store(inner.commands.len(), Ordering::Relaxed);
        drop(inner);
        self.owner.wake();
    }

    /// Waits until there may be room; `false` at once on the polling thread.
    pub fn wait_for_room(&self, until: Instant) -> bool {
        let mut inner = self.lock();
        while !inner.is_disconnected && inner.commands.len() >= self.length_max {
            let left = until.saturating_duration_since(Instant::now());
            if inner.polled_by == Some(std::thread::current().id()) || left.is_zero() {
                return false;
            }
            inner = self.room.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(inner);
        // This wake-up may have been meant for another waiter.
        self.room.notify_one();
        true
    }

    pub fn has_room(&self) -> bool {
        self.length() < self.length_max
    }

    /// Waits for the outcome; fails on the polling thread.
    pub fn wait(&self, completion: &Completion, until: Option<Instant>) -> AnswerResult {
        loop {
            if let Some(outcome) = completion.take() {
                return outcome;
            }
            if self.lock().polled_by == Some(std::thread::current().id()) {
                return Err(BusError::CalledInHandler);
            }
            let left = until.map_or(SLEEP_MAX, |until| until.saturating_duration_since(Instant::now()).min(SLEEP_MAX));
            if left.is_zero() {
                return Err(BusError::TimedOut);
            }
            completion.sleep_for(left);
        }
    }

    /// Waiting commands.
    #[inline]
    pub fn length(&self) -> usize {
        // Relaxed: other threads wake the owner after queueing, and it reads again.
        self.length.load(Ordering::Relaxed)
    }

    pub fn take(&self) -> Option<QueuedCommand> {
        let mut inner = self.lock();
        let queued = inner.commands.pop_front();
        self.length.store(inner.commands.len(), Ordering::Relaxed);
        drop(inner);
        self.room.notify_one();
        queued
    }

    /// Declares the polling thread.
    #[cold]
    pub fn polled_by(&self, thread: ThreadId) {
        self.lock().polled_by = Some(thread);
    }

    /// Ends polling; returns commands not run.
    pub fn end(&self) -> VecDeque<QueuedCommand> {
        let mut inner = self.lock();
        inner.is_disconnected = true;
        inner.polled_by = None;
        self.length.store(0, Ordering::Relaxed);
        let left = std::mem::take(&mut inner.commands);
        drop(inner);
        self.room.notify_all();
        left
    }

    fn lock(&self) -> MutexGuard<'_, QueueInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
