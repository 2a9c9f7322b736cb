//! `QueueGauges`: length of a route's queue and its expired requests, for other processes to read.

use gapless_agent::{CountersWriter, SharedCounter};
use std::sync::Arc;

/// Length of a route's queue, set under the queue's lock, and count of its expired requests; other processes read them.
#[derive(Debug)]
pub struct QueueGauges {
    pub queued: SharedCounter,
    pub on_disk: SharedCounter,
    /// Total requests that went into the overflow.
    pub overflowed: SharedCounter,
    /// Requests whose deadline had passed when a worker took them.
    pub too_late: SharedCounter,
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
