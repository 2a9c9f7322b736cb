//! Tracing of calls across processes: the W3C trace, the `tracing` spans of both sides, and the scope that nested calls
//! inherit. Independent of the transport of calls.
//!
//! | module | what lives there |
//! |---|---|
//! | `spans` | [`CallSpan`] and [`ServedSpan`]: a span for each call, and for each run of a handler |
//! | `bridge` | [`TraceBridge`]: the ids of spans in another tracing system |
//! | `scope` | [`CallScope`]: the context that nested calls inherit |
//! | `context` | [`TraceContext`]: W3C's `traceparent` and `tracestate` |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod bridge;
mod context;
mod scope;
mod spans;

pub use bridge::{TraceBridge, set_trace_bridge};
pub use context::{TraceContext, TraceParentError};
pub use scope::{CallScope, InheritedContext};
pub use spans::{CallSpan, PANICKED, ServedCall, ServedSpan, are_recorded};
