//! [`QueueGauges`]: how full a route's queue is, for other processes to read.

use gapless_agent::SharedCounter;

/// How full a route's queue is. Set under the queue's lock.
#[derive(Debug)]
pub struct QueueGauges {
    /// Requests that wait in memory.
    pub queued: SharedCounter,
    /// Requests that wait in the overflow.
    pub on_disk: SharedCounter,
    /// Requests that have gone into the overflow.
    pub overflowed: SharedCounter,
}

impl QueueGauges {
    pub(super) fn set(&self, queued: usize, on_disk: usize) {
        self.queued.set(queued as u64);
        self.on_disk.set(on_disk as u64);
    }
}
