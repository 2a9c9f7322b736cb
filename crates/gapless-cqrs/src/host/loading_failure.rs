//! [`LoadingFailure`]: tells after failed loads when the next attempt is due, and when to log.

use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::wait_notices::WaitNotices;
use std::fmt::Display;
use std::time::Duration;

pub(super) const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

pub(super) struct LoadingFailure {
    notices: WaitNotices,
    retry_at_ns: Option<u64>,
}

impl LoadingFailure {
    pub const fn none() -> Self {
        Self { notices: WaitNotices::at_once(), retry_at_ns: None }
    }

    /// Notes a failed attempt.
    #[cold]
    pub fn begin(&mut self, error: &dyn Display) {
        let now_ns = monotonic_ns();
        self.retry_at_ns = Some(now_ns + PAUSE_AFTER_FAILURE.as_nanos() as u64);
        if let Some(waited) = self.notices.take_due(now_ns) {
            tracing::error!(waited_s = waited.as_secs(), "aggregates that are not in memory wait: {error}");
        }
    }

    /// The next attempt is not due yet.
    pub fn is_pausing(&self) -> bool {
        self.retry_at_ns.is_some_and(|at_ns| monotonic_ns() < at_ns)
    }

    /// Notes a successful attempt.
    pub fn end(&mut self) {
        if self.retry_at_ns.take().is_some() {
            self.notices.end();
            tracing::info!("aggregates that are not in memory are loaded again");
        }
    }
}
