//! Ends of a call without a reply.

use crate::notice_route::receiver;
use std::fmt;
use std::time::Duration;

/// Reason why a call has no reply, and whether the handler may have begun, so that a retry is unsafe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No instance serves the route, also after [`CallOptions::wait_for_route`](crate::CallOptions::wait_for_route). A
    /// retry is safe: no handler has begun.
    #[error("{}", no_route(.route, .reason))]
    NoRoute {
        route: String,
        /// Details such as `the machine depot cannot be reached since 12:30`, or empty.
        reason: String,
    },
    /// The slots of the table, the queue or the overflow are full. A retry is safe: no handler has begun.
    #[error("{}: {reason}", no_room(.route))]
    Busy { route: String, reason: String },
    /// A retry is safe.
    #[error("the call of {route} was lost before its handler began, after {}: {reason}", attempts_in_words(.attempts))]
    NotBegun { route: String, attempts: u32, reason: String },
    /// A handler had begun, or had forwarded the request, before its process died or was cut off. Retry only a call
    /// that may take effect twice.
    #[error("the outcome of the call of {route} is unknown, after {}: {reason}", attempts_in_words(.attempts))]
    Unknown { route: String, attempts: u32, reason: String },
    /// The handler, an interceptor or, with code 0, this library refused. The code and the text say whether a retry
    /// makes sense.
    #[error("the call of {route} was {refusal}")]
    Refused { route: String, refusal: Refusal },
    /// A retry is safe if the handler had not begun; else the call may have taken effect.
    #[error("no reply from {route} within {} ms; {}", .after.as_millis(), progress_text(*.begun, .not_taken_by))]
    TimedOut {
        route: String,
        after: Duration,
        begun: bool,
        /// If no handler had begun: processes that may serve the route and have not taken the call.
        not_taken_by: Vec<u32>,
    },
    /// The types of caller and instance differ. Build both programs with the same types; no handler has begun.
    #[error("the route {route} is called with {caller}, and served with {instance}: {difference}")]
    Mismatch {
        route: String,
        caller: String,
        instance: String,
        /// First difference, such as `in the request, Order.price is i64 at the caller and u32 at the instance`.
        difference: String,
    },
    /// The request or the reply cannot be encoded or decoded, or is too long. If it is the reply, the call has taken
    /// effect.
    #[error("a message of the route {route} is not valid: {reason}")]
    BadMessage { route: String, reason: String },
    /// The call may have taken effect in part. Fix the handler before a retry.
    #[error("the handler of {route} panicked: {reason}")]
    Panicked {
        route: String,
        /// Text of the panic, truncated to the limit of a reply.
        reason: String,
    },
    /// The route lacks [`RouteBuilder::forwards`](crate::RouteBuilder::forwards), a bug in the serving program; the
    /// handler had begun.
    #[error("the handler of {route} cannot forward its request: {reason}")]
    CannotForward { route: String, reason: String },
    /// No other process serves the route, and no handler has begun. Run both programs with the same version of Gapless.
    #[error(
        "the route {route} may be served by process {process_id}, which speaks version {found} of the protocol between processes; \
         this process speaks version {own}"
    )]
    OtherProtocol { route: String, process_id: u32, own: u16, found: u16 },
    /// The domain's directory cannot be read or watched, or a process does not announce its routes. A retry is safe: no
    /// handler has begun.
    #[error("the instances of the route {route} cannot be found: {reason}")]
    Unavailable { route: String, reason: String },
    /// No handler has begun. Open the domain again.
    #[error("the domain is closed")]
    Closed,
}

impl CallError {
    /// [`CallError::NoRoute`] without a reason.
    #[must_use]
    pub fn no_route(route: impl Into<String>) -> Self {
        Self::NoRoute { route: route.into(), reason: String::new() }
    }

    #[cfg(not(loom))]
    pub(crate) fn bad_request_here(route: String, why: &str) -> Self {
        Self::BadMessage { route, reason: format!("the request cannot be written at the caller: {why}") }
    }

    #[cfg(not(loom))]
    pub(crate) fn bad_reply_here(route: String, why: &str) -> Self {
        Self::BadMessage { route, reason: format!("the reply cannot be read at the caller: {why}") }
    }

    /// Kind of the error, as in counters and reports: `no_route`, `busy`, `not_begun`, `unknown` …
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NoRoute { .. } => "no_route",
            Self::Busy { .. } => "busy",
            Self::NotBegun { .. } => "not_begun",
            Self::Unknown { .. } => "unknown",
            Self::Refused { .. } => "refused",
            Self::TimedOut { .. } => "timed_out",
            Self::Mismatch { .. } => "mismatch",
            Self::BadMessage { .. } => "bad_message",
            Self::Panicked { .. } => "panicked",
            Self::CannotForward { .. } => "cannot_forward",
            Self::Unavailable { .. } => "unavailable",
            Self::OtherProtocol { .. } => "other_protocol",
            Self::Closed => "closed",
        }
    }

    #[cfg(not(loom))]
    /// Converts the error for a call of which a handler has begun before, on this route or before a forward.
    pub(crate) fn of_begun(self, route: &str, attempts: u32) -> Self {
        match self {
            Self::TimedOut { route, after, .. } => {
                Self::TimedOut { route, after, begun: true, not_taken_by: Vec::new() }
            }
            Self::NotBegun { route, attempts, reason } => Self::Unknown { route, attempts, reason },
            error if error.has_not_begun() => {
                let reason = format!("a handler had begun before: {error}");
                Self::Unknown { route: route.to_owned(), attempts, reason }
            }
            error => error,
        }
    }

    /// Reports whether no handler can have begun, so that a retry has no second effect.
    #[must_use]
    pub const fn has_not_begun(&self) -> bool {
        match self {
            Self::NoRoute { .. }
            | Self::Busy { .. }
            | Self::NotBegun { .. }
            | Self::Mismatch { .. }
            | Self::Unavailable { .. }
            | Self::OtherProtocol { .. }
            | Self::Closed => true,
            Self::TimedOut { begun, .. } => !*begun,
            Self::Unknown { .. }
            | Self::Refused { .. }
            | Self::BadMessage { .. }
            | Self::Panicked { .. }
            | Self::CannotForward { .. } => false,
        }
    }
}

fn no_route(route: &str, reason: &str) -> String {
    let mut text = match receiver(route) {
        Some((process_id, notice)) => format!("process {process_id} has gone, or receives no notices of {notice}"),
        None => format!("no instance serves the route {route}"),
    };
    if !reason.is_empty() {
        text.push_str(": ");
        text.push_str(reason);
    }
    text
}

fn no_room(route: &str) -> String {
    match receiver(route) {
        Some((process_id, notice)) => format!("process {process_id} has no room for another notice of {notice}"),
        None => format!("the route {route} has no room for another call"),
    }
}

fn progress_text(begun: bool, not_taken_by: &[u32]) -> String {
    match not_taken_by {
        _ if begun => "its handler had begun".to_owned(),
        [] => "its handler had not begun".to_owned(),
        [process_id] => format!("the instance of process {process_id} did not take the call"),
        processes => {
            let processes = processes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            format!("the instances of processes {processes} did not take the call")
        }
    }
}

fn attempts_in_words(attempts: &u32) -> String {
    match attempts {
        0 => "no attempt".to_owned(),
        1 => "1 attempt".to_owned(),
        attempts => format!("{attempts} attempts"),
    }
}

/// Refusal by a handler. Between processes, a payload longer than a reply is dropped, and the text is truncated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Code of the application; 0 means no code, and [`Refusal::OWN_CODES`] are reserved for Gapless.
    pub code: u32,
    /// Text for people.
    pub text: String,
    /// Payload for programs.
    pub payload: Vec<u8>,
}

impl Refusal {
    /// A refusal without a payload.
    #[must_use]
    pub fn new(code: u32, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), payload: Vec::new() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code == 0 {
            return write!(f, "refused: {}", self.text);
        }
        write!(f, "refused with code {}: {}", self.code, self.text)
    }
}

impl std::error::Error for Refusal {}

/// Result of a handler that does not reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The caller gets [`CallError::Refused`].
    Refused(Refusal),
    /// Another route's instance answers the caller. It counts as begun: see [`CallError::has_not_begun`].
    Forward { route: String },
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Turns a text into a refusal with code 0, which means no code.
impl From<String> for Rejection {
    fn from(text: String) -> Self {
        Self::Refused(Refusal::new(0, text))
    }
}

impl From<&str> for Rejection {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
