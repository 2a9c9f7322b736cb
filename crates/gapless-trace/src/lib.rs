//! What follows a call over processes: the W3C trace that it belongs to, the `tracing` spans of both sides, and the scope that
//! calls of a handler inherit. It knows nothing of how calls travel.
//!
//! | module | what lives there |
//! |---|---|
//! | `spans` | [`CallSpan`] and [`ServedSpan`]: a span for each call, and for each handler that runs for it |
//! | `bridge` | [`TraceBridge`]: the ids of spans in another tracing system |
//! | `scope` | [`CallScope`]: what calls inherit from where they are made |
//! | `context` | [`TraceContext`]: W3C's `traceparent` and `tracestate` |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod bridge;
mod context;
mod scope;
mod spans;

pub use bridge::{TraceBridge, set_trace_bridge};
pub use context::{NoTraceParent, TraceContext};
pub use scope::{CallScope, Current};
pub use spans::{CallSpan, PANICKED, ServedCall, ServedSpan, are_recorded};
