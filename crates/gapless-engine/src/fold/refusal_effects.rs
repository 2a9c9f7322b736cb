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
pub(super) struct StateBefore {
    state: Vec<u8>,
    again: Vec<u8>,
    /// Unchecked calls until the next check.
    rest: usize,
    is_taken: bool,
}

impl StateBefore {
    /// Captures the state, if due, before a handler of `service` is called.
    #[inline]
    pub fn take(&mut self, how: CheckRefusals, service: &dyn ErasedService) {
        if how != CheckRefusals::Never {
            self.take_if_due(how, service);
        }
    }

    #[cold]
    fn take_if_due(&mut self, how: CheckRefusals, service: &dyn ErasedService) {
        self.is_taken = how == CheckRefusals::Always || self.rest == 0;
        if !self.is_taken {
            self.rest -= 1;
            return;
        }
        self.state.clear();
        service.snapshot(&mut self.state);
        self.rest = self.state.len() / BYTES_PER_CALL;
    }

    /// Tells whether the refused call has changed the state; `false` if it was not checked.
    pub fn is_changed(&mut self, service: &dyn ErasedService) -> bool {
        if !std::mem::take(&mut self.is_taken) {
            return false;
        }
        self.again.clear();
        service.snapshot(&mut self.again);
        self.state != self.again
    }
}
