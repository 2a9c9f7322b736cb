//! The open-loop schedule: due times, warm-up, and whether the rate was reached. Pure arithmetic on ns: callers bring
//! the clock.

/// Message `i` is due at `start_ns + i * 1_000_000_000 / rate`, divided as a whole, so no rounding error adds up.
/// Latencies count from this time, also when the sender is late: a queue at the sender is part of a user's latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    start_ns: u64,
    rate_per_s: u64,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Schedule {
    /// A schedule whose message 0 is due at `start_ns`.
    ///
    /// # Panics
    /// If `rate_per_s` is 0.
    pub fn new(start_ns: u64, rate_per_s: u64) -> Self {
        assert!(rate_per_s > 0, "a rate is at least one message per second");
        Self { start_ns, rate_per_s }
    }

    pub fn due_ns(&self, index: u64) -> u64 {
        let offset = u128::from(index) * u128::from(SECOND_NS) / u128::from(self.rate_per_s);
        self.start_ns.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
    }

    /// The index of the first message that is not due.
    pub fn due_count(&self, now_ns: u64) -> u64 {
        let Some(elapsed) = now_ns.checked_sub(self.start_ns) else { return 0 };
        // Largest i with i * SECOND < (elapsed + 1) * rate, plus one.
        let scaled = (u128::from(elapsed) + 1) * u128::from(self.rate_per_s);
        u64::try_from(scaled.div_ceil(u128::from(SECOND_NS))).unwrap_or(u64::MAX)
    }

    /// Avoids a division per message.
    pub fn pacer(&self) -> Pacer {
        Pacer {
            next_due_ns: self.start_ns,
            step_ns: SECOND_NS / self.rate_per_s,
            step_remainder: SECOND_NS % self.rate_per_s,
            remainder: 0,
            rate_per_s: self.rate_per_s,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Pacer {
    next_due_ns: u64,
    step_ns: u64,
    step_remainder: u64,
    remainder: u64,
    rate_per_s: u64,
}

impl Pacer {
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        self.next_due_ns
    }

    #[inline]
    pub fn take_if_due(&mut self, now_ns: u64) -> Option<u64> {
        let due_ns = self.next_due_ns;
        if now_ns < due_ns {
            return None;
        }
        self.advance();
        Some(due_ns)
    }

    /// Spins; returns the due time, at once if it is late.
    #[inline]
    pub fn wait_for_next(&mut self, mut clock_ns: impl FnMut() -> u64) -> u64 {
        let due_ns = self.next_due_ns;
        while clock_ns() < due_ns {
            std::hint::spin_loop();
        }
        self.advance();
        due_ns
    }

    #[inline]
    fn advance(&mut self) {
        self.next_due_ns = self.next_due_ns.saturating_add(self.step_ns);
        self.remainder += self.step_remainder;
        if self.remainder >= self.rate_per_s {
            self.remainder -= self.rate_per_s;
            self.next_due_ns = self.next_due_ns.saturating_add(1);
        }
    }
}

/// Warm-up ends after `duration_ns`, or with the message before `count / 2`, whichever is first: a fast run has figures
/// from at least half of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmUp {
    duration_ns: u64,
    at_most_messages: u64,
}

impl WarmUp {
    pub fn new(duration_ns: u64, count: u64) -> Self {
        Self { duration_ns, at_most_messages: count / 2 }
    }

    /// `index` from 0; `elapsed_ns` from the run's start to the due time, or without a rate to the injection.
    #[inline]
    pub fn covers(&self, index: u64, elapsed_ns: u64) -> bool {
        index < self.at_most_messages && elapsed_ns < self.duration_ns
    }

    /// The index of the first message that counts, in a run at a fixed rate.
    pub fn first_counted(&self, rate_per_s: u64) -> u64 {
        let due_before_end =
            if self.duration_ns == 0 { 0 } else { Schedule::new(0, rate_per_s).due_count(self.duration_ns - 1) };
        due_before_end.min(self.at_most_messages)
    }

    /// Worth a note.
    pub fn is_cut_short(&self, rate_per_s: u64) -> bool {
        self.duration_ns > 0 && Schedule::new(0, rate_per_s).due_count(self.duration_ns - 1) > self.at_most_messages
    }
}

/// Losing the CPU once at the end proves nothing.
const LAG_ALLOWED_NS: u64 = 10_000_000;

/// Reached if the last message was injected no later after its due time than 1 % of the scheduled length, or 10 ms if
/// that is more. A sender that catches up has reached it: its lateness is in the latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateCheck {
    /// Due time of the first counted message, ns.
    pub first_due_ns: u64,
    pub last_due_ns: u64,
    pub last_injected_ns: u64,
}

impl RateCheck {
    pub fn reached(&self) -> bool {
        let scheduled_ns = self.last_due_ns.saturating_sub(self.first_due_ns);
        self.lag_ns() <= (scheduled_ns / 100).max(LAG_ALLOWED_NS)
    }

    pub fn lag_ns(&self) -> u64 {
        self.last_injected_ns.saturating_sub(self.last_due_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn uneven_rate_does_not_drift() {
        let schedule = Schedule::new(5, 3);
        assert_eq!([0, 1, 2, 3].map(|i| schedule.due_ns(i)), [5, 333_333_338, 666_666_671, 1_000_000_005]);
        let year = 3 * 86_400 * 365;
        assert_eq!(schedule.due_ns(year), 5 + 86_400 * 365 * SECOND_NS);
    }

    #[test]
    fn the_end_of_time_saturates() {
        assert_eq!(Schedule::new(1, 1).due_ns(u64::MAX), u64::MAX);
    }

    #[test]
    #[should_panic(expected = "at least one message")]
    fn zero_rate_panics() {
        let _ = Schedule::new(0, 0);
    }

    proptest! {
        #[test]
        fn the_pacer_walks_the_schedule(rate in 1_u64..3_000_000_000, start in 0_u64..u64::MAX / 2) {
            let schedule = Schedule::new(start, rate);
            let mut pacer = schedule.pacer();
            for index in 0..2_000 {
                prop_assert_eq!(pacer.take_if_due(u64::MAX), Some(schedule.due_ns(index)));
            }
        }

        #[test]
        fn due_count_matches_due_times(rate in 1_u64..3_000_000_000, elapsed in 0_u64..10_000_000_000) {
            let schedule = Schedule::new(7, rate);
            let count = schedule.due_count(7 + elapsed);
            prop_assert!(schedule.due_ns(count - 1) <= 7 + elapsed);
            prop_assert!(schedule.due_ns(count) > 7 + elapsed);
            prop_assert_eq!(schedule.due_count(6), 0);
        }

        #[test]
        fn counting_starts_after_warm_up(
            rate in 1_u64..100_000, duration_ns in 0_u64..1_000_000_000, count in 0_u64..1_000,
        ) {
            let warm_up = WarmUp::new(duration_ns, count);
            let schedule = Schedule::new(0, rate);
            let first = (0..=count).find(|&index| !warm_up.covers(index, schedule.due_ns(index)));
            prop_assert_eq!(first, Some(warm_up.first_counted(rate)));
        }
    }

    #[test]
    fn no_message_is_taken_early() {
        let mut pacer = Schedule::new(100, 1_000).pacer();
        assert_eq!(pacer.take_if_due(99), None);
        assert_eq!(pacer.take_if_due(100), Some(100));
        assert_eq!(pacer.take_if_due(100), None);
        assert_eq!(pacer.next_due_ns(), 1_000_100);
    }

    #[test]
    fn wait_returns_the_due_time() {
        let mut pacer = Schedule::new(10, 1).pacer();
        let mut now_ns = 0;
        let due_ns = pacer.wait_for_next(|| {
            now_ns += 4;
            now_ns
        });
        assert_eq!((due_ns, now_ns), (10, 12));
    }

    #[test]
    fn at_least_half_of_the_messages_count() {
        let warm_up = WarmUp::new(2 * SECOND_NS, 1_000);
        assert_eq!(warm_up.first_counted(100_000), 500);
        assert!(warm_up.is_cut_short(100_000));
        assert_eq!(WarmUp::new(2 * SECOND_NS, 100).first_counted(10), 20);
        assert!(!WarmUp::new(2 * SECOND_NS, 100).is_cut_short(10));
        assert_eq!(WarmUp::new(0, 100).first_counted(10), 0);
    }

    #[test]
    fn rate_may_lag_one_percent() {
        let at = |last_injected_ns| RateCheck { first_due_ns: 0, last_due_ns: 10 * SECOND_NS, last_injected_ns };
        assert!(at(10 * SECOND_NS + SECOND_NS / 10).reached());
        assert!(!at(10 * SECOND_NS + SECOND_NS / 10 + 1).reached());
        assert_eq!(at(9 * SECOND_NS).lag_ns(), 0);
        let short = RateCheck { first_due_ns: 0, last_due_ns: 1_000, last_injected_ns: 1_000 + LAG_ALLOWED_NS };
        assert!(short.reached());
        assert!(!RateCheck { last_injected_ns: short.last_injected_ns + 1, ..short }.reached());
    }
}
