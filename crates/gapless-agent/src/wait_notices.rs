//! [`WaitNotices`]: when one who waits says for whom: once a second at first, then less often. Everybody who waits for another process
//! takes the times from here; how it is said, on standard error or to a log, is the caller's. No I/O, no clock.

use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;

/// The times at which a wait is told. Whoever waits asks at each turn; a wait that is over is told no more.
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
    /// Since when somebody waits, ns.
    since_ns: Option<u64>,
    /// Nothing is told before, ns: also of the next wait, so that short ones that follow each other do not flood.
    next_ns: u64,
}

impl WaitNotices {
    /// The first second is nobody's concern: most waits are over by then.
    #[must_use]
    pub const fn after_a_second() -> Self {
        Self { first_ns: SECOND_NS, since_ns: None, next_ns: 0 }
    }

    /// Said at once, for what is wrong already when it begins.
    #[must_use]
    pub const fn at_once() -> Self {
        Self { first_ns: 0, since_ns: None, next_ns: 0 }
    }

    /// A wait begins at `now_ns`, on a clock that never goes back, unless one goes on.
    pub fn begin(&mut self, now_ns: u64) {
        if self.since_ns.is_none() {
            self.since_ns = Some(now_ns);
            self.next_ns = self.next_ns.max(now_ns + self.first_ns);
        }
    }

    /// Somebody waits at `now_ns`: how long already, if it is time to say it. The first such call begins the wait.
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

    /// When the wait that goes on is told next, ns: who sleeps meanwhile wakes up then.
    #[must_use]
    pub const fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Nobody waits any more.
    pub const fn end(&mut self) {
        self.since_ns = None;
    }
}

/// Between a notice after so long and the next one.
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
    fn a_wait_is_told_each_second_and_then_less_often() {
        let mut notices = WaitNotices::after_a_second();
        let times: Vec<u64> = told(&mut notices, 0..1_000_000).into_iter().map(|(now, _)| now / 1000).collect();
        assert_eq!(times, [1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 600, 900]);
    }

    #[test]
    fn a_wait_that_is_over_begins_anew_and_short_ones_are_not_told() {
        let mut notices = WaitNotices::after_a_second();
        for second in 0..100 {
            assert_eq!(told(&mut notices, second * 1000..second * 1000 + 900), []);
            notices.end();
        }
        assert_eq!(told(&mut notices, 100_000..102_500), [(101_000, 1000), (102_000, 2000)]);
    }

    #[test]
    fn what_is_wrong_is_told_at_once_and_not_again_within_a_second() {
        let mut notices = WaitNotices::at_once();
        assert_eq!(told(&mut notices, 7..8), [(7, 0)]);
        notices.end();
        assert_eq!(told(&mut notices, 8..1500), [(1007, 999)]);
    }
}
