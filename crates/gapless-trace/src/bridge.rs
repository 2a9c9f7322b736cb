//! [`TraceBridge`]: the ids of spans in another tracing system.

use crate::context::TraceContext;
use std::sync::OnceLock;
use tracing::Span;

/// Links the spans of calls to a tracing system with its own ids, such as `tracing-opentelemetry`; the guide
/// `docs/guides/calling.md` shows how. Without a bridge, ids are random.
pub trait TraceBridge: Send + Sync {
    /// Ids of a span in the tracing system; `None` if it has none there.
    fn context_of(&self, span: &Span) -> Option<TraceContext>;

    /// Sets a span of another process as the parent of this one, which was not entered yet.
    fn set_parent(&self, span: &Span, parent: &TraceContext);
}

pub(crate) static BRIDGE: OnceLock<Box<dyn TraceBridge>> = OnceLock::new();

/// Sets the bridge of this process, once. False if there is one already.
pub fn set_trace_bridge(bridge: impl TraceBridge + 'static) -> bool {
    BRIDGE.set(Box::new(bridge)).is_ok()
}
