//! [`CallContext`]: what a handler may know of its call.

pub use crate::message::headers::{HEADERS_LENGTH_MAX, Headers};
use crate::outcome::Rejection;
#[cfg(not(loom))]
use gapless_log::call_table::Taken;
#[cfg(not(loom))]
use gapless_registry::PeerProcess;
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

/// The process that calls, as the operating system knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerIdentity {
    /// The name that it gave itself; nobody has checked it.
    pub name: String,
    /// Its process id.
    pub process_id: u32,
    /// Its user.
    pub user_id: u32,
    /// When it came into the domain, ns of the monotonic clock, as it says: with its process id, which life of it this is.
    pub started_ns: u64,
}

/// What a supervisor tells each process: which copy of the file it is, as `calculator.1`.
pub const COPY_VARIABLE: &str = "GAPLESS_COPY";
/// The longest name of a process, bytes, as other processes take it.
const NAME_LENGTH_MAX: usize = 128;

/// The name of a process that gives itself none: the copy that it is under a supervisor, else the program's file.
pub(crate) fn default_process_name() -> String {
    let copy = std::env::var(COPY_VARIABLE).ok();
    copy.filter(|name| is_process_name(name)).unwrap_or_else(|| {
        let program = std::env::args_os().next().map(PathBuf::from);
        let name = program.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        name.chars().take(32).collect()
    })
}

/// Whether it can be shown, and told to other processes.
fn is_process_name(name: &str) -> bool {
    (1..=NAME_LENGTH_MAX).contains(&name.len()) && !name.contains(char::is_control)
}

/// The domain that a route is served in, which this does not keep open.
pub(crate) type ServedIn = Weak<dyn Any + Send + Sync>;

/// The caller, and the domain in which it calls.
#[derive(Clone, Debug)]
pub(crate) struct CallerOf {
    pub(crate) identity: CallerIdentity,
    #[cfg_attr(loom, expect(dead_code, reason = "the model has no domains"))]
    pub(crate) domain: ServedIn,
}

impl Deref for CallerOf {
    type Target = CallerIdentity;

    fn deref(&self) -> &CallerIdentity {
        &self.identity
    }
}

/// The address of a caller for notices: it names this life of its process, and is good however long after the call.
#[derive(Clone, Copy, Debug)]
pub struct CallerAddress {
    pub(crate) process_id: u32,
    pub(crate) started_ns: u64,
    /// How many kinds of notices it received when it called: as many routes it has told of, or is about to tell of.
    #[cfg(not(loom))]
    pub(crate) notices: u8,
}

impl CallerAddress {
    /// The caller's process id.
    #[must_use]
    pub const fn process_id(&self) -> u32 {
        self.process_id
    }

    /// Whether notices to it are for this process.
    #[cfg(not(loom))]
    pub(crate) fn is_of(&self, process: &PeerProcess) -> bool {
        self.identity() == (process.process_id, process.started_ns)
    }

    const fn identity(&self) -> (u32, u64) {
        (self.process_id, self.started_ns)
    }
}

/// Two addresses are one if they are of the same life of the same process.
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

/// A call inside this process, as its handler sees it.
pub(crate) trait Watched: Send + Sync + std::fmt::Debug {
    /// Whether nobody waits for it any more, or it was answered. A hint.
    fn is_over(&self) -> bool;

    #[cfg(not(loom))]
    /// Wakes a task when that becomes so; once for each number, of which the last task counts.
    fn watch(&self, number: u64, task: Waker);

    #[cfg(not(loom))]
    /// Not that task.
    fn unwatch(&self, number: u64);
}

#[cfg(not(loom))]
/// The caller of a call from another process, as the copy that has the call sees it.
pub(crate) trait RemoteCaller: Send + Sync + std::fmt::Debug {
    /// As [`Watched::is_over`].
    fn is_over(&self, taken: Taken) -> bool;

    /// As [`Watched::watch`]; false if nobody will, so that the task must look for itself.
    fn watch(&self, taken: Taken, number: u64, task: Waker) -> bool;

    /// As [`Watched::unwatch`].
    fn unwatch(&self, number: u64);
}

/// Whether somebody still waits for a call.
#[derive(Clone, Debug)]
pub(crate) enum Cancellation {
    /// A send: nobody waits, so nobody cancels.
    Never,
    /// A call inside this process.
    Local(Arc<dyn Watched>),
    /// A call of another process.
    #[cfg(not(loom))]
    Remote(Arc<dyn RemoteCaller>, Taken),
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
    /// Wakes a task when the call is given up. False: it must look for itself.
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

/// What a handler may know of its call. Clones belong to the same call.
#[derive(Clone, Debug)]
pub struct CallContext {
    pub(crate) route: Arc<str>,
    pub(crate) caller: Arc<CallerOf>,
    /// Nanoseconds of the monotonic clock, 0 without one.
    pub(crate) deadline_ns: u64,
    pub(crate) attempt: u8,
    pub(crate) hops: u8,
    pub(crate) key: u64,
    /// See [`CallerAddress`]; 0 inside a process, where nobody asks.
    #[cfg(not(loom))]
    pub(crate) notices: u8,
    pub(crate) headers: Headers,
    pub(crate) trace: TraceContext,
    pub(crate) cancellation: Cancellation,
}

impl CallContext {
    /// What its span says of it.
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

    /// The route that is served.
    #[must_use]
    pub fn route(&self) -> &str {
        &self.route
    }

    /// The process that calls.
    #[must_use]
    pub fn caller(&self) -> &CallerIdentity {
        &self.caller
    }

    /// Where [`Domain::notify`](crate::Domain::notify) reaches the caller, also after the call. During the call
    /// `notify` of this is shorter.
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

    /// What is left of the call's time; `None` if it has no end, zero if it is over.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        (self.deadline_ns != 0)
            .then(|| Duration::from_nanos(self.deadline_ns.saturating_sub(gapless_agent::monotonic::monotonic_ns())))
    }

    /// Whether the caller no longer waits: it has cancelled, its time is over, or it is dead. For what goes on behind the handler's
    /// answer it is true, too, once the call is answered; of a send only when its time is over.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled() || self.remaining().is_some_and(|left| left.is_zero())
    }

    /// Which attempt this is, from 1.
    #[must_use]
    pub const fn attempt(&self) -> u8 {
        self.attempt
    }

    /// The affinity key that the caller gave; 0 without one.
    #[must_use]
    pub const fn key(&self) -> u64 {
        self.key
    }

    /// The caller's headers.
    #[must_use]
    pub const fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The caller's trace, with the span of its call. What calls of the handler get is [`TraceContext::current`].
    #[must_use]
    pub const fn trace(&self) -> &TraceContext {
        &self.trace
    }

    /// How often the request was forwarded.
    #[must_use]
    pub const fn hops(&self) -> u8 {
        self.hops
    }

    /// To be returned by the handler: the request goes on to `route`, whose copy answers the caller. At most 16 times.
    #[must_use]
    pub fn forward(&self, route: impl Into<String>) -> Rejection {
        Rejection::Forward { route: route.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_its_name_and_what_is_no_name_is_passed_over() {
        #[cfg(not(loom))]
        assert_eq!(NAME_LENGTH_MAX, gapless_registry::packets::PROCESS_NAME_LENGTH_MAX);
        let longest = "x".repeat(NAME_LENGTH_MAX);
        for name in ["fraud.1", "Prüfung 2", &longest] {
            assert!(is_process_name(name), "{name:?}");
        }
        for none in ["", "fraud.1\n", "\u{1b}[2J", &format!("{longest}x")] {
            assert!(!is_process_name(none), "{none:?}");
        }
    }
}
