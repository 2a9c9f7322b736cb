//! Times at which a long wait for another process is reported: once a second at first, then less often.

use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;

/// Times of reports about a wait. The waiting loop asks at each turn; a finished wait is not reported any more.
///
/// ```
/// use gapless_agent::wait_notices::WaitNotices;
/// use std::time::Duration;
/// let mut notices = WaitNotices::after_a_second();
/// let told = (0..20_000).filter_map(|ms| notices.take_due(ms * 1_000_000)).map(|waited| waited.as_secs());
/// assert_eq!(told.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 10, 15]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WaitNotices {
    first_ns: u64,
    since_ns: Option<u64>,
    /// Valid also for the next wait, so that many short waits do not flood.
    next_ns: u64,
}

impl WaitNotices {
    /// Reports nothing in the first second: most waits are over by then.
    #[must_use]
    pub const fn after_a_second() -> Self {
        Self { first_ns: SECOND_NS, since_ns: None, next_ns: 0 }
    }

    /// Reports at once, for a condition that is a fault from the start.
    #[must_use]
    pub const fn at_once() -> Self {
        Self { first_ns: 0, since_ns: None, next_ns: 0 }
    }

    /// No effect during a wait; `now_ns` is of a monotonic clock.
    pub fn begin(&mut self, now_ns: u64) {
        if self.since_ns.is_none() {
            self.since_ns = Some(now_ns);
            self.next_ns = self.next_ns.max(now_ns + self.first_ns);
        }
    }

    /// Time waited, if a report is due; the first call begins the wait.
    pub fn take_due(&mut self, now_ns: u64) -> Option<Duration> {
        self.begin(now_ns);
        let since_ns = self.since_ns.unwrap_or(now_ns);
        if now_ns < self.next_ns {
            return None;
        }
        let waited_ns = now_ns.saturating_sub(since_ns);
        self.next_ns = now_ns + interval_ns(waited_ns);
        Some(Duration::from_nanos(waited_ns))
    }

    #[must_use]
    pub const fn next_ns(&self) -> u64 {
        self.next_ns
    }

    pub const fn end(&mut self) {
        self.since_ns = None;
    }
}

const fn interval_ns(waited_ns: u64) -> u64 {
    SECOND_NS
        * match waited_ns / SECOND_NS {
            0..5 => 1,
            5..30 => 5,
            30..300 => 30,
            _ => 300,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn told(notices: &mut WaitNotices, ms: std::ops::Range<u64>) -> Vec<(u64, u64)> {
        ms.filter_map(|now| Some((now, notices.take_due(now * MS)?.as_millis() as u64))).collect()
    }

    #[test]
    fn reports_become_less_frequent() {
        let mut notices = WaitNotices::after_a_second();
        let times: Vec<u64> = told(&mut notices, 0..1_000_000).into_iter().map(|(now, _)| now / 1000).collect();
        assert_eq!(times, [1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 600, 900]);
    }

    #[test]
    fn short_waits_are_not_reported() {
        let mut notices = WaitNotices::after_a_second();
        for second in 0..100 {
            assert_eq!(told(&mut notices, second * 1000..second * 1000 + 900), []);
            notices.end();
        }
        assert_eq!(told(&mut notices, 100_000..102_500), [(101_000, 1000), (102_000, 2000)]);
    }

    #[test]
    fn fault_is_reported_once_a_second() {
        let mut notices = WaitNotices::at_once();
        assert_eq!(told(&mut notices, 7..8), [(7, 0)]);
        notices.end();
        assert_eq!(told(&mut notices, 8..1500), [(1007, 999)]);
    }
}
