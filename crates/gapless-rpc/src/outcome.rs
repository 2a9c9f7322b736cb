//! How a call ends when it does not end with a reply.

use crate::notice_route::receiver;
use std::fmt;
use std::time::Duration;

/// Why a call has no reply. Each says whether the handler may have begun, because that decides whether it may be repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Nobody serves the route. [`CallOptions::wait_for_route`](crate::CallOptions::wait_for_route) waits for somebody; if nobody comes in
    /// that time or in that of the call, it is this.
    #[error("{}", no_route(.route, .reason))]
    NoRoute {
        /// The route.
        route: String,
        /// Why not, where there is more to say than that: `the machine depot cannot be reached since 12:30`; else empty.
        reason: String,
    },
    /// There is no room for another call: of the table's slots, the queue, or the limit of the overflow.
    #[error("{}: {reason}", no_room(.route))]
    Busy {
        /// The route.
        route: String,
        /// Which limit was reached.
        reason: String,
    },
    /// The request was lost before a handler had begun: it may be repeated without harm.
    #[error("the call of {route} was lost before its handler began, after {}: {reason}", attempts_in_words(.attempts))]
    NotBegun {
        /// The route.
        route: String,
        /// How often it was offered.
        attempts: u32,
        /// What happened.
        reason: String,
    },
    /// A handler had begun when its process died or was cut off, or had forwarded the request to where it was lost: nobody knows how far
    /// it came.
    #[error("nobody knows what became of the call of {route}, after {}: {reason}", attempts_in_words(.attempts))]
    Unknown {
        /// The route.
        route: String,
        /// How often it was offered.
        attempts: u32,
        /// What happened.
        reason: String,
    },
    /// The handler, or an interceptor, refused; with code 0 and a text also this library, of a request that cannot be forwarded so.
    #[error("the call of {route} was {refusal}")]
    Refused {
        /// The route.
        route: String,
        /// What it says.
        refusal: Refusal,
    },
    /// There was no reply in time.
    #[error("no reply from {route} within {} ms; {}", .after.as_millis(), how_far(*.begun, .not_taken_by))]
    TimedOut {
        /// The route.
        route: String,
        /// The time that the call had.
        after: Duration,
        /// Whether a handler had begun.
        begun: bool,
        /// If none had: processes that serve the route, or may, and have not taken the call, as far as that is known.
        not_taken_by: Vec<u32>,
    },
    /// Both sides do not mean the same by the route.
    #[error("the route {route} is called with {caller}, and served with {copy}: {difference}")]
    Mismatch {
        /// The route.
        route: String,
        /// The caller's types of request and reply, with their versions.
        caller: String,
        /// The copy's.
        copy: String,
        /// Where the types of both first differ: `in the request, Order.price is i64 at the caller and u32 at the copy`.
        difference: String,
    },
    /// The request or the reply cannot be encoded or decoded, or is too long; the reason begins with which of them, and at which side.
    #[error("a message of the route {route} is not valid: {reason}")]
    BadMessage {
        /// The route.
        route: String,
        /// Which message it is, where it cannot be written or read, and why.
        reason: String,
    },
    /// The handler panicked.
    #[error("the handler of {route} panicked: {reason}")]
    Panicked {
        /// The route.
        route: String,
        /// The panic's text, or its beginning if it is longer than a reply may be.
        reason: String,
    },
    /// The handler forwards its request, which this route cannot do: [`RouteBuilder::forwards`](crate::RouteBuilder::forwards) is missing.
    /// A mistake in the program that serves it.
    #[error("the handler of {route} cannot forward its request: {reason}")]
    CannotForward {
        /// The route whose handler it is.
        route: String,
        /// Where to, and why not.
        reason: String,
    },
    /// A process that may serve the route speaks another version of the protocol between processes, and nobody else serves it.
    #[error(
        "the route {route} may be served by process {process_id}, which speaks version {found} of the protocol between processes; \
         this process speaks version {own}"
    )]
    OtherProtocol {
        /// The route.
        route: String,
        /// The other process.
        process_id: u32,
        /// The version that this process speaks.
        own: u16,
        /// The version that the other speaks.
        found: u16,
    },
    /// Copies cannot be looked for: the domain's directory cannot be read or watched, or a process does not say what it serves.
    #[error("the copies of the route {route} cannot be looked for: {reason}")]
    Unavailable {
        /// The route.
        route: String,
        /// What the operating system says, or which process.
        reason: String,
    },
    /// The domain was closed.
    #[error("the domain is closed")]
    Closed,
}

impl CallError {
    /// [`CallError::NoRoute`] without a reason.
    #[must_use]
    pub fn no_route(route: impl Into<String>) -> Self {
        Self::NoRoute { route: route.into(), reason: String::new() }
    }

    /// The request cannot be written by its caller.
    #[cfg(not(loom))]
    pub(crate) fn bad_request_here(route: String, why: &str) -> Self {
        Self::BadMessage { route, reason: format!("the request cannot be written at the caller: {why}") }
    }

    /// The reply cannot be read by its caller.
    #[cfg(not(loom))]
    pub(crate) fn bad_reply_here(route: String, why: &str) -> Self {
        Self::BadMessage { route, reason: format!("the reply cannot be read at the caller: {why}") }
    }

    /// Its kind, as counters and reports name it: `no_route`, `busy`, `not_begun`, `unknown` …
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
    /// The same of a call of which a handler has begun before, on this route or on one that it was forwarded from.
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

    /// Whether no handler can have begun, also not one that has forwarded the request: a repetition has no second effect.
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
        None => format!("no copy serves the route {route}"),
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

fn how_far(begun: bool, not_taken_by: &[u32]) -> String {
    match not_taken_by {
        _ if begun => "its handler had begun".to_owned(),
        [] => "its handler had not begun".to_owned(),
        [process_id] => format!("the copy of process {process_id} did not take the call"),
        processes => {
            let processes = processes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            format!("the copies of processes {processes} did not take the call")
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

/// A handler's refusal: the application's own code, a text for people, and a payload for programs. Between processes it is no longer
/// than a reply may be: a payload that does not fit is left out, and of the text is kept what has room beside the payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The application's own code; 0 is no code, and [`Refusal::OWN_CODES`] are Gapless's.
    pub code: u32,
    /// A text for people.
    pub text: String,
    /// Whatever else the caller is to know.
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

/// What a handler returns instead of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The caller gets [`CallError::Refused`].
    Refused(Refusal),
    /// The request goes on to another route, whose copy answers the caller. It has begun: see [`CallError::has_not_begun`].
    Forward {
        /// That route.
        route: String,
    },
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A text is a refusal with code 0: without a code.
impl From<String> for Rejection {
    fn from(text: String) -> Self {
        Self::Refused(Refusal::new(0, text))
    }
}

/// As the text in a `String`.
impl From<&str> for Rejection {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
