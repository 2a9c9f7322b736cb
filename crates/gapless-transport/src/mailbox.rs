//! Rare messages between agents of one process, never frames; checking an empty mailbox costs a relaxed load.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

struct MailboxQueue<T> {
    pending: AtomicBool,
    messages: Mutex<VecDeque<T>>,
    capacity: usize,
}

/// Bounded; both ends are clones of one value.
pub struct Mailbox<T> {
    queue: Arc<MailboxQueue<T>>,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Self {
        Self { queue: Arc::clone(&self.queue) }
    }
}

impl<T> Mailbox<T> {
    /// Allocates now.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let messages = Mutex::new(VecDeque::with_capacity(capacity));
        Self { queue: Arc::new(MailboxQueue { pending: AtomicBool::new(false), messages, capacity }) }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        // A holder that panicked left the queue consistent: it is never changed in two steps.
        self.queue.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message.
    ///
    /// # Errors
    /// The message itself, if the mailbox is full.
    pub fn push(&self, message: T) -> Result<(), T> {
        let mut messages = self.lock();
        if messages.len() == self.queue.capacity {
            return Err(message);
        }
        messages.push_back(message);
        // Release: pairs with the Acquire in pop.
        self.queue.pending.store(true, Ordering::Release);
        Ok(())
    }

    #[must_use]
    pub fn has_room(&self, count: usize) -> bool {
        // Relaxed: an empty mailbox can only have been emptied further; the lock orders the rest.
        let waiting = if self.queue.pending.load(Ordering::Relaxed) { self.lock().len() } else { 0 };
        waiting + count <= self.queue.capacity
    }

    #[inline]
    #[must_use]
    pub fn pop(&self) -> Option<T> {
        // Acquire: the effects of the sender before its push are visible to the thread that takes the message.
        if !self.queue.pending.load(Ordering::Acquire) {
            return None;
        }
        self.pop_pending()
    }

    #[cold]
    fn pop_pending(&self) -> Option<T> {
        let mut messages = self.lock();
        let message = messages.pop_front();
        if messages.is_empty() {
            // Release: under the lock, so it cannot hide a later push.
            self.queue.pending.store(false, Ordering::Release);
        }
        message
    }
}
