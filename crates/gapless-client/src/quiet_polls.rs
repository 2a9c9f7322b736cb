//! [`QuietPolls`]: when polls that find nothing are to ask whether the other side still lives. Asking takes a system call,
//! and knowing the time takes about 30 ns, so a hot loop does neither at each poll: it looks at the clock once in eight, and
//! asks once nothing has come for 50 ms. Used by a client and by a node's link over shared memory.

use std::time::{Duration, Instant};

/// The other side is asked for after so long without a message.
const ASK_INTERVAL: Duration = Duration::from_millis(50);
/// So many fast polls share a look at the clock.
const FAST_POLLS_PER_LOOK: u32 = 8;
/// Polls that take longer than this between two looks look each time.
const FAST_POLLS_TIME: Duration = Duration::from_millis(1);

/// The polls since something came.
#[derive(Default)]
pub(crate) struct QuietPolls {
    polls: u32,
    polls_per_look: u32,
    looked: Option<Instant>,
    /// When nothing had come yet, or the other side was asked for.
    since: Option<Instant>,
    is_forced: bool,
}

impl QuietPolls {
    /// Something has come.
    #[inline]
    pub fn end(&mut self) {
        self.polls = 0;
        self.since = None;
    }

    /// The next poll that finds nothing asks.
    pub fn ask_next(&mut self) {
        self.is_forced = true;
        self.polls_per_look = 1;
    }

    /// A poll has found nothing; whether it is to look at the clock, and tell the time to
    /// [`QuietPolls::take_due_question`].
    #[inline]
    pub fn take_due_look(&mut self) -> bool {
        self.polls += 1;
        self.polls >= self.polls_per_look
    }

    /// The poll has looked at the clock; whether it asks for the other side now, and the next time a while later.
    pub fn take_due_question(&mut self, now: Instant) -> bool {
        self.polls = 0;
        let before = self.looked.replace(now);
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

    /// Looks at the clock, and times at which the other side is asked for, in `polls` polls of `pace` each.
    fn quiet(polls: u32, pace: Duration) -> (u32, Vec<Duration>) {
        let (mut quiet, begun) = (QuietPolls::default(), Instant::now());
        let (mut looks, mut asks) = (0, Vec::new());
        for poll in 0..polls {
            if quiet.take_due_look() {
                looks += 1;
                if quiet.take_due_question(begun + pace * poll) {
                    asks.push(pace * poll);
                }
            }
        }
        (looks, asks)
    }

    #[test]
    fn the_other_side_is_asked_for_every_50_ms_at_any_pace() {
        let (looks, asks) = quiet(1_200_000, Duration::from_nanos(100));
        assert!(looks < 1_200_000 / 8 + 10, "{looks} looks at the clock");
        assert!(asks.len() == 2 && asks[0] < Duration::from_millis(51), "{asks:?}");
        for pace_ms in [1, 3, 20] {
            let first = quiet(100, Duration::from_millis(pace_ms)).1[0];
            // Eight polls of a millisecond share a look.
            assert!(first <= Duration::from_millis(50 + pace_ms.max(8)), "{first:?} at {pace_ms} ms");
        }
        assert_eq!(quiet(3, Duration::from_secs(1)).1, [1, 2].map(Duration::from_secs));
    }

    #[test]
    fn nobody_asks_while_something_comes_unless_it_has_slept() {
        let (mut quiet, begun) = (QuietPolls::default(), Instant::now());
        for poll in 0..1_000_000 {
            match poll % 40_000 {
                0 => quiet.end(),
                _ => assert!(!quiet.take_due_look() || !quiet.take_due_question(begun + Duration::from_micros(poll))),
            }
        }
        quiet.ask_next();
        assert!(quiet.take_due_look() && quiet.take_due_question(begun));
    }
}
