//! What looks at calls, before and after: [`Interceptor`] at the caller, [`ServerInterceptor`] where the route is served.

pub use crate::caller::Interceptor;
pub use crate::served::interceptor::{HandlerOutcome, ServerInterceptor};
