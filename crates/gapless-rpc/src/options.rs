//! Options of calls and routes, with their defaults.

use crate::context::Headers;
use gapless_trace::TraceContext;
use std::time::Duration;

pub use crate::overflow::Priority;

/// Policy for a call whose instance has died or was cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// Never: the caller decides.
    Never,
    /// If its handler had not begun: a retry has no second effect.
    #[default]
    NotBegun,
    /// Always: the route is idempotent.
    Always,
}

/// Options of one call. [`CallerOptions::call`](crate::CallerOptions::call) are the defaults of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOptions {
    /// Timeout, five seconds by default; a nested call has at most the remaining time of the outer one.
    pub timeout: Option<Duration>,
    /// Priority class; default [`Priority::Normal`].
    pub priority: Priority,
    /// Affinity key: calls of one key go to one instance as long as it takes requests. It gives no exclusion.
    pub key: Option<u64>,
    /// Names and values that travel with the call; nested calls do not inherit them.
    pub headers: Headers,
    /// Longest wait until an instance serves the route, within the caller's reach; `None`:
    /// [`crate::CallError::NoRoute`] at once.
    pub wait_for_route: Option<Duration>,
    /// Default [`Retry::NotBegun`]. A one-way request ([`crate::Caller::send`]) is always retried if it had not begun
    /// and lost if it had, unless it went through the caller's overflow.
    pub retry: Retry,
    /// Trace and parent span of the call; by default those of the handler that makes it.
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

/// Wait strategy of workers and callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Spin a few times, then sleep.
    #[default]
    Park,
    /// Spin for this time before a sleep.
    SpinFor(Duration),
    /// Never sleep: each thread needs a core of its own.
    Spin,
}

#[cfg(not(loom))]
impl Waiting {
    pub(crate) const LOOKS_BEFORE_PARKING: u32 = 200;
    pub(crate) const LOOKS_PER_TIME: u32 = 64;
}
