//! [`Warnings`]: what others can provoke is logged at most once a second.

/// Between two warnings, ns.
const INTERVAL_NS: u64 = 1_000_000_000;

/// The last warning, and how many were left out since.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    next_ns: u64,
    left_out: u64,
}

impl Warnings {
    /// Logs what `text` says, unless something was logged just now.
    pub(super) fn warn(&mut self, now_ns: u64, text: impl FnOnce() -> String) {
        if now_ns < self.next_ns {
            self.left_out += 1;
            return;
        }
        tracing::warn!(left_out = self.left_out, "{}", text());
        (self.next_ns, self.left_out) = (now_ns + INTERVAL_NS, 0);
    }
}
