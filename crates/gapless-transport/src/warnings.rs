//! Limits warnings that a peer can provoke to one a second.

use rustix::time::{ClockId, clock_gettime};

const INTERVAL_NS: u64 = 1_000_000_000;

/// Time of the next warning, and the number suppressed since the last one.
#[derive(Debug, Default)]
pub struct Warnings {
    next_ns: u64,
    left_out: u64,
}

impl Warnings {
    pub fn warn(&mut self, now_ns: u64, text: impl FnOnce() -> String) {
        if let Some(left_out) = self.is_due(now_ns) {
            tracing::warn!(left_out, "{}", text());
        }
    }

    fn is_due(&mut self, now_ns: u64) -> Option<u64> {
        if now_ns < self.next_ns {
            self.left_out += 1;
            return None;
        }
        self.next_ns = now_ns + INTERVAL_NS;
        Some(std::mem::take(&mut self.left_out))
    }

    /// Like [`Warnings::warn`], for callers without a clock: uses the machine's monotonic one.
    pub fn warn_now(&mut self, text: impl FnOnce() -> String) {
        let now = clock_gettime(ClockId::Monotonic);
        self.warn(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64, text);
    }
}

#[cfg(test)]
mod tests {
    use super::{INTERVAL_NS, Warnings};

    #[test]
    fn one_warning_a_second_others_counted() {
        let mut warnings = Warnings::default();
        let times = [5, 6, 7, INTERVAL_NS + 4, INTERVAL_NS + 5, INTERVAL_NS + 6];
        let told = times.map(|now_ns| warnings.is_due(now_ns));
        assert_eq!(told, [Some(0), None, None, None, Some(3), None]);
        assert_eq!(warnings.left_out, 1);
    }
}
