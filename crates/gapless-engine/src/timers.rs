//! The timer table: which timers the service has set. A fold of the stream; the sequencer holds the
//! clock and appends a frame when one is due.

use std::collections::BTreeMap;

/// Timers by identifier, each with its deadline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimerTable {
    deadlines: BTreeMap<u64, u64>,
}

impl TimerTable {
    /// Sets a timer; the deadline that it had before.
    pub fn set(&mut self, timer: u64, deadline_ns: u64) -> Option<u64> {
        self.deadlines.insert(timer, deadline_ns)
    }

    /// Forgets a timer; the deadline that it had.
    pub fn cancel(&mut self, timer: u64) -> Option<u64> {
        self.deadlines.remove(&timer)
    }

    /// Whether a timer is set to this deadline.
    #[must_use]
    pub fn is_set(&self, timer: u64, deadline_ns: u64) -> bool {
        self.deadlines.get(&timer) == Some(&deadline_ns)
    }

    /// Takes a timer that the stream says is due; false if it was replaced or cancelled meanwhile.
    pub fn take(&mut self, timer: u64, deadline_ns: u64) -> bool {
        let is_set = self.is_set(timer, deadline_ns);
        if is_set {
            self.deadlines.remove(&timer);
        }
        is_set
    }

    /// All timers: (identifier, deadline in ns since the epoch).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        self.deadlines.iter().map(|(timer, deadline_ns)| (*timer, *deadline_ns))
    }
}
