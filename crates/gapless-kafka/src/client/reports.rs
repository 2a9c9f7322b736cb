//! Queue between librdkafka's thread and a task that waits for it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Items that wait for a task, and the task's waker. As long as its senders let it become.
pub(super) struct Reports<T>(Mutex<Waiting<T>>);

struct Waiting<T> {
    items: VecDeque<T>,
    waker: Option<Waker>,
}

impl<T> Reports<T> {
    pub fn new() -> Self {
        Self(Mutex::new(Waiting { items: VecDeque::new(), waker: None }))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        // No code that panics runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item and wakes the task.
    pub fn push(&self, item: T) {
        self.push_if(item, |_| true);
    }

    /// Adds an item where `is_wanted` says so of the waiting ones, and wakes the task.
    pub fn push_if(&self, item: T, is_wanted: impl FnOnce(&VecDeque<T>) -> bool) {
        let waker = {
            let mut waiting = self.lock();
            if !is_wanted(&waiting.items) {
                return;
            }
            waiting.items.push_back(item);
            waiting.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Wakes the task: something else that it waits for has come.
    pub fn wake(&self) {
        let waker = self.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Keeps the waker for the next item.
    pub fn watch(&self, waker: &Waker) {
        let mut waiting = self.lock();
        match &mut waiting.waker {
            Some(kept) => kept.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// The oldest item.
    pub fn take(&self) -> Option<T> {
        self.lock().items.pop_front()
    }

    /// The oldest item; without one the task is woken by the next.
    pub fn poll_take(&self, context: &mut Context<'_>) -> Poll<T> {
        if let Some(item) = self.take() {
            return Poll::Ready(item);
        }
        self.watch(context.waker());
        // An item that came before the waker was kept has woken no one.
        self.take().map_or(Poll::Pending, Poll::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::wake_count::WakeCount;
    use std::sync::Arc;

    #[test]
    fn the_next_item_wakes() {
        let (reports, woken) = (Reports::new(), Arc::new(WakeCount::default()));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        assert_eq!(reports.poll_take(&mut context), Poll::Pending);
        reports.push(1);
        reports.push(2);
        assert_eq!(woken.count(), 1);
        assert_eq!(reports.poll_take(&mut context), Poll::Ready(1));
        assert_eq!(reports.take(), Some(2));
        reports.push_if(3, |waiting| !waiting.is_empty());
        assert_eq!(reports.poll_take(&mut context), Poll::Pending);
        reports.wake();
        assert_eq!(woken.count(), 2);
    }
}
