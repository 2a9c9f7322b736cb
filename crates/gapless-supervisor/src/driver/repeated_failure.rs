//! Limits the log lines of a repeated failure to one per second.

use crate::clock::now_ns;
use gapless_agent::wait_notices::WaitNotices;

#[derive(Debug)]
pub struct RepeatedFailure {
    notify_sockets: WaitNotices,
    pub reason: Option<String>,
    last_ns: u64,
}

impl Default for RepeatedFailure {
    fn default() -> Self {
        Self { notify_sockets: WaitNotices::at_once(), reason: None, last_ns: 0 }
    }
}

impl RepeatedFailure {
    /// Reports a failure.
    pub fn record(&mut self, reason: String) {
        self.last_ns = now_ns();
        if self.notify_sockets.take_due(self.last_ns).is_some() {
            tracing::warn!("{reason}");
        }
        self.reason = Some(reason);
    }

    /// Reports that the failure is over.
    pub fn clear(&mut self) {
        self.notify_sockets.end();
        if let Some(reason) = self.reason.take() {
            tracing::warn!("no more: {reason}");
        }
    }

    /// Calls [`RepeatedFailure::clear`] if there was no failure for `quiet_ns`.
    pub fn clear_after(&mut self, quiet_ns: u64) {
        if self.reason.is_some() && now_ns().saturating_sub(self.last_ns) >= quiet_ns {
            self.clear();
        }
    }
}
