//! `PollBackoff`: poll times with growing intervals.

const FIRST_NS: u64 = 1_000_000;

/// Next time of a poll whose interval grows.
#[derive(Clone, Copy, Debug)]
pub struct PollBackoff {
    /// Monotonic, ns.
    pub next_ns: u64,
    pause_ns: u64,
    longest_ns: u64,
}

impl PollBackoff {
    /// Due now; no interval exceeds `longest_ns`.
    pub const fn new(now_ns: u64, longest_ns: u64) -> Self {
        Self { next_ns: now_ns, pause_ns: FIRST_NS, longest_ns }
    }

    /// Starts over: due now.
    pub const fn reset(&mut self, now_ns: u64) {
        (self.next_ns, self.pause_ns) = (now_ns, FIRST_NS);
    }

    /// Whether the poll is due; then the next interval begins.
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        if now_ns < self.next_ns {
            return false;
        }
        self.pause_ns = (self.pause_ns + self.pause_ns / 4).min(self.longest_ns);
        self.next_ns = now_ns + self.pause_ns;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_limit() {
        let mut backoff = PollBackoff::new(10, 3_000_000);
        let poll_intervals = |backoff: &mut PollBackoff, count: usize| {
            let look = |_| {
                let now_ns = backoff.next_ns;
                assert!(now_ns == 0 || !backoff.is_due(now_ns - 1));
                assert!(backoff.is_due(now_ns));
                backoff.next_ns - now_ns
            };
            (0..count).map(look).collect::<Vec<_>>()
        };
        let found = poll_intervals(&mut backoff, 6);
        assert_eq!(found, [1_250_000, 1_562_500, 1_953_125, 2_441_406, 3_000_000, 3_000_000]);
        backoff.reset(7);
        assert_eq!((backoff.next_ns, poll_intervals(&mut backoff, 1)[0]), (7, 1_250_000));
    }
}
