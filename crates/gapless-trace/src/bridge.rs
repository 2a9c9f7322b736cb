//! `TraceBridge`: the ids of spans in another tracing system.

use crate::context::TraceContext;
use std::sync::OnceLock;
use tracing::Span;

/// Links the spans of calls to a tracing system with its own ids. Without a bridge, ids are random. For
/// `tracing-opentelemetry` 0.32:
///
/// ```ignore
/// struct OpenTelemetry;
///
/// impl TraceBridge for OpenTelemetry {
///     fn context_of(&self, span: &tracing::Span) -> Option<TraceContext> {
///         let context = span.context();
///         let own = context.span().span_context().clone();
///         let (trace_id, span_id) = (own.trace_id().to_bytes(), own.span_id().to_bytes());
///         let (trace_id, span_id) = (u128::from_be_bytes(trace_id), u64::from_be_bytes(span_id));
///         let trace = TraceContext::new(trace_id, span_id, own.trace_flags().to_u8());
///         own.is_valid().then(|| trace.with_state(&own.trace_state().header()))
///     }
///
///     fn set_parent(&self, span: &tracing::Span, parent: &TraceContext) {
///         let state = TraceState::from_str(parent.state().unwrap_or_default()).unwrap_or_default();
///         let (trace_id, span_id) = (parent.trace_id.into(), parent.span_id.into());
///         let remote = SpanContext::new(trace_id, span_id, TraceFlags::new(parent.flags), true, state);
///         let _ = span.set_parent(Context::new().with_remote_span_context(remote));
///     }
/// }
///
/// set_trace_bridge(OpenTelemetry);
/// ```
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
