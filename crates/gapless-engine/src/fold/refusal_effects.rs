//! Check that a refusing handler leaves the state unchanged. An event-sourced handler changes the state in place:
//! changes before the refusal remain, although the client is told that nothing happened.

use crate::erased_service::ErasedService;

/// Calls that are checked. The state is encoded before each of them, and again after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckRefusals {
    /// Checks no call.
    Never,
    /// A share that falls with the size of a snapshot: each call up to 4 KiB, above that one call per 4 KiB.
    Sometimes,
    /// Checks every call.
    Always,
}

impl Default for CheckRefusals {
    /// Returns `Sometimes` with debug assertions, else `Never`.
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::Sometimes } else { Self::Never }
    }
}

/// Average number of bytes to encode per call.
const BYTES_PER_CALL: usize = 4096;

#[derive(Default)]
pub(super) struct SavedState {
    state: Vec<u8>,
    state_after: Vec<u8>,
    /// Unchecked calls until the next check.
    calls_until_check: usize,
    is_saved: bool,
}

impl SavedState {
    /// Captures the state, if due, before a handler of `service` is called.
    #[inline]
    pub fn take(&mut self, how: CheckRefusals, service: &dyn ErasedService) {
        if how != CheckRefusals::Never {
            self.take_if_due(how, service);
        }
    }

    #[cold]
    fn take_if_due(&mut self, how: CheckRefusals, service: &dyn ErasedService) {
        self.is_saved = how == CheckRefusals::Always || self.calls_until_check == 0;
        if !self.is_saved {
            self.calls_until_check -= 1;
            return;
        }
        self.state.clear();
        service.snapshot(&mut self.state);
        self.calls_until_check = self.state.len() / BYTES_PER_CALL;
    }

    /// Tells whether the refused call has changed the state; `false` if it was not checked.
    pub fn is_changed(&mut self, service: &dyn ErasedService) -> bool {
        if !std::mem::take(&mut self.is_saved) {
            return false;
        }
        self.state_after.clear();
        service.snapshot(&mut self.state_after);
        self.state != self.state_after
    }
}
