//! The timer table: timers set by the service. A fold over the stream; the sequencer has the clock and appends a frame
//! when a timer is due.

use std::collections::BTreeMap;

/// Deadlines of the timers by identifier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimerTable {
    deadlines: BTreeMap<u64, u64>,
}

impl TimerTable {
    /// Sets a timer; returns its previous deadline.
    pub fn set(&mut self, timer: u64, deadline_ns: u64) -> Option<u64> {
        self.deadlines.insert(timer, deadline_ns)
    }

    /// Cancels a timer; returns its deadline.
    pub fn cancel(&mut self, timer: u64) -> Option<u64> {
        self.deadlines.remove(&timer)
    }

    #[must_use]
    pub fn is_set(&self, timer: u64, deadline_ns: u64) -> bool {
        self.deadlines.get(&timer) == Some(&deadline_ns)
    }

    /// Removes a timer that the stream reports as due; returns false if it was replaced or cancelled meanwhile.
    pub fn take(&mut self, timer: u64, deadline_ns: u64) -> bool {
        let is_set = self.is_set(timer, deadline_ns);
        if is_set {
            self.deadlines.remove(&timer);
        }
        is_set
    }

    /// Iterates over all timers as (identifier, deadline in ns since the epoch).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        self.deadlines.iter().map(|(timer, deadline_ns)| (*timer, *deadline_ns))
    }
}
