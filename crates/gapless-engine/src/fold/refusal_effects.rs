//! Whether a handler that refuses leaves the state as it was. An event-sourced handler changes the state in place, so what
//! it has changed before it refuses stays changed, and a client was told that nothing happened.

use crate::erased_service::ErasedService;

/// Which calls of handlers are looked at: the state is encoded before each of these, and again if it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckRefusals {
    /// None.
    Never,
    /// The more the smaller the state is: each call while a snapshot has 4 KiB or less, beyond that one for each 4 KiB.
    Sometimes,
    /// Each.
    Always,
}

impl Default for CheckRefusals {
    /// Sometimes in builds with debug assertions, never in others.
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::Sometimes } else { Self::Never }
    }
}

/// So many bytes may be encoded for each call, on average.
const BYTES_PER_CALL: usize = 4096;

/// The state before a call.
#[derive(Default)]
pub(super) struct StateBefore {
    state: Vec<u8>,
    again: Vec<u8>,
    /// Calls until the next that is looked at.
    rest: usize,
    is_taken: bool,
}

impl StateBefore {
    /// A handler of `service` is about to be called.
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

    /// Whether the call that was refused has changed the state; `false` where nobody looked.
    pub fn is_changed(&mut self, service: &dyn ErasedService) -> bool {
        if !std::mem::take(&mut self.is_taken) {
            return false;
        }
        self.again.clear();
        service.snapshot(&mut self.again);
        self.state != self.again
    }
}
