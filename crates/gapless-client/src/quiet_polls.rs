//! When empty polls check that the other side is alive. The check takes a system call, and reading the clock about 30
//! ns, so a hot loop reads the clock once in eight polls, and checks after 50 ms without a message.

use std::time::{Duration, Instant};

const ASK_INTERVAL: Duration = Duration::from_millis(50);
const FAST_POLLS_PER_LOOK: u32 = 8;
/// Time between two looks above which every poll reads the clock.
const FAST_POLLS_TIME: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(crate) struct QuietPolls {
    polls: u32,
    polls_per_look: u32,
    checked_at: Option<Instant>,
    since: Option<Instant>,
    is_forced: bool,
}

impl QuietPolls {
    /// A message has arrived.
    #[inline]
    pub fn end(&mut self) {
        self.polls = 0;
        self.since = None;
    }

    /// Makes the next empty poll check.
    pub fn check_next(&mut self) {
        self.is_forced = true;
        self.polls_per_look = 1;
    }

    /// Whether to read the clock and call [`QuietPolls::take_due_question`].
    #[inline]
    pub fn take_clock_check(&mut self) -> bool {
        self.polls += 1;
        self.polls >= self.polls_per_look
    }

    /// Whether to check the other side now; the next check is due an interval later.
    pub fn take_due_question(&mut self, now: Instant) -> bool {
        self.polls = 0;
        let before = self.checked_at.replace(now);
        let is_fast = before.is_some_and(|before| now.saturating_duration_since(before) <= FAST_POLLS_TIME);
        self.polls_per_look = if is_fast { FAST_POLLS_PER_LOOK } else { 1 };
        let since = *self.since.get_or_insert(now);
        let is_due = std::mem::take(&mut self.is_forced) || now.saturating_duration_since(since) >= ASK_INTERVAL;
        if is_due {
            self.since = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(polls: u32, pace: Duration) -> (u32, Vec<Duration>) {
        let (mut quiet, begun) = (QuietPolls::default(), Instant::now());
        let (mut looks, mut asks) = (0, Vec::new());
        for poll in 0..polls {
            if quiet.take_clock_check() {
                looks += 1;
                if quiet.take_due_question(begun + pace * poll) {
                    asks.push(pace * poll);
                }
            }
        }
        (looks, asks)
    }

    #[test]
    fn checks_every_50_ms_at_any_pace() {
        let (looks, asks) = quiet(1_200_000, Duration::from_nanos(100));
        assert!(looks < 1_200_000 / 8 + 10, "{looks} looks at the clock");
        assert!(asks.len() == 2 && asks[0] < Duration::from_millis(51), "{asks:?}");
        for pace_ms in [1, 3, 20] {
            let first = quiet(100, Duration::from_millis(pace_ms)).1[0];
            assert!(first <= Duration::from_millis(50 + pace_ms.max(8)), "{first:?} at {pace_ms} ms");
        }
        assert_eq!(quiet(3, Duration::from_secs(1)).1, [1, 2].map(Duration::from_secs));
    }

    #[test]
    fn messages_suppress_checks() {
        let (mut quiet, begun) = (QuietPolls::default(), Instant::now());
        for poll in 0..1_000_000 {
            match poll % 40_000 {
                0 => quiet.end(),
                _ => {
                    assert!(!quiet.take_clock_check() || !quiet.take_due_question(begun + Duration::from_micros(poll)))
                }
            }
        }
        quiet.check_next();
        assert!(quiet.take_clock_check() && quiet.take_due_question(begun));
    }
}
