//! [`StreamTime`]: advances evenly across changes of leader and restarts, even if wall clocks differ (decision 8). A
//! [`Clock`](gapless_agent::Clock) bridges jumps within a process, this type the offset between two. The leader sends
//! the stream's time to its followers, and slowly slews the offset to zero.

use gapless_agent::Now;
use gapless_agent::clock::SLEW_PPM_MAX;
use gapless_agent::fault::mutant;

/// A step is a whole number of nanoseconds.
const SLEW_INTERVAL_NS: u64 = 1_000_000;
/// More is not drift but a wrong clock.
const FAR_NS: u64 = 1_000_000_000;
/// Slew rate for an offset above one second, gone in days instead of years, millionths.
pub const FAR_SLEW_PPM: i64 = 50_000;
/// A received time is too low by the delay of its message, so the greatest offset is kept. It fades because the leader
/// slews its own, and both machines slew their clocks.
const FADING_PPM: i64 = FAR_SLEW_PPM + 4 * SLEW_PPM_MAX;

/// The year 2262.
const TIME_NS_MAX: u64 = i64::MAX as u64;

/// Offset of the stream's time from this machine's clock.
///
/// ```
/// use gapless_agent::Now;
/// use gapless_stream::stream_time::StreamTime;
///
/// const HOUR_NS: u64 = 3_600_000_000_000;
/// let mut time = StreamTime::default();
/// // A leader whose wall clock is an hour ahead of this machine's.
/// assert!(time.observe(5 * HOUR_NS, Now { monotonic_ns: 7, epoch_ns: 4 * HOUR_NS }));
/// // It is lost after a second, and this machine leads: time goes on.
/// let now = Now { monotonic_ns: 1_000_000_007, epoch_ns: 4 * HOUR_NS + 1_000_000_000 };
/// time.lead_after(5 * HOUR_NS);
/// assert_eq!(time.lead(now).epoch_ns, 5 * HOUR_NS + 1_000_000_000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct StreamTime {
    ahead_ns: i64,
    is_known: bool,
    changed_ns: u64,
    /// Time of the last frame, when this machine begins to lead.
    begins_after_ns: Option<u64>,
}

impl StreamTime {
    /// Time of a stream whose last frame is at `last_ns`: on an earlier clock, time continues from there instead of
    /// standing still.
    #[must_use]
    pub const fn after(last_ns: u64) -> Self {
        Self { ahead_ns: 0, is_known: false, changed_ns: 0, begins_after_ns: Some(last_ns) }
    }

    /// Begins to lead after a frame at `last_ns`, as for [`StreamTime::after`].
    pub const fn lead_after(&mut self, last_ns: u64) {
        self.begins_after_ns = Some(last_ns);
        self.is_known = true;
    }

    /// Stream time while this machine leads, slewed towards its clock by [`SLEW_PPM_MAX`], or by [`FAR_SLEW_PPM`] if
    /// more than a second away.
    #[inline]
    pub fn lead(&mut self, now: Now) -> Now {
        if self.ahead_ns != 0 || self.begins_after_ns.is_some() {
            self.slew(now);
        }
        self.is_known = true;
        Now { epoch_ns: now.epoch_ns.saturating_add_signed(self.ahead_ns), ..now }
    }

    #[cold]
    fn slew(&mut self, now: Now) {
        let elapsed_ns = now.monotonic_ns.saturating_sub(self.changed_ns);
        if self.begins_after_ns.is_some() {
            self.ahead_ns = self.ahead_at(now);
            self.begins_after_ns = None;
            self.changed_ns = now.monotonic_ns;
        } else if elapsed_ns >= SLEW_INTERVAL_NS {
            let slew_ppm = if self.ahead_ns.unsigned_abs() > FAR_NS { FAR_SLEW_PPM } else { SLEW_PPM_MAX };
            let step_ns = part_of(elapsed_ns, slew_ppm).min(self.ahead_ns.saturating_abs());
            self.ahead_ns -= self.ahead_ns.signum() * step_ns;
            self.changed_ns = now.monotonic_ns;
        }
    }

    fn ahead_at(&self, now: Now) -> i64 {
        let behind_ns = self.begins_after_ns.map(|last_ns| distance_ns(last_ns, now.epoch_ns));
        behind_ns.map_or(self.ahead_ns, |behind_ns| behind_ns.max(self.ahead_ns))
    }

    /// Takes over the leader's time; `false`, without change, if implausible.
    pub fn observe(&mut self, stream_ns: u64, now: Now) -> bool {
        if stream_ns > TIME_NS_MAX {
            return false;
        }
        let heard_ns = if mutant("believe_own_clock") { 0 } else { distance_ns(stream_ns, now.epoch_ns) };
        let elapsed_ns = now.monotonic_ns.saturating_sub(self.changed_ns);
        self.ahead_ns = if self.is_known {
            heard_ns.max(self.ahead_ns.saturating_sub(part_of(elapsed_ns, FADING_PPM)))
        } else {
            heard_ns
        };
        self.is_known = true;
        self.begins_after_ns = None;
        self.changed_ns = now.monotonic_ns;
        true
    }

    /// Stream time; `None` until this machine has led or heard a leader.
    #[must_use]
    pub fn at(&self, now: Now) -> Option<u64> {
        self.is_known.then(|| now.epoch_ns.saturating_add_signed(self.ahead_at(now)))
    }

    /// Offset from this machine's clock, ns; `None` as for [`StreamTime::at`].
    #[must_use]
    pub fn ahead_ns(&self, now: Now) -> Option<i64> {
        self.is_known.then(|| self.ahead_at(now))
    }
}

fn distance_ns(to_ns: u64, from_ns: u64) -> i64 {
    let distance = i128::from(to_ns) - i128::from(from_ns);
    distance.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

fn part_of(elapsed_ns: u64, ppm: i64) -> i64 {
    i64::try_from(i128::from(elapsed_ns) * i128::from(ppm) / 1_000_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const HOUR: u64 = 3_600 * SECOND;
    const START: Now = Now { monotonic_ns: 5 * SECOND, epoch_ns: 1_700_000_000 * SECOND };

    fn after(passed_ns: u64) -> Now {
        Now { monotonic_ns: START.monotonic_ns + passed_ns, epoch_ns: START.epoch_ns + passed_ns }
    }

    #[test]
    fn defaults_to_local_clock() {
        let mut time = StreamTime::after(START.epoch_ns - 1);
        assert_eq!((time.at(START), time.ahead_ns(START)), (None, None));
        for passed_ns in [0, 1, SECOND, HOUR] {
            assert_eq!(time.lead(after(passed_ns)), after(passed_ns));
        }
        assert_eq!((time.at(after(HOUR)), time.ahead_ns(after(HOUR))), (Some(after(HOUR).epoch_ns), Some(0)));
    }

    fn lead_on(time: &mut StreamTime, pieces: std::ops::Range<u64>, passes_ns: u64) -> u64 {
        let mut before_ns = time.at(after(pieces.start * SECOND / 100)).unwrap();
        for piece in pieces {
            let now_ns = time.lead(after((piece + 1) * SECOND / 100)).epoch_ns;
            assert_eq!(now_ns - before_ns, passes_ns, "in 10 ms");
            before_ns = now_ns;
        }
        before_ns
    }

    #[test]
    fn time_slews_to_a_late_clock() {
        let mut time = StreamTime::default();
        let last_ns = START.epoch_ns + 6 * SECOND;
        time.lead_after(last_ns);
        assert_eq!(time.at(START), Some(last_ns));
        assert_eq!(time.lead(START).epoch_ns, last_ns);
        // 5 s of the offset in 100 s, then the last second in 2,000 s.
        lead_on(&mut time, 0..10_000, SECOND / 100 - 500_000);
        assert_eq!(time.ahead_ns(after(100 * SECOND)), Some(SECOND as i64));
        lead_on(&mut time, 10_000..210_000, SECOND / 100 - 5_000);
        assert_eq!(time.ahead_ns(after(2_100 * SECOND)), Some(0));
        lead_on(&mut time, 210_000..210_100, SECOND / 100);
    }

    #[test]
    fn slew_ignores_polling_rate() {
        let (mut often, mut seldom) = (StreamTime::default(), StreamTime::default());
        for time in [&mut often, &mut seldom] {
            assert!(time.observe(START.epoch_ns - HOUR, START));
        }
        for step in 1..=2_000_000 {
            let _ = often.lead(after(step * 1_000));
        }
        let _ = seldom.lead(after(2 * SECOND));
        assert_eq!(seldom.ahead_ns(START), Some(100_000_000 - HOUR as i64));
        assert_eq!(often.ahead_ns(START), seldom.ahead_ns(START));
    }

    #[test]
    fn least_delayed_message_counts() {
        let mut time = StreamTime::default();
        let delays_ms = [40, 3, 900, 1, 170, 5_000];
        for (second, delay_ms) in delays_ms.into_iter().enumerate() {
            let now = after(second as u64 * SECOND);
            assert!(time.observe(now.epoch_ns + HOUR - delay_ms * 1_000_000, now));
        }
        // The message with 1 ms, less the fading of two seconds.
        assert_eq!(time.ahead_ns(START), Some(HOUR as i64 - 1_000_000 - 2 * 52_000_000));
        for second in 6..1_000 {
            let now = after(second * SECOND);
            assert!(time.observe(now.epoch_ns + HOUR - 10 * SECOND, now));
        }
        assert_eq!(time.ahead_ns(START), Some((HOUR - 10 * SECOND) as i64));
    }

    #[test]
    fn implausible_time_is_ignored() {
        let mut time = StreamTime::default();
        assert!(!time.observe(u64::MAX, START) && !time.observe(TIME_NS_MAX + 1, START));
        assert_eq!(time.ahead_ns(START), None);
        assert!(time.observe(TIME_NS_MAX, START) && time.observe(0, after(HOUR)));
        assert!(time.lead(after(2 * HOUR)).epoch_ns > TIME_NS_MAX - HOUR);
    }
}
