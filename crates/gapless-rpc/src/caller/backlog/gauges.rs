//! `BacklogGauges`: counters of a backlog, added to those of the route's other callers in this process.

use super::record::BacklogCounts;
use crate::caller::routes::SharedTable;
use crate::overflow::ElasticQueue;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(super) struct BacklogGauges {
    table: Arc<SharedTable>,
    line: Arc<BacklogCounts>,
    queue: Arc<ElasticQueue>,
    overflowed: AtomicU64,
    added: Mutex<[u64; 4]>,
}

impl BacklogGauges {
    pub(super) fn new(table: Arc<SharedTable>, line: Arc<BacklogCounts>, queue: Arc<ElasticQueue>) -> Self {
        Self { table, line, queue, overflowed: AtomicU64::new(0), added: Mutex::default() }
    }

    pub(super) fn entered(&self) {
        // Relaxed: statistics only.
        self.overflowed.fetch_add(1, Ordering::Relaxed);
        self.publish();
    }

    pub(super) fn publish(&self) {
        let mut added = self.added.lock().expect("nobody panics with the lock");
        let counters = self.queue.counters();
        let overflowed = self.overflowed.load(Ordering::Relaxed);
        let has = [overflowed, self.line.len(), counters.records_on_disk, counters.spilled_records];
        self.table.backlog_counters.change(*added, has);
        *added = has;
    }
}

impl Drop for BacklogGauges {
    fn drop(&mut self) {
        // Takes back the gauges, for nothing is queued any more; the totals stay.
        let added = *self.added.lock().expect("nobody panics with the lock");
        self.table.backlog_counters.change(added, [added[0], 0, 0, added[3]]);
    }
}
