//! The generic cell rate algorithm (ITU-T I.371, annex A): one time stamp is its whole state.

/// Rate limit of one publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// Frames a second, on average.
    pub frames_per_s: u32,
    pub burst_frames: u32,
}

/// Counts frames against a [`Throttle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    interval_ns: u64,
    tolerance_ns: u64,
    /// Ahead of now by at most the tolerance.
    due_ns: u64,
}

impl TokenBucket {
    /// Full. Rates and bursts of 0 count as 1.
    #[must_use]
    pub fn new(throttle: Throttle) -> Self {
        let interval_ns = (1_000_000_000 / u64::from(throttle.frames_per_s.max(1))).max(1);
        Self { interval_ns, tolerance_ns: interval_ns * u64::from(throttle.burst_frames.max(1)), due_ns: 0 }
    }

    /// Frames that may be sent at `now_ns`, on a monotonic clock.
    #[inline]
    #[must_use]
    pub fn available(&self, now_ns: u64) -> u64 {
        ((now_ns + self.tolerance_ns).saturating_sub(self.due_ns.max(now_ns))) / self.interval_ns
    }

    /// Takes even more frames than are available: the debt delays later ones.
    #[inline]
    pub fn take(&mut self, frames: u64, now_ns: u64) {
        self.due_ns = self.due_ns.max(now_ns) + frames * self.interval_ns;
    }

    /// Earliest time of the next frame, on the clock of the other calls.
    #[must_use]
    pub const fn next_ns(&self) -> u64 {
        (self.due_ns + self.interval_ns).saturating_sub(self.tolerance_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn burst_passes_then_rate_limits() {
        let mut bucket = TokenBucket::new(Throttle { frames_per_s: 1000, burst_frames: 10 });
        let start = 5 * SECOND;
        assert_eq!(bucket.available(start), 10);
        bucket.take(10, start);
        assert_eq!(bucket.available(start), 0);
        assert_eq!(bucket.next_ns(), start + SECOND / 1000);
        assert_eq!(bucket.available(bucket.next_ns() - 1), 0);
        assert_eq!(bucket.available(bucket.next_ns()), 1);
        assert_eq!(bucket.available(start + 5 * SECOND / 1000), 5);
        assert_eq!(bucket.available(start + SECOND), 10, "the burst is the most that accumulates");
    }

    #[test]
    fn average_rate_holds() {
        let mut bucket = TokenBucket::new(Throttle { frames_per_s: 70_000, burst_frames: 64 });
        let mut sent = 0;
        for now in (0..2 * SECOND).step_by(7919) {
            let frames = bucket.available(now).min(3);
            bucket.take(frames, now);
            sent += frames;
        }
        assert!((139_000..=141_000).contains(&sent), "{sent} frames in two seconds at 70,000 a second");
    }

    #[test]
    fn debt_delays_later_frames() {
        let mut bucket = TokenBucket::new(Throttle { frames_per_s: 1000, burst_frames: 4 });
        bucket.take(100, SECOND);
        assert_eq!(bucket.available(SECOND + 96 * SECOND / 1000), 0);
        assert_eq!(bucket.available(SECOND + 97 * SECOND / 1000), 1);
    }
}
