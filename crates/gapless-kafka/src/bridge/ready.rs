//! Wake-up sources of the bridge's thread.

use crate::effects::{CallId, RequestId};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WorkSource {
    Owner,
    Status,
    Broker,
    Routes,
    Relay(u64),
    Request(RequestId),
    Call(CallId),
}

#[derive(Debug, Default)]
pub(super) struct ReadySources {
    sources: Mutex<Vec<WorkSource>>,
    thread: OnceLock<Thread>,
}

impl ReadySources {
    pub(super) fn attach(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    pub(super) fn signal(&self, source: WorkSource) {
        let mut sources = self.sources.lock().expect("nobody panics with the lock");
        let is_first = sources.is_empty();
        sources.push(source);
        drop(sources);
        // The thread takes all at once: one wake-up is enough.
        if is_first {
            self.thread.get().iter().for_each(|thread| thread.unpark());
        }
    }

    pub(super) fn take(&self, into: &mut Vec<WorkSource>) {
        into.append(&mut self.sources.lock().expect("nobody panics with the lock"));
    }

    pub(super) fn sleep(&self, timeout: Duration) {
        if self.sources.lock().expect("nobody panics with the lock").is_empty() {
            std::thread::park_timeout(timeout);
        }
    }

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
