//! [`EndNews`]: whether there is no service any more, and the tasks that wait for that.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

#[derive(Default)]
pub(super) struct EndNews {
    reason: OnceLock<String>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    last: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl EndNews {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Wake `wakers` with no lock held.
    pub fn set(&self, reason: &str, wakers: &mut Vec<Waker>) {
        let _ = self.reason.set(reason.to_owned());
        wakers.extend(std::mem::take(&mut self.lock().wakers).into_values());
    }

    /// Reason of the end; otherwise the waker is registered under the entry, which is made at first.
    pub fn reason_or_register(&self, entry: &mut Option<u64>, waker: &Waker) -> Option<String> {
        // Dropped after the lock: its drop may be the application's code.
        let _former;
        let mut waiting = self.lock();
        if let Some(reason) = self.reason() {
            return Some(reason.to_owned());
        }
        let number = *entry.get_or_insert_with(|| {
            waiting.last += 1;
            waiting.last
        });
        _former = waiting.wakers.insert(number, waker.clone());
        None
    }

    pub fn forget(&self, entry: u64) {
        let former = self.lock().wakers.remove(&entry);
        drop(former);
    }
}
