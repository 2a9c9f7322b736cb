//! The service's timers: a fold over the stream. The sequencer has the clock and appends a frame when a timer is due.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimerTable {
    deadlines: BTreeMap<u64, u64>,
}

impl TimerTable {
    pub fn set(&mut self, timer: u64, deadline_ns: u64) -> Option<u64> {
        self.deadlines.insert(timer, deadline_ns)
    }

    pub fn cancel(&mut self, timer: u64) -> Option<u64> {
        self.deadlines.remove(&timer)
    }

    #[must_use]
    pub fn is_set(&self, timer: u64, deadline_ns: u64) -> bool {
        self.deadlines.get(&timer) == Some(&deadline_ns)
    }

    /// False if the timer was replaced or cancelled meanwhile.
    pub fn take(&mut self, timer: u64, deadline_ns: u64) -> bool {
        let is_set = self.is_set(timer, deadline_ns);
        if is_set {
            self.deadlines.remove(&timer);
        }
        is_set
    }

    /// (identifier, deadline in ns since the epoch).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        self.deadlines.iter().map(|(timer, deadline_ns)| (*timer, *deadline_ns))
    }
}
