//! `Interceptor`: a hook before and after every call of a caller.

use crate::options::CallOptions;
use crate::outcome::{CallError, Refusal};
use std::time::Duration;

/// A hook around every call of a caller. Interceptors run in the order in which they were added before a call, and in
/// reverse after it. A panic in [`before`](Self::before) refuses the call with a code of [`Refusal::OWN_CODES`]; a
/// panic in [`after`](Self::after) is logged.
pub trait Interceptor: Send + Sync {
    /// Runs before a call is made and may change its options.
    ///
    /// # Errors
    /// The call is not made: its caller gets [`CallError::Refused`].
    fn before(&self, route: &str, options: &mut CallOptions) -> Result<(), Refusal> {
        let _ = (route, options);
        Ok(())
    }

    /// `error` is `None` if there is a reply; `took` is the time since the call was made. `options` are those after all
    /// interceptors, so a key or a header can identify the call.
    fn after(&self, route: &str, options: &CallOptions, error: Option<&CallError>, took: Duration) {
        let _ = (route, options, error, took);
    }
}
