//! [`BrokerTime`]: the broker's clock, estimated from records that were read. Append time minus reading time is a lower
//! bound of the clocks' difference; the greatest bound is the best. An own record was appended after it was sent, which
//! gives an upper bound; if both contradict, the broker's clock was set back, as when the partition moves.

/// Both clocks drift: 1 ms in 2 s.
const DRIFT_PPM: u64 = 500;

/// An estimate of the clock of one partition.
#[derive(Clone, Copy, Debug, Default)]
pub struct BrokerTime {
    best: Option<(i128, u64)>,
    last_ms: i64,
}

impl BrokerTime {
    /// Notes a record read at `now_ns` of the monotonic clock; a smaller append time than before means that the
    /// broker's clock was set back: the estimate begins again.
    pub fn read(&mut self, append_time_ms: i64, now_ns: u64) {
        let difference = i128::from(append_time_ms) * 1_000_000 - i128::from(now_ns);
        let is_set_back = append_time_ms < self.last_ms;
        self.last_ms = append_time_ms;
        match self.difference(now_ns) {
            Some(best) if best >= difference && !is_set_back => {}
            _ => self.best = Some((difference, now_ns)),
        }
    }

    /// Notes an own record, sent at `sent_ns` and read at `now_ns` of the monotonic clock.
    pub fn read_own(&mut self, append_time_ms: i64, sent_ns: u64, now_ns: u64) {
        self.read(append_time_ms, now_ns);
        // Append times are cut to milliseconds.
        let greatest = (i128::from(append_time_ms) + 1) * 1_000_000 - i128::from(sent_ns);
        if self.difference(now_ns).is_some_and(|best| best > greatest) {
            let difference = i128::from(append_time_ms) * 1_000_000 - i128::from(now_ns);
            self.best = Some((difference, now_ns));
        }
    }

    /// Age in ns of `append_time_ms` at `now_ns` of the monotonic clock: at most the true age, 0 before anything was
    /// read.
    #[must_use]
    pub fn age_ns(&self, append_time_ms: i64, now_ns: u64) -> u64 {
        let Some(difference) = self.difference(now_ns) else { return 0 };
        let age = i128::from(now_ns) + difference - i128::from(append_time_ms) * 1_000_000;
        u64::try_from(age.max(0)).unwrap_or(u64::MAX)
    }

    /// The broker's clock at `now_ns` of the monotonic clock, ms since 1970: at most the true time. `None` before anything was read.
    #[must_use]
    pub fn now_ms(&self, now_ns: u64) -> Option<i64> {
        let time_ns = i128::from(now_ns) + self.difference(now_ns)?;
        i64::try_from(time_ns.div_euclid(1_000_000)).ok()
    }

    fn difference(&self, now_ns: u64) -> Option<i128> {
        let (difference, read_ns) = self.best?;
        Some(difference - i128::from(now_ns.saturating_sub(read_ns)) * i128::from(DRIFT_PPM) / 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_soonest_record_counts() {
        let mut time = BrokerTime::default();
        assert_eq!((time.age_ns(5_000, 7 * MS), time.now_ms(7 * MS)), (0, None), "nothing was read");
        for (appended, delay) in [(1_000_000, 40), (1_000_100, 3), (1_000_200, 20)] {
            time.read(appended, (appended as u64 - 1_000_000 + delay) * MS);
        }
        let age_ns = time.age_ns(1_000_200, 220 * MS);
        assert!((16 * MS..=17 * MS).contains(&age_ns), "20 ms, of which the best record hides 3: {age_ns}");
        assert_eq!(time.now_ms(220 * MS), Some(1_000_216), "cut, and 3 ms late");
        let late_ns = time.age_ns(1_000_000, 60_000 * MS);
        assert!((59_900 * MS..60_000 * MS).contains(&late_ns), "{late_ns}");
    }

    #[test]
    fn a_clock_that_goes_back_begins_again() {
        let mut time = BrokerTime::default();
        time.read(3_600_000, MS);
        time.read(1_000, 2 * MS);
        assert_eq!(time.age_ns(1_000, 2 * MS), 0);
        // Set back by less than the time between two records: only an own record shows it.
        time.read(1_500, 1_002 * MS);
        assert!(time.age_ns(1_500, 1_002 * MS) > 498 * MS);
        time.read_own(1_501, 1_002 * MS, 1_004 * MS);
        assert_eq!(time.age_ns(1_501, 1_004 * MS), 0);
        let now = 1_005;
        time.read(3_600_000, now * MS);
        let age_ns = time.age_ns(3_600_000, (now + 1) * MS);
        assert_eq!(age_ns, MS - MS * DRIFT_PPM / 1_000_000, "and ahead at once");
    }
}
