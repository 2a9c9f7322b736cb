//! [`BlockedThreads`]: threads in blocking calls that sleep while another one is the watcher.

use gapless_agent::wake_fd;
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::thread::Thread;

/// Sleeping threads, in order.
#[derive(Default)]
pub(super) struct BlockedThreads {
    threads: Mutex<VecDeque<Arc<BlockedThread>>>,
    count: AtomicUsize,
}

pub(super) struct BlockedThread {
    thread: Thread,
    /// Set by the call to become the watcher.
    pub is_called: AtomicBool,
    /// Set while it sleeps as the watcher.
    pub watches: AtomicBool,
    wake: Arc<OwnedFd>,
}

impl BlockedThread {
    /// The calling thread; `wake` wakes the watcher.
    pub fn current(wake: &Arc<OwnedFd>) -> Self {
        Self {
            thread: std::thread::current(),
            is_called: AtomicBool::new(false),
            watches: AtomicBool::new(false),
            wake: Arc::clone(wake),
        }
    }
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
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<BlockedThread>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn enter(&self, thread: &Arc<BlockedThread>) {
        self.lock().push_back(Arc::clone(thread));
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// `false` if it was called meanwhile.
    pub fn leave(&self, thread: &Arc<BlockedThread>) -> bool {
        let mut threads = self.lock();
        let Some(at) = threads.iter().position(|known| Arc::ptr_eq(known, thread)) else { return false };
        threads.remove(at);
        self.count.fetch_sub(1, Ordering::SeqCst);
        true
    }

    pub fn call_next(&self) {
        // Pairs with the fence in `wait_for_reply`: a thread that enters too late to be seen here finds no watcher.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let next = self.lock().pop_front();
        if let Some(next) = next {
            self.count.fetch_sub(1, Ordering::SeqCst);
            next.is_called.store(true, Ordering::SeqCst);
            next.thread.unpark();
        }
    }
}
