//! Limit on catch-up traffic. Live traffic comes first: catching up may use a quarter more than the published bytes, so
//! that a gap shrinks at every rate, or some tens of MiB a second if that is more; without live traffic there is no
//! limit. A token bucket on the caller's time.

const BYTES_PER_S_MIN: u64 = 96 << 20;
const PERIOD_NS: u64 = 2_000_000;
/// Live traffic counts as ended: longer than publishers may wait for a processor.
const QUIET_NS: u64 = 20_000_000;
/// Pause of the caller after which it may have missed publications, ns.
const PAUSE_NS_MIN: u64 = 500_000;
const SAVED_BYTES_MAX: i64 = 4 << 20;

#[derive(Debug, Default)]
pub struct CatchUpBudget {
    /// Negative if the last piece was longer.
    left_bytes: i64,
    filled_ns: u64,
    checked_ns: u64,
    live_bytes: u64,
    live_ns: Option<u64>,
}

impl CatchUpBudget {
    /// 0 while the window has no room.
    pub fn note_live(&mut self, bytes: usize, now_ns: u64) {
        self.live_bytes += bytes as u64;
        self.live_ns = Some(now_ns);
    }

    pub fn has_budget(&mut self, now_ns: u64) -> bool {
        let pause_ns = now_ns.saturating_sub(std::mem::replace(&mut self.checked_ns, now_ns));
        if pause_ns >= PAUSE_NS_MIN {
            self.live_ns = self.live_ns.map(|at_ns| (at_ns + pause_ns).min(now_ns));
        }
        let is_quiet = self.live_ns.is_none_or(|at_ns| now_ns.saturating_sub(at_ns) >= QUIET_NS);
        if is_quiet {
            self.left_bytes = SAVED_BYTES_MAX;
            return true;
        }
        let elapsed_ns = now_ns.saturating_sub(self.filled_ns).min(1_000_000_000);
        if elapsed_ns >= PERIOD_NS {
            self.filled_ns = now_ns;
            let live_bytes = std::mem::take(&mut self.live_bytes);
            let more_bytes = (live_bytes + live_bytes / 4).max(BYTES_PER_S_MIN * elapsed_ns / 1_000_000_000);
            self.left_bytes = self.left_bytes.saturating_add_unsigned(more_bytes).min(SAVED_BYTES_MAX);
        }
        self.left_bytes > 0
    }

    pub fn spend(&mut self, bytes: usize) {
        self.left_bytes = self.left_bytes.saturating_sub_unsigned(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = 256 << 10;
    const TURN_NS: u64 = 50_000;

    fn sent_in_a_second(live_bytes: usize) -> u64 {
        let (mut budget, mut sent, mut now_ns) = (CatchUpBudget::default(), 0, 1);
        for _ in 0..1_000_000_000 / TURN_NS {
            now_ns += TURN_NS;
            if live_bytes > 0 {
                budget.note_live(live_bytes, now_ns);
            }
            if budget.has_budget(now_ns) {
                budget.spend(PIECE);
                sent += PIECE as u64;
            }
        }
        sent
    }

    #[test]
    fn gap_shrinks_at_every_rate() {
        for live_bytes in [10, 1_000, 6_000, 20_000] {
            let live = live_bytes as u64 * (1_000_000_000 / TURN_NS);
            let sent = sent_in_a_second(live_bytes);
            let due = (live + live / 4).max(BYTES_PER_S_MIN);
            assert!(sent > live, "{sent} of {live} live bytes: the gap grows");
            assert!(sent.abs_diff(due) < due / 20, "{sent} were sent, {due} may be");
        }
    }

    #[test]
    fn no_limit_without_live_traffic() {
        assert_eq!(sent_in_a_second(0), PIECE as u64 * (1_000_000_000 / TURN_NS));
        let mut budget = CatchUpBudget::default();
        budget.note_live(1, TURN_NS);
        budget.spend(1 << 30);
        let quiet_ns = (1..).map(|turn| turn * TURN_NS).find(|now_ns| budget.has_budget(*now_ns));
        assert_eq!(quiet_ns, Some(TURN_NS + QUIET_NS));
    }

    #[test]
    fn own_pause_is_not_quiet_traffic() {
        let mut budget = CatchUpBudget::default();
        assert!(budget.has_budget(TURN_NS));
        budget.note_live(1, TURN_NS);
        budget.spend(1 << 30);
        assert!(!budget.has_budget(TURN_NS + 10 * QUIET_NS));
        budget.note_live(0, TURN_NS + 10 * QUIET_NS);
        assert!(!budget.has_budget(2 * TURN_NS + 10 * QUIET_NS));
    }
}
