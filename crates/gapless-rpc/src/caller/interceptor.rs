//! [`Interceptor`]: what looks at every call of a caller, before and after.

use crate::options::CallOptions;
use crate::outcome::{CallError, Refusal};
use std::time::Duration;

/// Looks at every call of a caller. Several are asked in the order in which they were added, and in the opposite order afterwards. One that
/// panics in [`before`](Self::before) refuses the call with a code of [`Refusal::OWN_CODES`]; a panic in [`after`](Self::after) is logged.
pub trait Interceptor: Send + Sync {
    /// A call is about to be made; its options may be changed.
    ///
    /// # Errors
    /// The call is not made: its caller gets [`CallError::Refused`].
    fn before(&self, route: &str, options: &mut CallOptions) -> Result<(), Refusal> {
        let _ = (route, options);
        Ok(())
    }

    /// A call has ended, `took` after it was made; `error` is how, if it has no reply. `options` are those that it was made with, as all
    /// interceptors have changed them: a key or a header says which call it was.
    fn after(&self, route: &str, options: &CallOptions, error: Option<&CallError>, took: Duration) {
        let _ = (route, options, error, took);
    }
}
