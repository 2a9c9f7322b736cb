//! `TraceBridge`: the ids of spans in another tracing system.

use crate::context::TraceContext;
use std::sync::OnceLock;
use tracing::Span;

/// Links the spans of calls to a tracing system with its own ids, such as `tracing-opentelemetry` (see
/// `docs/guides/calling.md`). Without a bridge, ids are random.
pub trait TraceBridge: Send + Sync {
    /// `None` if the span has no ids in the tracing system.
    fn context_of(&self, span: &Span) -> Option<TraceContext>;

    /// `parent` is of another process; `span` was not entered yet.
    fn set_parent(&self, span: &Span, parent: &TraceContext);
}

pub(crate) static BRIDGE: OnceLock<Box<dyn TraceBridge>> = OnceLock::new();

/// Sets the bridge of this process, once. False if there is one already.
pub fn set_trace_bridge(bridge: impl TraceBridge + 'static) -> bool {
    BRIDGE.set(Box::new(bridge)).is_ok()
}
