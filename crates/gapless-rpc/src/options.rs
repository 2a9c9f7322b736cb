//! Options of calls and routes, with their defaults.

use crate::context::Headers;
use gapless_trace::TraceContext;
use std::time::Duration;

pub use gapless_overflow::Priority;

/// When a call is offered again whose copy has died or was cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// Never: the caller decides.
    Never,
    /// If its handler had not begun: a repetition has no second effect.
    #[default]
    NotBegun,
    /// Always: the route is idempotent.
    Always,
}

/// Options of one call. Those of all calls of a caller that have none of their own are [`CallerOptions::call`](crate::CallerOptions::call).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOptions {
    /// How long the caller waits, five seconds by default; `None` for ever. A nested call has at most what is left of the outer one.
    pub timeout: Option<Duration>,
    /// Its class; [`Priority::Normal`] by default.
    pub priority: Priority,
    /// Calls of one key go to one copy for as long as it takes requests: when it is suspended or drained, or dies, they go to another. It
    /// is no exclusion.
    pub key: Option<u64>,
    /// Names and values that travel with it. Calls that its handler makes do not inherit them.
    pub headers: Headers,
    /// Waits so long until somebody serves the route, in this process or another as the caller's reach says; `None`:
    /// [`crate::CallError::NoRoute`] at once.
    pub wait_for_route: Option<Duration>,
    /// When it is offered again; [`Retry::NotBegun`] by default. Of what is sent ([`crate::Caller::send`]) what had not begun is offered
    /// again and what had begun is lost, whatever stands here, unless it has gone through the caller's overflow.
    pub retry: Retry,
    /// The trace that it belongs to, and the span that makes it; without one, that of the handler that makes it.
    pub trace: TraceContext,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            timeout: Some(Duration::from_secs(5)),
            priority: Priority::default(),
            key: None,
            headers: Headers::default(),
            wait_for_route: None,
            retry: Retry::default(),
            trace: TraceContext::default(),
        }
    }
}

/// How workers and callers wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// They look a few times, then they sleep.
    #[default]
    Park,
    /// They spin for so long before they sleep.
    SpinFor(Duration),
    /// They never sleep: each needs a core of its own.
    Spin,
}

#[cfg(not(loom))]
impl Waiting {
    /// Looks before those sleep that need not spin: what is about to come costs no system call.
    pub(crate) const LOOKS_BEFORE_PARKING: u32 = 200;
    /// Looks between two readings of the clock.
    pub(crate) const LOOKS_PER_TIME: u32 = 64;
}
