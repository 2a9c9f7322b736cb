//! [`RetryBackoff`]: growing pauses between attempts at the same thing.

const FIRST_NS: u64 = 100_000_000;
const LONGEST_NS: u64 = 30_000_000_000;
/// Holding for so long resets the pause.
const HELD_NS: u64 = 60_000_000_000;

#[derive(Debug, Default)]
pub(super) struct RetryBackoff {
    length_ns: u64,
    due_ns: Option<u64>,
    tried_ns: u64,
}

impl RetryBackoff {
    pub(super) fn fail(&mut self, now_ns: u64) {
        if self.due_ns.is_some() {
            return;
        }
        let has_held = now_ns.saturating_sub(self.tried_ns) >= HELD_NS;
        self.length_ns = if self.length_ns == 0 || has_held { FIRST_NS } else { (self.length_ns * 2).min(LONGEST_NS) };
        self.due_ns = Some(now_ns + self.length_ns);
    }

    pub(super) fn take_due(&mut self, now_ns: u64) -> bool {
        let is_due = self.due_ns.take_if(|due_ns| *due_ns <= now_ns).is_some();
        if is_due {
            self.tried_ns = now_ns;
        }
        is_due
    }

    pub(super) const fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_it_holds() {
        let (mut backoff, mut now_ns) = (RetryBackoff::default(), 1_000);
        assert!(!backoff.take_due(u64::MAX));
        let mut lengths = Vec::new();
        for _ in 0..11 {
            backoff.fail(now_ns);
            let due_ns = backoff.due_ns().unwrap();
            lengths.push((due_ns - now_ns) / 1_000_000);
            backoff.fail(now_ns + 1);
            assert_eq!(backoff.due_ns(), Some(due_ns), "a second word about the same failure");
            assert!(!backoff.take_due(due_ns - 1) && backoff.take_due(due_ns) && !backoff.take_due(due_ns));
            now_ns = due_ns;
        }
        assert_eq!(lengths, [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
        backoff.fail(now_ns + HELD_NS);
        assert_eq!(backoff.due_ns(), Some(now_ns + HELD_NS + FIRST_NS));
    }
}
