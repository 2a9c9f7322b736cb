//! [`TraceBridge`]: the ids of spans in another tracing system.

use crate::context::TraceContext;
use std::sync::OnceLock;
use tracing::Span;

/// Joins the spans of calls with those of a tracing system that has ids of its own, as `tracing-opentelemetry` has: the guide
/// `docs/guides/calling.md` shows how. Without one, ids are random.
pub trait TraceBridge: Send + Sync {
    /// The ids that a span has in the tracing system; `None` if it has none there.
    fn context_of(&self, span: &Span) -> Option<TraceContext>;

    /// The span, which nobody has entered yet, is below one of another process.
    fn set_parent(&self, span: &Span, parent: &TraceContext);
}

pub(crate) static BRIDGE: OnceLock<Box<dyn TraceBridge>> = OnceLock::new();

/// Sets the bridge of this process, once. False if it has one already.
pub fn set_trace_bridge(bridge: impl TraceBridge + 'static) -> bool {
    BRIDGE.set(Box::new(bridge)).is_ok()
}
