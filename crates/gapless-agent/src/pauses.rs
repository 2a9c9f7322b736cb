//! Times that a spinning thread lost its core: the machine's share of a latency's tail, as a lower bound, since a pause
//! in a cycle that then finds work cannot be told from that work.

use std::sync::atomic::{AtomicU64, Ordering};

pub const PAUSE_NS_MIN: u64 = 2_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    pub count: u64,
    pub total_ns: u64,
    pub longest_ns: u64,
}

impl Pauses {
    /// Pauses after `earlier`; the longest is that of the whole time.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            count: self.count.saturating_sub(earlier.count),
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
            longest_ns: self.longest_ns,
        }
    }
}

impl std::iter::Sum for Pauses {
    fn sum<I: Iterator<Item = Self>>(threads: I) -> Self {
        threads.fold(Self::default(), |sum, thread| Self {
            count: sum.count + thread.count,
            total_ns: sum.total_ns + thread.total_ns,
            longest_ns: sum.longest_ns.max(thread.longest_ns),
        })
    }
}

/// Detects the pauses of the calling thread: call [`PauseTracker::begin`] with the time at the start of each duty cycle
/// and [`PauseTracker::end`] at its end.
///
/// ```
/// use gapless_agent::{PauseTracker, Pauses};
///
/// let mut tracker = PauseTracker::default();
/// tracker.begin(1_000);
/// tracker.end(true);
/// assert_eq!(tracker.begin(1_200), None);
/// tracker.end(true);
/// assert_eq!(tracker.begin(51_200), Some(50_000));
/// assert_eq!(tracker.pauses(), Pauses { count: 1, total_ns: 50_000, longest_ns: 50_000 });
/// ```
#[derive(Debug, Default)]
pub struct PauseTracker {
    begun_ns: u64,
    idle: bool,
    pauses: Pauses,
}

impl PauseTracker {
    /// `Some` pause since the previous cycle.
    #[inline]
    pub fn begin(&mut self, now_ns: u64) -> Option<u64> {
        let passed_ns = now_ns.saturating_sub(self.begun_ns);
        self.begun_ns = now_ns;
        if self.idle && passed_ns >= PAUSE_NS_MIN { Some(self.record(passed_ns)) } else { None }
    }

    /// `idle` if the cycle did no work and the thread continues at once.
    #[inline]
    pub fn end(&mut self, idle: bool) {
        self.idle = idle;
    }

    #[must_use]
    pub const fn pauses(&self) -> Pauses {
        self.pauses
    }

    #[cold]
    fn record(&mut self, passed_ns: u64) -> u64 {
        self.pauses.count += 1;
        self.pauses.total_ns += passed_ns;
        self.pauses.longest_ns = self.pauses.longest_ns.max(passed_ns);
        passed_ns
    }
}

#[derive(Debug, Default)]
pub(crate) struct SharedPauses {
    count: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl SharedPauses {
    #[cold]
    pub(crate) fn publish(&self, pauses: Pauses) {
        // Relaxed: informational figures; nothing depends on their order.
        self.count.store(pauses.count, Ordering::Relaxed);
        self.total_ns.store(pauses.total_ns, Ordering::Relaxed);
        self.longest_ns.store(pauses.longest_ns, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Pauses {
        Pauses {
            count: self.count.load(Ordering::Relaxed),
            total_ns: self.total_ns.load(Ordering::Relaxed),
            longest_ns: self.longest_ns.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycle_with_work_is_no_pause() {
        let mut tracker = PauseTracker::default();
        tracker.begin(1_000_000);
        tracker.end(false);
        assert_eq!(tracker.begin(9_000_000), None);
        tracker.end(true);
        assert_eq!(tracker.begin(9_000_000 + PAUSE_NS_MIN), Some(PAUSE_NS_MIN));
        assert_eq!(tracker.pauses().count, 1);
    }

    #[test]
    fn first_cycle_is_no_pause() {
        let mut tracker = PauseTracker::default();
        assert_eq!(tracker.begin(u64::MAX), None);
        tracker.end(true);
        assert_eq!(tracker.begin(5), None);
        assert_eq!(tracker.pauses(), Pauses::default());
    }

    #[test]
    fn since_is_a_difference() {
        let earlier = Pauses { count: 2, total_ns: 30, longest_ns: 20 };
        let later = Pauses { count: 5, total_ns: 100, longest_ns: 40 };
        assert_eq!(later.since(earlier), Pauses { count: 3, total_ns: 70, longest_ns: 40 });
    }

    #[test]
    fn sum_adds_and_keeps_the_longest() {
        let threads = [
            Pauses { count: 1, total_ns: 50_000, longest_ns: 50_000 },
            Pauses { count: 2, total_ns: 30_000, longest_ns: 20_000 },
        ];
        assert_eq!(threads.into_iter().sum::<Pauses>(), Pauses { count: 3, total_ns: 80_000, longest_ns: 50_000 });
        assert_eq!(std::iter::empty().sum::<Pauses>(), Pauses::default());
    }
}
