//! The `tracing` spans of calls: one for each call, and one for each time that a handler runs for it, below that of the call. Both
//! have the ids of a W3C trace, which go with the request, so that what several processes record is one trace.
//!
//! If nobody records them, they cost the look at one atomic, and a trace that comes from outside goes through as it is.

use crate::bridge::BRIDGE;
use crate::context::TraceContext;
use crate::scope::Current;
use std::fmt;
use tracing::field::{Empty, display};
use tracing::{Dispatch, Id, Level, Span, dispatcher};

/// How a handler ends that has panicked.
pub const PANICKED: &str = "panicked";

/// Of a route `a/b/c` the service `a/b` and the method `c`, as OpenTelemetry names them.
fn service_and_method(route: &str) -> (Option<&str>, &str) {
    route.rsplit_once('/').map_or((None, route), |(service, method)| (Some(service), method))
}

/// An id as W3C writes it.
struct Hex<const DIGITS: usize>(u128);

impl<const DIGITS: usize> fmt::Display for Hex<DIGITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

/// A span of either side. The macro wants its fields written out.
macro_rules! call_span {
    ($name:literal, $kind:literal, [$($parent:tt)*], $route:expr, $own:expr, $above:expr, $($field:tt)*) => {{
        let (route, own, above): (&str, &TraceContext, &TraceContext) = ($route, $own, $above);
        let (service, method) = service_and_method(route);
        // With a bridge they are recorded when it has told them.
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

/// The ids of a new span, which are `own` unless the bridge knows better.
fn agree(span: &Span, own: TraceContext) -> TraceContext {
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

/// Whether anybody may record spans of calls.
#[inline]
#[must_use]
pub fn are_recorded() -> bool {
    tracing::span_enabled!(target: "gapless_rpc", Level::DEBUG)
}

/// The span of one call, from when it is made until its outcome is taken. Dropped without, it was cancelled.
#[derive(Debug)]
pub struct CallSpan {
    span: Span,
    has_ended: bool,
}

impl CallSpan {
    /// Below `trace`, or the handler that makes the call, which becomes the call's own; `None` if nobody records it.
    pub fn begin(route: &str, trace: &mut TraceContext) -> Option<Self> {
        if !are_recorded() {
            return None;
        }
        let (above, is_below_current) = above(trace);
        let own = above.child();
        let span = call_span!("call", "client", [], route, &own, &above, attempts = Empty);
        if span.is_disabled() {
            return None;
        }
        if let (Some(bridge), false) = (BRIDGE.get(), is_below_current || above.is_none()) {
            bridge.set_parent(&span, &above);
        }
        *trace = agree(&span, own);
        Some(Self { span, has_ended: false })
    }

    /// The span itself.
    #[must_use]
    pub const fn span(&self) -> &Span {
        &self.span
    }

    /// Its outcome is there: a reply, or an error of that kind. It was offered so often.
    pub fn end(&mut self, error: Option<&'static str>, attempts: u32) {
        self.span.record("attempts", attempts);
        self.end_as(error.unwrap_or("replied"), error.is_some());
    }

    /// A request whose reply nobody waits for was offered, or not for an error of that kind.
    pub fn sent(&mut self, error: Option<&'static str>) {
        self.end_as(error.unwrap_or("sent"), error.is_some());
    }

    fn end_as(&mut self, outcome: &'static str, is_error: bool) {
        self.has_ended = true;
        record_end(&self.span, outcome, is_error);
    }
}

/// What a new call with these options is below, and whether the bridge knows that from the current span. What the call's options
/// say counts; else the current span, if it belongs to the trace of the handler that makes the call.
fn above(of_options: &TraceContext) -> (TraceContext, bool) {
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
            self.end_as("cancelled", false);
        }
    }
}

/// What the span of a handler says of its call.
#[derive(Clone, Copy, Debug)]
pub struct ServedCall<'call> {
    /// The route that is served.
    pub route: &'call str,
    /// Nanoseconds of the monotonic clock, 0 without one.
    pub deadline_ns: u64,
    /// The trace, with the span of the call.
    pub trace: &'call TraceContext,
    /// Which offer of the request this is, from 1.
    pub attempt: u8,
    /// How often it was forwarded.
    pub hops: u8,
    /// The name that the caller gave itself.
    pub caller_name: &'call str,
    /// The caller's process id.
    pub caller_process_id: u32,
}

/// The span of a handler that runs, and what its calls inherit.
#[derive(Debug)]
pub struct ServedSpan {
    span: Span,
    current: Current,
}

impl ServedSpan {
    /// `caller` is the span of the call, if that was made in this process.
    #[inline]
    #[must_use]
    pub fn begin(call: ServedCall<'_>, caller: Option<&Span>) -> Self {
        let current = Current { deadline_ns: call.deadline_ns, trace: call.trace.clone() };
        if are_recorded() { Self::begin_recorded(call, caller, current) } else { Self { span: Span::none(), current } }
    }

    #[cold]
    fn begin_recorded(call: ServedCall<'_>, caller: Option<&Span>, mut current: Current) -> Self {
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
        // Where the span of the call is, which need not be where this thread's spans go: its id means nothing elsewhere.
        let below = |(id, dispatch): (&Id, &Dispatch)| dispatcher::with_default(dispatch, || make(Some(id.clone())));
        let span = caller.and_then(|caller| caller.with_subscriber(below)).unwrap_or_else(|| make(None));
        if !span.is_disabled() {
            if let (Some(bridge), None, false) = (BRIDGE.get(), caller, above.is_none()) {
                bridge.set_parent(&span, above);
            }
            current.trace = agree(&span, own);
        }
        Self { span, current }
    }

    /// Runs the handler, or polls it, in the span.
    #[inline]
    pub fn enter<T>(&self, handle: impl FnOnce() -> T) -> T {
        let _entered = self.span.enter();
        self.current.clone().enter(handle)
    }

    /// `outcome` is how the handler ended.
    #[inline]
    pub fn end(self, outcome: &'static str) {
        if !self.span.is_disabled() {
            record_end(&self.span, outcome, outcome == PANICKED);
        }
    }
}
