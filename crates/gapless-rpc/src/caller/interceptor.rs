//! [`Interceptor`]: what looks at every call of a caller, before and after.

use crate::options::CallOptions;
use crate::outcome::{CallError, Refusal};
use std::time::Duration;

/// Looks at every call of a caller. Several are asked in the order in which they were added, and in the opposite order afterwards.
pub trait Interceptor: Send + Sync {
    /// A call is about to be made; its options may be changed.
    ///
    /// # Errors
    /// The call is not made: its caller gets [`CallError::Refused`].
    fn before(&self, route: &str, options: &mut CallOptions) -> Result<(), Refusal> {
        let _ = (route, options);
        Ok(())
    }

    /// A call has ended, `took` after it was made; `error` is how, if it has no reply.
    fn after(&self, route: &str, error: Option<&CallError>, took: Duration) {
        let _ = (route, error, took);
    }
}
