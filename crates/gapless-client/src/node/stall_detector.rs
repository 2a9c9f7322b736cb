//! Detects that nothing comes back although frames are in flight: the node's link is reliable, but a relay's upstream
//! may lose frames.

pub(super) struct StallDetector {
    /// Last number known to have arrived, at the last check.
    accepted: u64,
    since_ns: u64,
    /// Doubled while nothing comes back.
    interval_ns: u64,
    interval_ns_min: u64,
    /// Time until which the stream takes nothing, ns.
    held_until_ns: u64,
    looks: u32,
}

const BACKOFF_MAX: u64 = 4096;
const HELD_INTERVALS_MAX: u64 = 64;
/// Looks for one reading of the clock.
const LOOKS_PER_CLOCK: u32 = 256;

impl StallDetector {
    pub const fn new(interval_ns: u64) -> Self {
        let interval_ns_min = if interval_ns == 0 { 1 } else { interval_ns };
        let (accepted, since_ns, held_until_ns, looks) = (u64::MAX, 0, 0, 0);
        Self { accepted, since_ns, interval_ns: interval_ns_min, interval_ns_min, held_until_ns, looks }
    }

    /// Whether to read the clock and call [`StallDetector::take_due_question`].
    #[inline]
    pub const fn take_clock_check(&mut self) -> bool {
        self.looks = self.looks.wrapping_add(1);
        self.looks.is_multiple_of(LOOKS_PER_CLOCK)
    }

    /// Makes the next look due.
    #[inline]
    pub const fn note_slept(&mut self) {
        self.looks = u32::MAX;
    }

    /// Whether to ask now, when numbers up to `accepted` have arrived and later ones are in flight. The interval
    /// doubles until there is progress.
    pub fn take_due_question(&mut self, accepted: u64, now_ns: u64) -> bool {
        if accepted != self.accepted {
            self.accepted = accepted;
            self.since_ns = now_ns;
            self.interval_ns = self.interval_ns_min;
            return false;
        }
        let is_due = now_ns.saturating_sub(self.since_ns.max(self.held_until_ns)) >= self.interval_ns;
        if is_due {
            self.since_ns = now_ns;
            self.interval_ns = (self.interval_ns * 2).min(self.interval_ns_min.saturating_mul(BACKOFF_MAX));
        }
        is_due
    }

    /// Notes that the stream takes nothing from this node for `wait_ns`.
    pub fn hold(&mut self, wait_ns: u64, now_ns: u64) {
        // `wait_ns` may come from another machine's clock.
        self.held_until_ns = now_ns + wait_ns.min(self.interval_ns_min.saturating_mul(HELD_INTERVALS_MAX));
    }

    /// Notes that the stream takes messages again: restarts the interval at the next look, and leaves `held_until_ns`.
    pub const fn release(&mut self) {
        self.accepted = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn asked(stall: &mut StallDetector, accepted: u64, from_ms: u64, until_ms: u64) -> Vec<u64> {
        (from_ms..until_ms).filter(|ms| stall.take_due_question(accepted, ms * MS)).collect()
    }

    #[test]
    fn questions_back_off_until_progress() {
        let mut stall = StallDetector::new(20 * MS);
        assert_eq!(asked(&mut stall, 0, 0, 700), [20, 60, 140, 300, 620]);
        assert_eq!(asked(&mut stall, 3, 700, 770), [720, 760], "some progress, then a stall");
        assert_eq!(asked(&mut stall, 3, 770, 2_000_000).len(), 33, "finally every 82 seconds");
        stall.release();
        assert_eq!(asked(&mut stall, 3, 2_000_000, 2_000_070), [2_000_020, 2_000_060]);
    }

    #[test]
    fn held_detector_waits() {
        let mut stall = StallDetector::new(20 * MS);
        assert!(asked(&mut stall, 5, 0, 10).is_empty());
        stall.hold(500 * MS, 10 * MS);
        assert_eq!(asked(&mut stall, 5, 10, 600), [530, 570]);
        stall.hold(u64::MAX, 600 * MS);
        assert_eq!(asked(&mut stall, 6, 600, 1_930), [1_900], "bounded, whatever the other clock says");
    }

    #[test]
    fn clock_is_read_rarely_or_after_sleep() {
        let mut stall = StallDetector::new(20 * MS);
        assert_eq!((0..2_560).filter(|_| stall.take_clock_check()).count(), 10);
        stall.take_clock_check();
        stall.note_slept();
        assert!(stall.take_clock_check() && !stall.take_clock_check());
    }
}
