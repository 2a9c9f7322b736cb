//! How a call ends when it does not end with a reply.

use std::fmt;
use std::time::Duration;

/// Why a call has no reply. Each says whether the handler may have begun, because that decides whether it may be repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Nobody serves the route. [`CallOptions::wait_for_route`](crate::CallOptions::wait_for_route) waits for somebody.
    #[error("no copy serves the route {route}")]
    NoRoute {
        /// The route.
        route: String,
    },
    /// There is no room for another call: of the table's slots, the queue, or the limit of the overflow.
    #[error("the route {route} has no room for another call: {reason}")]
    Busy {
        /// The route.
        route: String,
        /// Which limit was reached.
        reason: String,
    },
    /// The request was lost before a handler had begun: it may be repeated without harm.
    #[error("the call of {route} was lost before its handler began, after {attempts} attempts: {reason}")]
    NotBegun {
        /// The route.
        route: String,
        /// How often it was offered.
        attempts: u32,
        /// What happened.
        reason: String,
    },
    /// The handler had begun when its process died or was cut off: nobody knows how far it came.
    #[error("nobody knows what became of the call of {route}, after {attempts} attempts: {reason}")]
    Unknown {
        /// The route.
        route: String,
        /// How often it was offered.
        attempts: u32,
        /// What happened.
        reason: String,
    },
    /// The handler, or an interceptor, refused.
    #[error("{0}")]
    Refused(Refusal),
    /// There was no reply in time.
    #[error("no reply from {route} within {} ms; its handler {}", .after.as_millis(), if *.begun { "had begun" } else { "had not begun" })]
    TimedOut {
        /// The route.
        route: String,
        /// The time that the call had.
        after: Duration,
        /// Whether a handler had begun.
        begun: bool,
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
    /// The request or the reply cannot be encoded or decoded, or is too long.
    #[error("the request or the reply of {route} is not valid: {reason}")]
    BadMessage {
        /// The route.
        route: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The handler panicked.
    #[error("the handler of {route} panicked: {reason}")]
    Panicked {
        /// The route.
        route: String,
        /// The panic's text.
        reason: String,
    },
    /// Other processes cannot be looked for: the domain's directory cannot be read or watched.
    #[error("the copies of the route {route} cannot be looked for: {reason}")]
    Unavailable {
        /// The route.
        route: String,
        /// What the operating system says.
        reason: String,
    },
    /// The domain was closed.
    #[error("the domain is closed")]
    Closed,
}

impl CallError {
    /// Its kind, as counters and reports name it: `no_route`, `busy`, `not_begun`, `unknown` …
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NoRoute { .. } => "no_route",
            Self::Busy { .. } => "busy",
            Self::NotBegun { .. } => "not_begun",
            Self::Unknown { .. } => "unknown",
            Self::Refused(_) => "refused",
            Self::TimedOut { .. } => "timed_out",
            Self::Mismatch { .. } => "mismatch",
            Self::BadMessage { .. } => "bad_message",
            Self::Panicked { .. } => "panicked",
            Self::Unavailable { .. } => "unavailable",
            Self::Closed => "closed",
        }
    }

    /// Whether no handler can have begun: a repetition has no second effect.
    #[must_use]
    pub const fn has_not_begun(&self) -> bool {
        match self {
            Self::NoRoute { .. }
            | Self::Busy { .. }
            | Self::NotBegun { .. }
            | Self::Mismatch { .. }
            | Self::Unavailable { .. }
            | Self::Closed => true,
            Self::TimedOut { begun, .. } => !*begun,
            Self::Unknown { .. } | Self::Refused(_) | Self::BadMessage { .. } | Self::Panicked { .. } => false,
        }
    }
}

/// A handler's refusal: the application's own code, a text for people, and a payload for programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The application's own code.
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
    /// The request goes on to another route, whose copy answers the caller.
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

/// A text is a refusal with code 0.
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
