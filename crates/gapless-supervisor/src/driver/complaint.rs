//! [`Complaint`]: what fails at each look is logged once a second at most, and so is its end.

use crate::clock::now_ns;
use gapless_agent::wait_notices::WaitNotices;

/// What fails at each look.
#[derive(Debug)]
pub struct Complaint {
    notices: WaitNotices,
    /// Why a look has failed; none once that is over.
    pub reason: Option<String>,
    last_ns: u64,
}

impl Default for Complaint {
    fn default() -> Self {
        Self { notices: WaitNotices::at_once(), reason: None, last_ns: 0 }
    }
}

impl Complaint {
    /// A look has failed.
    pub fn again(&mut self, reason: String) {
        self.last_ns = now_ns();
        if self.notices.take_due(self.last_ns).is_some() {
            tracing::warn!("{reason}");
        }
        self.reason = Some(reason);
    }

    /// No look fails any more.
    pub fn end(&mut self) {
        self.notices.end();
        if let Some(reason) = self.reason.take() {
            tracing::warn!("no more: {reason}");
        }
    }

    /// The same, once no look has failed for so long.
    pub fn end_after(&mut self, quiet_ns: u64) {
        if self.reason.is_some() && now_ns().saturating_sub(self.last_ns) >= quiet_ns {
            self.end();
        }
    }
}
