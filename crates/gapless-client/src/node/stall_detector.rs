//! [`StallDetector`]: notices that nothing comes back although frames are in flight. The node's own link loses nothing
//! here, but above a relay there is another link, which may: perhaps one by UDP. No I/O.

/// When to ask for the fate of the frames sent last.
pub(super) struct StallDetector {
    /// The last frame known to be there at the last look.
    accepted: u64,
    /// Since when nothing more came, or when it was last asked, ns.
    since_ns: u64,
    /// Asked after so long, ns; doubled while nothing comes back.
    interval_ns: u64,
    interval_ns_min: u64,
    /// The stream has said that it takes nothing until then, ns.
    held_until_ns: u64,
    looks: u32,
}

/// The interval is doubled so often.
const BACKOFF_MAX: u64 = 4096;
/// The stream is believed to take nothing for so many intervals at most.
const HELD_INTERVALS_MAX: u64 = 64;
/// The clock is asked in one of so many looks.
const LOOKS_PER_CLOCK: u32 = 256;

impl StallDetector {
    pub const fn new(interval_ns: u64) -> Self {
        let interval_ns_min = if interval_ns == 0 { 1 } else { interval_ns };
        let (accepted, since_ns, held_until_ns, looks) = (u64::MAX, 0, 0, 0);
        Self { accepted, since_ns, interval_ns: interval_ns_min, interval_ns_min, held_until_ns, looks }
    }

    /// Counts a look; whether it is worth the time to ask the clock, and then [`StallDetector::take_due_question`].
    #[inline]
    pub const fn take_due_look(&mut self) -> bool {
        self.looks = self.looks.wrapping_add(1);
        self.looks.is_multiple_of(LOOKS_PER_CLOCK)
    }

    /// The node has slept: the next look is due.
    #[inline]
    pub const fn note_slept(&mut self) {
        self.looks = u32::MAX;
    }

    /// Frames up to `accepted` are known to be there, and later ones are on their way: whether to ask now. The next
    /// time is then due after twice as long, until something comes back.
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

    /// The stream takes nothing of this node for `wait_ns`, and sent frames wait there.
    pub fn hold(&mut self, wait_ns: u64, now_ns: u64) {
        // How long that is, another machine's clock may have said.
        self.held_until_ns = now_ns + wait_ns.min(self.interval_ns_min.saturating_mul(HELD_INTERVALS_MAX));
    }

    /// The stream takes messages again after it did not.
    pub const fn release(&mut self) {
        // The next look begins anew.
        self.accepted = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// When it is asked within `until_ns`, with a look each ms.
    fn asked(stall: &mut StallDetector, accepted: u64, from_ms: u64, until_ms: u64) -> Vec<u64> {
        (from_ms..until_ms).filter(|ms| stall.take_due_question(accepted, ms * MS)).collect()
    }

    #[test]
    fn it_is_asked_seldom_and_soon_again_after_progress() {
        let mut stall = StallDetector::new(20 * MS);
        assert_eq!(asked(&mut stall, 0, 0, 700), [20, 60, 140, 300, 620]);
        assert_eq!(asked(&mut stall, 3, 700, 770), [720, 760], "some came back, then no more did");
        assert_eq!(asked(&mut stall, 3, 770, 2_000_000).len(), 33, "in the end each 82 seconds");
        stall.release();
        assert_eq!(asked(&mut stall, 3, 2_000_000, 2_000_070), [2_000_020, 2_000_060]);
    }

    #[test]
    fn who_is_throttled_waits() {
        let mut stall = StallDetector::new(20 * MS);
        assert!(asked(&mut stall, 5, 0, 10).is_empty());
        stall.hold(500 * MS, 10 * MS);
        assert_eq!(asked(&mut stall, 5, 10, 600), [530, 570]);
        stall.hold(u64::MAX, 600 * MS);
        assert_eq!(asked(&mut stall, 6, 600, 1_930), [1_900], "not for ever, whatever the other clock says");
    }

    #[test]
    fn the_clock_is_asked_now_and_then_and_after_a_sleep() {
        let mut stall = StallDetector::new(20 * MS);
        assert_eq!((0..2_560).filter(|_| stall.take_due_look()).count(), 10);
        stall.take_due_look();
        stall.note_slept();
        assert!(stall.take_due_look() && !stall.take_due_look());
    }
}
