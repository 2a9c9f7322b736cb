//! `LocalOffer`: attributes that travel with a request inside the process.

use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use std::time::Duration;

use crate::context::Headers;
use crate::options::{CallOptions, Priority};
use crate::outcome::CallError;
use gapless_trace::TraceContext;

/// Attributes that travel with a request inside the process.
#[derive(Clone, Debug)]
pub struct LocalOffer {
    pub(super) priority: Priority,
    pub(super) attempt: u8,
    pub(super) hops: u8,
    pub(super) deadline_ns: u64,
    pub(super) timeout_ns: u64,
    pub(super) key: u64,
    /// Boxed, because most calls have none of it.
    pub(super) extra: Option<Box<OfferExtras>>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct OfferExtras {
    pub(super) headers: Headers,
    pub(super) trace: TraceContext,
    #[cfg(not(loom))]
    span: Option<tracing::Span>,
}

impl Default for LocalOffer {
    /// Normal priority, first attempt, no deadline.
    fn default() -> Self {
        Self { priority: Priority::default(), attempt: 1, hops: 0, deadline_ns: 0, timeout_ns: 0, key: 0, extra: None }
    }
}

impl LocalOffer {
    /// First attempt of a call; its timeout starts now.
    #[must_use]
    pub fn new(options: &CallOptions) -> Self {
        let mut offer = Self { priority: options.priority, key: options.key.unwrap_or(0), ..Self::default() };
        if !options.headers.is_empty() || !options.trace.is_none() {
            let (headers, trace) = (options.headers.clone(), options.trace.clone());
            offer.extra = Some(Box::new(OfferExtras { headers, trace, ..OfferExtras::default() }));
        }
        match options.timeout {
            Some(timeout) => offer.with_timeout(timeout),
            None => offer,
        }
    }

    /// Sets the deadline to `timeout` from now.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        let timeout_ns = saturating_ns(timeout);
        self.with_deadline(monotonic_ns().saturating_add(timeout_ns), timeout)
    }

    /// Sets the deadline, ns of the monotonic clock; `timeout` is only for errors.
    #[must_use]
    pub fn with_deadline(mut self, deadline_ns: u64, timeout: Duration) -> Self {
        self.deadline_ns = deadline_ns;
        self.timeout_ns = saturating_ns(timeout);
        self
    }

    /// Sets the class.
    #[must_use]
    pub const fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the number of the attempt, from 1.
    #[must_use]
    pub const fn with_attempt(mut self, attempt: u8) -> Self {
        self.attempt = attempt;
        self
    }

    #[cfg(not(loom))]
    pub(crate) fn with_span(mut self, span: Option<tracing::Span>) -> Self {
        if span.is_some() {
            self.extra.get_or_insert_default().span = span;
        }
        self
    }

    #[cfg(not(loom))]
    pub(crate) fn span(&self) -> Option<&tracing::Span> {
        self.extra.as_ref()?.span.as_ref()
    }

    #[cfg(not(loom))]
    pub(crate) fn options(&self) -> CallOptions {
        let OfferExtras { headers, trace, .. } = self.extra.as_deref().cloned().unwrap_or_default();
        let left_ns = (self.deadline_ns != 0).then(|| self.deadline_ns.saturating_sub(monotonic_ns()));
        let (timeout, key) = (left_ns.map(Duration::from_nanos), Some(self.key).filter(|key| *key != 0));
        CallOptions { timeout, priority: self.priority, key, headers, trace, ..CallOptions::default() }
    }

    #[cfg(not(loom))]
    pub(crate) const fn end_ns(&self) -> u64 {
        if self.deadline_ns == 0 { u64::MAX } else { self.deadline_ns }
    }

    #[cfg(not(loom))]
    pub(crate) const fn hops(&self) -> u8 {
        self.hops
    }

    pub(super) fn is_late(&self) -> bool {
        self.deadline_ns != 0 && monotonic_ns() >= self.deadline_ns
    }

    pub(crate) fn timed_out(&self, route: &str, begun: bool) -> CallError {
        timed_out(route, self.timeout_ns, begun)
    }
}

pub(super) fn timed_out(route: &str, timeout_ns: u64, begun: bool) -> CallError {
    CallError::TimedOut {
        route: route.to_owned(),
        after: Duration::from_nanos(timeout_ns),
        begun,
        not_taken_by: Vec::new(),
    }
}
