//! [`StreamTime`]: the time that a sequencer stamps with. It goes on evenly from one leader to the next and over a
//! restart, also where the wall clocks of their machines differ (decision 8).
//!
//! Pure: time comes in as [`Now`]. A [`Clock`](gapless_agent::Clock) bridges jumps of the wall clock while a process
//! runs. This bridges the distance between two processes: the leader knows the distance from this machine's clock to
//! the stream's time, sends it to its followers, and leads it back to nothing slowly.

use gapless_agent::Now;
use gapless_agent::clock::SLEW_PPM_MAX;
use gapless_agent::fault::mutant;

/// The distance is made smaller so often at most, ns: the step is a whole number of nanoseconds.
const SLEW_INTERVAL_NS: u64 = 1_000_000;
/// A distance that is greater than this was no drift but a clock that was wrong, ns.
const FAR_NS: u64 = 1_000_000_000;
/// It is led back faster, so that it is gone after days and not after years, millionths.
pub const FAR_SLEW_PPM: i64 = 50_000;
/// The received time is too low by the delay of its message, so the greatest distance counts; and as the leader slews
/// its own, and both clocks theirs, each second takes so much off it, millionths.
const FADING_PPM: i64 = FAR_SLEW_PPM + 4 * SLEW_PPM_MAX;

/// Nobody's clock says more, ns since the epoch: the year 2262.
const TIME_NS_MAX: u64 = i64::MAX as u64;

/// How far the stream's time is ahead of this machine's clock.
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
/// time.begin_to_lead_behind(5 * HOUR_NS);
/// assert_eq!(time.lead(now).epoch_ns, 5 * HOUR_NS + 1_000_000_000);
/// ```
#[derive(Clone, Debug, Default)]
pub struct StreamTime {
    ahead_ns: i64,
    /// Whether a leader sent it, or this machine has led with it.
    is_known: bool,
    /// Monotonic time at which the distance was last changed.
    changed_ns: u64,
    /// The time of the last frame, as this machine begins to lead.
    begins_behind_ns: Option<u64>,
}

impl StreamTime {
    /// Of a stream whose last frame is of `last_ns`. Where this machine leads from the beginning and its clock is
    /// earlier than that frame, time goes on from there, and does not stand still until the clock is as far.
    #[must_use]
    pub const fn after(last_ns: u64) -> Self {
        Self { ahead_ns: 0, is_known: false, changed_ns: 0, begins_behind_ns: Some(last_ns) }
    }

    /// From now on this machine leads, after a frame of `last_ns`, as for [`StreamTime::after`].
    pub const fn begin_to_lead_behind(&mut self, last_ns: u64) {
        self.begins_behind_ns = Some(last_ns);
        self.is_known = true;
    }

    /// The time of the stream, where this machine leads. It leans towards this machine's clock by [`SLEW_PPM_MAX`], and by
    /// [`FAR_SLEW_PPM`] as long as it is more than a second away.
    #[inline]
    pub fn lead(&mut self, now: Now) -> Now {
        if self.ahead_ns != 0 || self.begins_behind_ns.is_some() {
            self.go_on(now);
        }
        self.is_known = true;
        Now { epoch_ns: now.epoch_ns.saturating_add_signed(self.ahead_ns), ..now }
    }

    #[cold]
    fn go_on(&mut self, now: Now) {
        let elapsed_ns = now.monotonic_ns.saturating_sub(self.changed_ns);
        if self.begins_behind_ns.is_some() {
            self.ahead_ns = self.ahead_at(now);
            self.begins_behind_ns = None;
            self.changed_ns = now.monotonic_ns;
        } else if elapsed_ns >= SLEW_INTERVAL_NS {
            let slew_ppm = if self.ahead_ns.unsigned_abs() > FAR_NS { FAR_SLEW_PPM } else { SLEW_PPM_MAX };
            let step_ns = part_of(elapsed_ns, slew_ppm).min(self.ahead_ns.saturating_abs());
            self.ahead_ns -= self.ahead_ns.signum() * step_ns;
            self.changed_ns = now.monotonic_ns;
        }
    }

    fn ahead_at(&self, now: Now) -> i64 {
        let behind_ns = self.begins_behind_ns.map(|last_ns| distance_ns(last_ns, now.epoch_ns));
        behind_ns.map_or(self.ahead_ns, |behind_ns| behind_ns.max(self.ahead_ns))
    }

    /// The leader has said that it is `stream_ns`. `false` if it never is, and then nothing has changed.
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
        self.begins_behind_ns = None;
        self.changed_ns = now.monotonic_ns;
        true
    }

    /// The stream's time; `None` as long as nobody has led or sent it.
    #[must_use]
    pub fn at(&self, now: Now) -> Option<u64> {
        self.is_known.then(|| now.epoch_ns.saturating_add_signed(self.ahead_at(now)))
    }

    /// How far it is ahead of this machine's clock, ns; `None` as [`StreamTime::at`].
    #[must_use]
    pub fn ahead_ns(&self, now: Now) -> Option<i64> {
        self.is_known.then(|| self.ahead_at(now))
    }
}

/// From `from_ns` to `to_ns`, as far as that fits.
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
    fn without_another_time_it_is_this_machines() {
        let mut time = StreamTime::after(START.epoch_ns - 1);
        assert_eq!((time.at(START), time.ahead_ns(START)), (None, None));
        for passed_ns in [0, 1, SECOND, HOUR] {
            assert_eq!(time.lead(after(passed_ns)), after(passed_ns));
        }
        assert_eq!((time.at(after(HOUR)), time.ahead_ns(after(HOUR))), (Some(after(HOUR).epoch_ns), Some(0)));
    }

    /// Leads for so many pieces of 10 ms, in each of which so much time passes.
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
    fn a_clock_that_is_behind_the_last_frame_is_reached_slowly_and_time_never_stands_still() {
        let mut time = StreamTime::default();
        let last_ns = START.epoch_ns + 6 * SECOND;
        time.begin_to_lead_behind(last_ns);
        assert_eq!(time.at(START), Some(last_ns));
        assert_eq!(time.lead(START).epoch_ns, last_ns);
        // 5 s of them in 100 s, then the last one in 2,000 s.
        lead_on(&mut time, 0..10_000, SECOND / 100 - 500_000);
        assert_eq!(time.ahead_ns(after(100 * SECOND)), Some(SECOND as i64));
        lead_on(&mut time, 10_000..210_000, SECOND / 100 - 5_000);
        assert_eq!(time.ahead_ns(after(2_100 * SECOND)), Some(0));
        lead_on(&mut time, 210_000..210_100, SECOND / 100);
    }

    #[test]
    fn often_asked_it_is_slewed_as_fast() {
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
    fn of_what_is_heard_what_was_under_way_the_shortest_counts() {
        let mut time = StreamTime::default();
        let delays_ms = [40, 3, 900, 1, 170, 5_000];
        for (second, delay_ms) in delays_ms.into_iter().enumerate() {
            let now = after(second as u64 * SECOND);
            assert!(time.observe(now.epoch_ns + HOUR - delay_ms * 1_000_000, now));
        }
        // The one with 1 ms, less what has faded in two seconds.
        assert_eq!(time.ahead_ns(START), Some(HOUR as i64 - 1_000_000 - 2 * 52_000_000));
        // Another leader goes on with it, and is believed also where it says less.
        for second in 6..1_000 {
            let now = after(second * SECOND);
            assert!(time.observe(now.epoch_ns + HOUR - 10 * SECOND, now));
        }
        assert_eq!(time.ahead_ns(START), Some((HOUR - 10 * SECOND) as i64));
    }

    #[test]
    fn a_time_that_never_is_changes_nothing() {
        let mut time = StreamTime::default();
        assert!(!time.observe(u64::MAX, START) && !time.observe(TIME_NS_MAX + 1, START));
        assert_eq!(time.ahead_ns(START), None);
        assert!(time.observe(TIME_NS_MAX, START) && time.observe(0, after(HOUR)));
        assert!(time.lead(after(2 * HOUR)).epoch_ns > TIME_NS_MAX - HOUR);
    }
}
