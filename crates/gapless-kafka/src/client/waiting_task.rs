//! `WaitingTask`: the task that waits for librdkafka.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

#[derive(Default)]
pub(super) struct WaitingTask(Mutex<Option<Waker>>);

impl WaitingTask {
    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        // No code that panics runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the task.
    pub fn wake(&self) {
        let waker = self.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Keeps the waker for the next event.
    pub fn watch(&self, waker: &Waker) {
        let mut waiting = self.lock();
        match &mut *waiting {
            Some(kept) => kept.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::wake_count::WakeCount;
    use std::sync::Arc;

    #[test]
    fn a_task_is_woken_once() {
        let (task, woken) = (WaitingTask::default(), Arc::new(WakeCount::default()));
        task.wake();
        task.watch(&Waker::from(Arc::clone(&woken)));
        task.wake();
        task.wake();
        assert_eq!(woken.count(), 1);
    }
}
