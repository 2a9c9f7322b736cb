//! [`Inherited`]: terms of a call from its options and from the handler that makes it.

use crate::local;
use crate::options::CallOptions;
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use gapless_trace::Current;
use gapless_trace::TraceContext;
use std::time::Duration;
use tracing::Span;

/// Terms of a call from its options and from the handler that makes it.
pub(super) struct Inherited {
    pub(super) sent_ns: u64,
    /// Deadline, ns of the monotonic clock; 0 without one.
    pub(super) deadline_ns: u64,
    pub(super) timeout: Duration,
    pub(super) trace: TraceContext,
}

impl Inherited {
    pub(super) fn of(options: &CallOptions) -> Self {
        let sent_ns = monotonic_ns();
        let own_ns = options.timeout.map_or(0, |timeout| sent_ns.saturating_add(saturating_ns(timeout)));
        let (outer_ns, trace) = Current::with(|current| {
            let trace = if options.trace.is_none() { &current.trace } else { &options.trace };
            (current.deadline_ns, trace.clone())
        });
        let deadline_ns = match (own_ns, outer_ns) {
            (0, outer_ns) => outer_ns,
            (own_ns, 0) => own_ns,
            (own_ns, outer_ns) => own_ns.min(outer_ns),
        };
        let timeout = Duration::from_nanos(deadline_ns.saturating_sub(sent_ns));
        Self { sent_ns, deadline_ns, timeout, trace }
    }

    pub(super) fn is_over(&self) -> bool {
        self.deadline_ns != 0 && monotonic_ns() >= self.deadline_ns
    }

    /// Remaining time, at most `most`.
    pub(super) fn left(&self, most: Duration) -> Duration {
        if self.deadline_ns == 0 {
            return most;
        }
        most.min(Duration::from_nanos(self.deadline_ns.saturating_sub(monotonic_ns())))
    }

    /// `span` is the span of the call.
    pub(super) fn local_offer(&self, options: &CallOptions, span: Option<&Span>) -> local::Offer {
        let plain = CallOptions { timeout: None, trace: self.trace.clone(), ..options.clone() };
        let offer = local::Offer::new(&plain).with_span(span.cloned());
        if self.deadline_ns == 0 { offer } else { offer.with_deadline(self.deadline_ns, self.timeout) }
    }
}
