//! Check that a refusing handler leaves the state unchanged: handlers of event-sourced services change it in place.

use crate::erased_service::ErasedService;

/// Calls that are checked: the state is encoded before each, and again after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckRefusals {
    Never,
    /// A share that falls with the size of a snapshot: each call up to 4 KiB, above that one call per 4 KiB.
    Sometimes,
    Always,
}

impl Default for CheckRefusals {
    /// `Sometimes` with debug assertions, else `Never`.
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::Sometimes } else { Self::Never }
    }
}

const BYTES_PER_CALL: usize = 4096;

#[derive(Default)]
pub(super) struct SavedState {
    state: Vec<u8>,
    state_after: Vec<u8>,
    calls_until_check: usize,
    is_saved: bool,
}

impl SavedState {
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

    pub fn is_changed(&mut self, service: &dyn ErasedService) -> bool {
        if !std::mem::take(&mut self.is_saved) {
            return false;
        }
        self.state_after.clear();
        service.snapshot(&mut self.state_after);
        self.state != self.state_after
    }
}
