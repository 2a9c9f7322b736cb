//! A `tracing` span for each call, and a child of it for each run of a handler, with the ids of a W3C trace that travel
//! with the request. Without a subscriber they cost one atomic load, and an external trace is passed through unchanged.

use crate::bridge::BRIDGE;
use crate::context::TraceContext;
use crate::scope::InheritedContext;
use std::fmt;
use tracing::field::{Empty, display};
use tracing::{Dispatch, Id, Level, Span, dispatcher};

pub const PANICKED: &str = "panicked";

/// Service `a/b` and method `c` of a route `a/b/c`, as OpenTelemetry names them.
fn service_and_method(route: &str) -> (Option<&str>, &str) {
    route.rsplit_once('/').map_or((None, route), |(service, method)| (Some(service), method))
}

struct Hex<const DIGITS: usize>(u128);

impl<const DIGITS: usize> fmt::Display for Hex<DIGITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

/// The macro requires its fields to be listed.
macro_rules! call_span {
    ($name:literal, $kind:literal, [$($parent:tt)*], $route:expr, $own:expr, $above:expr, $($field:tt)*) => {{
        let (route, own, above): (&str, &TraceContext, &TraceContext) = ($route, $own, $above);
        let (service, method) = service_and_method(route);
        // With a bridge, ids are recorded once it has named them.
        let has_ids = BRIDGE.get().is_none();
        tracing::debug_span!(
            target: "gapless_rpc",
            $($parent)*
            $name,
            otel.name = route,
            otel.kind = $kind,
            otel.status_code = Empty,
            rpc.system = "gapless",
            rpc.service = service,
            rpc.method = method,
            route,
            trace_id = has_ids.then(|| display(Hex::<32>(own.trace_id))),
            span_id = has_ids.then(|| display(Hex::<16>(own.span_id.into()))),
            parent_span_id = (!above.is_none()).then(|| display(Hex::<16>(above.span_id.into()))),
            sampled = own.is_sampled(),
            outcome = Empty,
            error.type = Empty,
            $($field)*
        )
    }};
}

/// `own`, unless the bridge has other ids.
fn exported_context(span: &Span, own: TraceContext) -> TraceContext {
    let Some(bridge) = BRIDGE.get() else { return own };
    let own = bridge.context_of(span).filter(|told| !told.is_none()).unwrap_or(own);
    span.record("trace_id", display(Hex::<32>(own.trace_id)));
    span.record("span_id", display(Hex::<16>(own.span_id.into())));
    own
}

fn record_end(span: &Span, outcome: &'static str, is_error: bool) {
    span.record("outcome", outcome);
    if is_error {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", outcome);
    }
}

#[inline]
#[must_use]
pub fn are_recorded() -> bool {
    tracing::span_enabled!(target: "gapless_rpc", Level::DEBUG)
}

/// Span of one call, from its start until its outcome is taken. If it is dropped earlier, the call was cancelled.
#[derive(Debug)]
pub struct CallSpan {
    span: Span,
    has_ended: bool,
}

impl CallSpan {
    /// Child of `trace`, or of the handler that makes the call; stores its own context in `trace`. `None` if spans are
    /// not recorded.
    pub fn begin(route: &str, trace: &mut TraceContext) -> Option<Self> {
        if !are_recorded() {
            return None;
        }
        let (above, is_below_current) = parent_context(trace);
        let own = above.child();
        let span = call_span!("call", "client", [], route, &own, &above, attempts = Empty);
        if span.is_disabled() {
            return None;
        }
        if let (Some(bridge), false) = (BRIDGE.get(), is_below_current || above.is_none()) {
            bridge.set_parent(&span, &above);
        }
        *trace = exported_context(&span, own);
        Some(Self { span, has_ended: false })
    }

    #[must_use]
    pub const fn span(&self) -> &Span {
        &self.span
    }

    /// `error`: kind; `None`: a reply.
    pub fn end(&mut self, error: Option<&'static str>, attempts: u32) {
        self.span.record("attempts", attempts);
        self.record_and_end(error.unwrap_or("replied"), error.is_some());
    }

    /// `error`: the one-way request could not be offered.
    pub fn sent(&mut self, error: Option<&'static str>) {
        self.record_and_end(error.unwrap_or("sent"), error.is_some());
    }

    fn record_and_end(&mut self, outcome: &'static str, is_error: bool) {
        self.has_ended = true;
        record_end(&self.span, outcome, is_error);
    }
}

/// The call's options come first; else the current span, if it belongs to the trace of the handler that makes the call.
/// The flag: the bridge derives it from the current span.
fn parent_context(of_options: &TraceContext) -> (TraceContext, bool) {
    if !of_options.is_none() {
        return (of_options.clone(), false);
    }
    let inherited = TraceContext::current();
    let here = BRIDGE.get().and_then(|bridge| bridge.context_of(&Span::current())).filter(|here| !here.is_none());
    match here {
        Some(here) if inherited.is_none() || here.trace_id == inherited.trace_id => (here, true),
        _ => (inherited, false),
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if !self.has_ended {
            self.record_and_end("cancelled", false);
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ServedCall<'call> {
    pub route: &'call str,
    /// ns of the monotonic clock; 0 without one.
    pub deadline_ns: u64,
    pub trace: &'call TraceContext,
    /// Number of the attempt, from 1.
    pub attempt: u8,
    pub hops: u8,
    pub caller_name: &'call str,
    pub caller_process_id: u32,
}

#[derive(Debug)]
pub struct ServedSpan {
    span: Span,
    current: InheritedContext,
}

impl ServedSpan {
    /// `caller`: span of the call, if made in this process.
    #[inline]
    #[must_use]
    pub fn begin(call: ServedCall<'_>, caller: Option<&Span>) -> Self {
        let current = InheritedContext { deadline_ns: call.deadline_ns, trace: call.trace.clone() };
        if are_recorded() { Self::begin_recorded(call, caller, current) } else { Self { span: Span::none(), current } }
    }

    #[cold]
    fn begin_recorded(call: ServedCall<'_>, caller: Option<&Span>, mut current: InheritedContext) -> Self {
        let above = call.trace;
        let own = above.child();
        let make = |parent: Option<Id>| {
            call_span!(
                "serve",
                "server",
                [parent: parent,],
                call.route,
                &own,
                above,
                attempt = call.attempt,
                hops = call.hops,
                caller.name = call.caller_name,
                caller.process_id = call.caller_process_id,
                process.pid = std::process::id(),
            )
        };
        // Created in the subscriber of the call's span, which may differ from this thread's: its id has no meaning
        // elsewhere.
        let below = |(id, dispatch): (&Id, &Dispatch)| dispatcher::with_default(dispatch, || make(Some(id.clone())));
        let span = caller.and_then(|caller| caller.with_subscriber(below)).unwrap_or_else(|| make(None));
        if !span.is_disabled() {
            if let (Some(bridge), None, false) = (BRIDGE.get(), caller, above.is_none()) {
                bridge.set_parent(&span, above);
            }
            current.trace = exported_context(&span, own);
        }
        Self { span, current }
    }

    #[inline]
    pub fn enter<T>(&self, handle: impl FnOnce() -> T) -> T {
        let _entered = self.span.enter();
        self.current.clone().enter(handle)
    }

    #[inline]
    pub fn end(self, outcome: &'static str) {
        if !self.span.is_disabled() {
            record_end(&self.span, outcome, outcome == PANICKED);
        }
    }
}
