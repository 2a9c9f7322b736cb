//! [`QueueGauges`]: how full a route's queue is, and what has waited there too long, for other processes to read.

use gapless_agent::{CountersWriter, SharedCounter};
use std::sync::Arc;

/// How full a route's queue is, set under the queue's lock, and what has waited there too long.
#[derive(Debug)]
pub struct QueueGauges {
    /// Requests that wait in memory.
    pub queued: SharedCounter,
    /// Requests that wait in the overflow.
    pub on_disk: SharedCounter,
    /// Requests that have gone into the overflow.
    pub overflowed: SharedCounter,
    /// Requests whose time was over when a worker took them.
    pub too_late: SharedCounter,
    /// What shows them.
    pub writer: Arc<CountersWriter>,
}

impl QueueGauges {
    pub(super) fn set(&self, queued: usize, on_disk: usize) {
        self.queued.set(queued as u64);
        self.on_disk.set(on_disk as u64);
        self.writer.changed();
    }

    pub(super) fn count_too_late(&self) {
        self.too_late.add(1);
        self.writer.changed();
    }
}
