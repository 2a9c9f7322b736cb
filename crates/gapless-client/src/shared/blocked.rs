//! Threads in blocking calls: one of them is the watcher, the others sleep. Each that leaves wakes the next one.

use super::call_state::{CallState, Ending};
use super::channel::{Channel, lock};
use gapless_agent::wake_fd;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Sleeping threads, in order.
#[derive(Default)]
pub(super) struct BlockedThreads {
    threads: Mutex<VecDeque<Arc<BlockedThread>>>,
    count: AtomicUsize,
}

struct BlockedThread {
    thread: Thread,
    /// It is asked to become the watcher.
    is_called: AtomicBool,
    /// It sleeps as the watcher.
    watches: AtomicBool,
    wake: Arc<OwnedFd>,
}

impl Wake for BlockedThread {
    fn wake(self: Arc<Self>) {
        self.thread.unpark();
        // The ending is visible before: the watcher looks for it after it has set the flag, both under its lock.
        if self.watches.load(Ordering::SeqCst) {
            wake_fd::signal(&*self.wake);
        }
    }
}

impl BlockedThreads {
    fn enter(&self, thread: &Arc<BlockedThread>) {
        lock(&self.threads).push_back(Arc::clone(thread));
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// `false` if it was called meanwhile.
    fn leave(&self, thread: &Arc<BlockedThread>) -> bool {
        let mut threads = lock(&self.threads);
        let Some(at) = threads.iter().position(|known| Arc::ptr_eq(known, thread)) else { return false };
        threads.remove(at);
        self.count.fetch_sub(1, Ordering::SeqCst);
        true
    }

    fn call_next(&self) {
        // Pairs with the fence in `wait_for_reply`: a thread that enters too late to be seen here finds no watcher.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let next = lock(&self.threads).pop_front();
        if let Some(next) = next {
            self.count.fetch_sub(1, Ordering::SeqCst);
            next.is_called.store(true, Ordering::SeqCst);
            next.thread.unpark();
        }
    }
}

impl Channel {
    /// Blocks until the command has an ending, or until the deadline.
    pub fn wait_for_reply(&self, state: &CallState, until: Instant, given: Duration) -> Option<Ending> {
        let thread = Arc::new(BlockedThread {
            thread: std::thread::current(),
            is_called: AtomicBool::new(false),
            watches: AtomicBool::new(false),
            wake: Arc::clone(&self.wake),
        });
        let waker = Waker::from(Arc::clone(&thread));
        self.enter_pending();
        let (mut is_entered, mut owes_call) = (false, false);
        let ending = loop {
            if let Some(ending) = state.take_or_register(&waker) {
                break Some(ending);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break self.give_up(state, given);
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
