//! Blocking calls: one of their threads is the watcher, the others sleep. Each that leaves wakes the next one.

use super::blocked_threads::BlockedThread;
use super::call_state::{CallState, Ending};
use super::channel::Channel;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, PoisonError, TryLockError};
use std::task::Waker;
use std::time::{Duration, Instant};

impl Channel {
    /// Blocks until the command has an ending, or until the deadline.
    pub fn wait_for_reply(&self, state: &CallState, until: Instant, given: Duration) -> Option<Ending> {
        let thread = Arc::new(BlockedThread::current(&self.wake));
        let waker = Waker::from(Arc::clone(&thread));
        self.enter_pending();
        let (mut is_entered, mut owes_call) = (false, false);
        let ending = loop {
            if let Some(ending) = state.take_or_register(&waker) {
                break Some(ending);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break self.outbox.give_up(state, given);
            }
            // Either this thread has been the watcher, or another one is, which calls the next when it leaves.
            let has_watched = self.watch_until(state, until, &thread);
            owes_call = false;
            if has_watched {
                continue;
            }
            if !is_entered {
                is_entered = true;
                self.blocked.enter(&thread);
                // Pairs with the fence in `call_next`: the watcher may have left before this thread was visible to it.
                fence(Ordering::SeqCst);
                continue;
            }
            if thread.is_called.swap(false, Ordering::SeqCst) {
                (is_entered, owes_call) = (false, true);
                continue;
            }
            if !state.is_ended() {
                std::thread::park_timeout(left);
            }
        };
        // A thread that was called and needs no watcher any more calls the next one.
        if is_entered && !self.blocked.leave(&thread) || owes_call {
            self.blocked.call_next();
        }
        self.leave_pending();
        ending
    }

    /// `false` if there is a watcher.
    fn watch_until(&self, state: &CallState, until: Instant, thread: &BlockedThread) -> bool {
        let mut watch = match self.watch.try_lock() {
            Ok(watch) => watch,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => return false,
        };
        thread.watches.store(true, Ordering::SeqCst);
        self.watch(&mut watch, Some(until), &|| state.has_ending() || Instant::now() >= until);
        thread.watches.store(false, Ordering::SeqCst);
        drop(watch);
        self.blocked.call_next();
        true
    }
}
