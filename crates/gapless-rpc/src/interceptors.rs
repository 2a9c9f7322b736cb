//! Hooks before and after calls: [`Interceptor`] at the caller, [`ServerInterceptor`] at the serving instance.

pub use crate::caller::Interceptor;
pub use crate::server::interceptor::{HandlerOutcome, ServerInterceptor};
