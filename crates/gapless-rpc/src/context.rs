//! `CallContext`: the view that a handler has of its call.

pub use crate::message::headers::{HEADERS_LENGTH_MAX, Headers};
use crate::outcome::Rejection;
#[cfg(not(loom))]
use crate::registry::PeerProcess;
#[cfg(not(loom))]
use gapless_log::call_table::ClaimedSlot;
#[cfg(not(loom))]
use gapless_trace::ServedCall;
use gapless_trace::TraceContext;
use std::any::Any;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
#[cfg(not(loom))]
use std::task::Waker;
use std::time::Duration;

/// Identity of the calling process, as the operating system reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerIdentity {
    /// Name that the process gave itself, not verified.
    pub name: String,
    pub process_id: u32,
    pub user_id: u32,
    /// Time at which it joined the domain, as it says, ns of the monotonic clock; with the process id it identifies
    /// this incarnation.
    pub started_ns: u64,
}

/// Environment variable in which a supervisor names the instance, such as `calculator.1`.
pub const INSTANCE_VARIABLE: &str = "GAPLESS_INSTANCE";
/// Former name of [`INSTANCE_VARIABLE`], also set by supervisors.
pub const COPY_VARIABLE: &str = "GAPLESS_COPY";
const NAME_LENGTH_MAX: usize = 128;

pub(crate) fn default_process_name() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|name| is_process_name(name));
    variable(INSTANCE_VARIABLE).or_else(|| variable(COPY_VARIABLE)).unwrap_or_else(|| {
        let program = std::env::args_os().next().map(PathBuf::from);
        let name = program.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        name.chars().take(32).collect()
    })
}

fn is_process_name(name: &str) -> bool {
    (1..=NAME_LENGTH_MAX).contains(&name.len()) && !name.contains(char::is_control)
}

/// Does not keep the domain open.
pub(crate) type DomainHandle = Weak<dyn Any + Send + Sync>;

#[derive(Clone, Debug)]
pub(crate) struct CallerWithDomain {
    pub(crate) identity: CallerIdentity,
    #[cfg_attr(loom, expect(dead_code, reason = "the model has no domains"))]
    pub(crate) domain: DomainHandle,
}

impl Deref for CallerWithDomain {
    type Target = CallerIdentity;

    fn deref(&self) -> &CallerIdentity {
        &self.identity
    }
}

/// Address of a caller for notices: one incarnation of its process, valid also after the call.
#[derive(Clone, Copy, Debug)]
pub struct CallerAddress {
    pub(crate) process_id: u32,
    pub(crate) started_ns: u64,
    /// Number of notice types it received when it called.
    #[cfg(not(loom))]
    pub(crate) notices: u8,
}

impl CallerAddress {
    /// Process id of the caller.
    #[must_use]
    pub const fn process_id(&self) -> u32 {
        self.process_id
    }

    #[cfg(not(loom))]
    pub(crate) fn is_of(&self, process: &PeerProcess) -> bool {
        self.identity() == (process.process_id, process.started_ns)
    }

    const fn identity(&self) -> (u32, u64) {
        (self.process_id, self.started_ns)
    }
}

impl PartialEq for CallerAddress {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for CallerAddress {}

impl std::hash::Hash for CallerAddress {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

pub(crate) trait CancellableCall: Send + Sync + std::fmt::Debug {
    /// True once given up or answered. A hint.
    fn is_over(&self) -> bool;

    #[cfg(not(loom))]
    /// Wakes a task when `is_over` becomes true; once for each number, whose last task counts.
    fn watch(&self, number: u64, task: Waker);

    #[cfg(not(loom))]
    fn unwatch(&self, number: u64);
}

#[cfg(not(loom))]
pub(crate) trait RemoteCaller: Send + Sync + std::fmt::Debug {
    fn is_over(&self, taken: ClaimedSlot) -> bool;

    /// False if there is no signal, so that the task must poll.
    fn watch(&self, taken: ClaimedSlot, number: u64, task: Waker) -> bool;

    fn unwatch(&self, number: u64);
}

#[derive(Clone, Debug)]
pub(crate) enum Cancellation {
    Never,
    Local(Arc<dyn CancellableCall>),
    #[cfg(not(loom))]
    Remote(Arc<dyn RemoteCaller>, ClaimedSlot),
}

impl Cancellation {
    pub(crate) fn is_cancelled(&self) -> bool {
        match self {
            Self::Never => false,
            Self::Local(call) => call.is_over(),
            #[cfg(not(loom))]
            Self::Remote(caller, taken) => caller.is_over(*taken),
        }
    }

    #[cfg(not(loom))]
    /// False: the task must poll.
    pub(crate) fn watch(&self, number: u64, task: &Waker) -> bool {
        match self {
            Self::Never => {}
            Self::Local(call) => call.watch(number, task.clone()),
            Self::Remote(caller, taken) => return caller.watch(*taken, number, task.clone()),
        }
        true
    }

    #[cfg(not(loom))]
    pub(crate) fn unwatch(&self, number: u64) {
        match self {
            Self::Never => {}
            Self::Local(call) => call.unwatch(number),
            Self::Remote(caller, _) => caller.unwatch(number),
        }
    }
}

/// A handler's view of its call. Clones belong to the same call.
#[derive(Clone, Debug)]
pub struct CallContext {
    pub(crate) route: Arc<str>,
    pub(crate) caller: Arc<CallerWithDomain>,
    pub(crate) deadline_ns: u64,
    pub(crate) attempt: u8,
    pub(crate) hops: u8,
    pub(crate) key: u64,
    /// See [`CallerAddress`]; unused inside a process.
    #[cfg(not(loom))]
    pub(crate) notices: u8,
    pub(crate) headers: Headers,
    pub(crate) trace: TraceContext,
    pub(crate) cancellation: Cancellation,
}

impl CallContext {
    #[cfg(not(loom))]
    pub(crate) fn served(&self) -> ServedCall<'_> {
        ServedCall {
            route: &self.route,
            deadline_ns: self.deadline_ns,
            trace: &self.trace,
            attempt: self.attempt,
            hops: self.hops,
            caller_name: &self.caller.name,
            caller_process_id: self.caller.process_id,
        }
    }

    /// Name of the served route.
    #[must_use]
    pub fn route(&self) -> &str {
        &self.route
    }

    /// Identity of the calling process.
    #[must_use]
    pub fn caller(&self) -> &CallerIdentity {
        &self.caller
    }

    /// Address at which [`Domain::notify`](crate::Domain::notify) reaches the caller, also after the call.
    #[must_use]
    pub fn caller_address(&self) -> CallerAddress {
        let CallerIdentity { process_id, started_ns, .. } = self.caller.identity;
        CallerAddress {
            process_id,
            started_ns,
            #[cfg(not(loom))]
            notices: self.notices,
        }
    }

    /// Remaining time of the call; `None` without a deadline, zero once it has passed.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        (self.deadline_ns != 0)
            .then(|| Duration::from_nanos(self.deadline_ns.saturating_sub(gapless_agent::monotonic::monotonic_ns())))
    }

    /// Reports whether the caller cancelled, timed out or died, or the call is answered. For a one-way request it is
    /// true only after the deadline.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled() || self.remaining().is_some_and(|left| left.is_zero())
    }

    /// Number of this attempt, from 1.
    #[must_use]
    pub const fn attempt(&self) -> u8 {
        self.attempt
    }

    /// Affinity key of the call; 0 without one.
    #[must_use]
    pub const fn key(&self) -> u64 {
        self.key
    }

    /// Headers of the request.
    #[must_use]
    pub const fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Trace of the caller, with the span of its call. The handler's own calls get [`TraceContext::current`].
    #[must_use]
    pub const fn trace(&self) -> &TraceContext {
        &self.trace
    }

    /// Number of times the request was forwarded.
    #[must_use]
    pub const fn hops(&self) -> u8 {
        self.hops
    }

    /// Return value of a handler that forwards the request to `route`; at most 16 times per request.
    #[must_use]
    pub fn forward(&self, route: impl Into<String>) -> Rejection {
        Rejection::Forward { route: route.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_instance_name_is_ignored() {
        #[cfg(not(loom))]
        assert_eq!(NAME_LENGTH_MAX, crate::registry::packets::PROCESS_NAME_LENGTH_MAX);
        let longest = "x".repeat(NAME_LENGTH_MAX);
        for name in ["fraud.1", "Prüfung 2", &longest] {
            assert!(is_process_name(name), "{name:?}");
        }
        for none in ["", "fraud.1\n", "\u{1b}[2J", &format!("{longest}x")] {
            assert!(!is_process_name(none), "{none:?}");
        }
    }
}
