//! [`ReadySources`]: the sources that have something for the bridge's thread, and its sleep until one has.

use crate::effects::{CallId, RequestId};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// A source of work for the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WorkSource {
    /// The owner of the bridge.
    Owner,
    /// A call of the status route.
    Status,
    /// A client of the broker.
    Broker,
    /// The routes of the domain have changed.
    Routes,
    /// A relay, by its number, may have a request.
    Relay(u64),
    /// The caller of a relayed request may have given it up.
    Request(RequestId),
    /// A call of the domain may have ended.
    Call(CallId),
}

/// The sources that have something.
#[derive(Debug, Default)]
pub(super) struct ReadySources {
    sources: Mutex<Vec<WorkSource>>,
    thread: OnceLock<Thread>,
}

impl ReadySources {
    /// Makes the calling thread the one that is woken.
    pub(super) fn attach(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    /// A source has something: wakes the thread.
    pub(super) fn signal(&self, source: WorkSource) {
        let mut sources = self.sources.lock().expect("nobody panics with the lock");
        let is_first = sources.is_empty();
        sources.push(source);
        drop(sources);
        // The thread takes all at once, so one wake-up does for all that come before it looks.
        if is_first {
            self.thread.get().iter().for_each(|thread| thread.unpark());
        }
    }

    /// Takes the sources that have something.
    pub(super) fn take(&self, into: &mut Vec<WorkSource>) {
        into.append(&mut self.sources.lock().expect("nobody panics with the lock"));
    }

    /// Sleeps until a source has something, or for `timeout`.
    pub(super) fn sleep(&self, timeout: Duration) {
        if self.sources.lock().expect("nobody panics with the lock").is_empty() {
            std::thread::park_timeout(timeout);
        }
    }

    /// A waker that says that this source has something.
    pub(super) fn waker(self: &Arc<Self>, source: WorkSource) -> Waker {
        Waker::from(Arc::new(SourceWaker { source, ready: Arc::clone(self) }))
    }
}

struct SourceWaker {
    source: WorkSource,
    ready: Arc<ReadySources>,
}

impl Wake for SourceWaker {
    fn wake(self: Arc<Self>) {
        self.ready.signal(self.source);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.signal(self.source);
    }
}
