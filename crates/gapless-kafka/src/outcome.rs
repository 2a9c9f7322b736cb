//! [`CallOutcome`]: how a call ends, between domains. Every end but reply and refusal is a JSON object, because foreign
//! programs read it.

use gapless_rpc::{CallError, Refusal};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longest text in an end, in bytes; the rest is cut.
pub const TEXT_LENGTH_MAX: usize = 4 << 10;
/// Longest JSON of an end that is read, in bytes.
pub const FAILURE_LENGTH_MAX: usize = 64 << 10;

/// End of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Reply(Vec<u8>),
    Refused(Refusal),
    Failed(CallFailure),
}

/// A call without reply or refusal: the kinds of [`CallError`] without the route, which each side calls by its own
/// name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallFailure {
    NoRoute {
        #[serde(default)]
        reason: String,
    },
    Busy {
        #[serde(default)]
        reason: String,
    },
    NotBegun {
        #[serde(default)]
        attempts: u32,
        #[serde(default)]
        reason: String,
    },
    Unknown {
        #[serde(default)]
        attempts: u32,
        #[serde(default)]
        reason: String,
    },
    TimedOut {
        #[serde(default)]
        after_ms: u64,
        begun: bool,
    },
    Mismatch {
        #[serde(default)]
        caller: String,
        #[serde(default)]
        copy: String,
        #[serde(default)]
        difference: String,
    },
    BadMessage {
        #[serde(default)]
        reason: String,
    },
    Panicked {
        #[serde(default)]
        reason: String,
    },
    CannotForward {
        #[serde(default)]
        reason: String,
    },
    /// End of the kind [`CallError::Unavailable`], and [`CallError::OtherProtocol`] in words.
    Unavailable {
        #[serde(default)]
        reason: String,
    },
    Closed,
}

impl CallFailure {
    pub(crate) fn not_begun(reason: impl Into<String>) -> Self {
        Self::NotBegun { attempts: 1, reason: reason.into() }
    }

    pub(crate) fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown { attempts: 1, reason: reason.into() }
    }

    /// Reads the JSON of a record.
    ///
    /// # Errors
    /// A text longer than [`FAILURE_LENGTH_MAX`], or of no known kind.
    pub fn read(json: &[u8]) -> Result<Self, String> {
        if json.len() > FAILURE_LENGTH_MAX {
            return Err(format!("{} bytes; at most {FAILURE_LENGTH_MAX} are allowed", json.len()));
        }
        serde_json::from_slice(json).map_err(|error| error.to_string())
    }

    /// Writes the JSON of a record; texts of more than [`TEXT_LENGTH_MAX`] bytes are cut.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut short = self.clone();
        short.texts().into_iter().for_each(cut);
        serde_json::to_vec(&short).expect("texts and numbers have a form as JSON")
    }

    fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::NoRoute { reason }
            | Self::Busy { reason }
            | Self::NotBegun { reason, .. }
            | Self::Unknown { reason, .. }
            | Self::BadMessage { reason }
            | Self::Panicked { reason }
            | Self::CannotForward { reason }
            | Self::Unavailable { reason } => vec![reason],
            Self::Mismatch { caller, copy, difference } => vec![caller, copy, difference],
            Self::TimedOut { .. } | Self::Closed => Vec::new(),
        }
    }

    /// The end of a request that never left its bridge.
    #[must_use]
    pub fn into_unsent(self) -> Self {
        match self {
            Self::Unknown { attempts, reason } => Self::NotBegun { attempts, reason },
            Self::TimedOut { after_ms, .. } => Self::TimedOut { after_ms, begun: false },
            other => other,
        }
    }

    /// True if no handler can have begun: see [`CallError::has_not_begun`].
    #[must_use]
    pub fn has_not_begun(&self) -> bool {
        self.clone().into_call_error("").has_not_begun()
    }

    /// The error of a caller that knows the route by this name.
    #[must_use]
    pub fn into_call_error(self, route: &str) -> CallError {
        let route = route.to_owned();
        match self {
            Self::NoRoute { reason } => CallError::NoRoute { route, reason },
            Self::Unavailable { reason } => CallError::Unavailable { route, reason },
            Self::Busy { reason } => CallError::Busy { route, reason },
            Self::NotBegun { attempts, reason } => CallError::NotBegun { route, attempts, reason },
            Self::Unknown { attempts, reason } => CallError::Unknown { route, attempts, reason },
            Self::TimedOut { after_ms, begun } => {
                CallError::TimedOut { route, after: Duration::from_millis(after_ms), begun, not_taken_by: Vec::new() }
            }
            Self::Mismatch { caller, copy, difference } => {
                CallError::Mismatch { route, caller, instance: copy, difference }
            }
            Self::BadMessage { reason } => CallError::BadMessage { route, reason },
            Self::Panicked { reason } => CallError::Panicked { route, reason },
            Self::CannotForward { reason } => CallError::CannotForward { route, reason },
            Self::Closed => CallError::Closed,
        }
    }
}

fn cut(text: &mut String) {
    if text.len() > TEXT_LENGTH_MAX {
        let end = (0..=TEXT_LENGTH_MAX).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
    }
}

impl From<CallError> for CallOutcome {
    fn from(error: CallError) -> Self {
        let words = error.to_string();
        Self::Failed(match error {
            CallError::Refused { refusal, .. } => return Self::Refused(refusal),
            CallError::NoRoute { reason, .. } => CallFailure::NoRoute { reason },
            CallError::Busy { reason, .. } => CallFailure::Busy { reason },
            CallError::NotBegun { attempts, reason, .. } => CallFailure::NotBegun { attempts, reason },
            CallError::Unknown { attempts, reason, .. } => CallFailure::Unknown { attempts, reason },
            CallError::TimedOut { after, begun, .. } => {
                CallFailure::TimedOut { after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX), begun }
            }
            CallError::Mismatch { caller, instance: copy, difference, .. } => {
                CallFailure::Mismatch { caller, copy, difference }
            }
            CallError::BadMessage { reason, .. } => CallFailure::BadMessage { reason },
            CallError::Panicked { reason, .. } => CallFailure::Panicked { reason },
            CallError::CannotForward { reason, .. } => CallFailure::CannotForward { reason },
            CallError::Unavailable { reason, .. } => CallFailure::Unavailable { reason },
            CallError::OtherProtocol { .. } => CallFailure::Unavailable { reason: words },
            CallError::Closed => CallFailure::Closed,
            // A kind of a later version: whether its handler had begun decides about a repetition.
            error if error.has_not_begun() => CallFailure::not_begun(words),
            _ => CallFailure::unknown(words),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors() -> Vec<CallError> {
        let text = |text: &str| text.to_owned();
        let route = text("shop/price");
        vec![
            CallError::NoRoute { route: route.clone(), reason: text("the broker is lost") },
            CallError::Busy { route: route.clone(), reason: text("64 slots") },
            CallError::NotBegun { route: route.clone(), attempts: 3, reason: text("it died") },
            CallError::Unknown { route: route.clone(), attempts: 1, reason: text("it died") },
            CallError::TimedOut {
                route: route.clone(),
                after: Duration::from_millis(70),
                begun: true,
                not_taken_by: vec![],
            },
            CallError::Mismatch {
                route: route.clone(),
                caller: text("A -> B"),
                instance: text("A -> C"),
                difference: text("B is C"),
            },
            CallError::BadMessage { route: route.clone(), reason: text("no JSON") },
            CallError::Panicked { route: route.clone(), reason: text("\u{1b}[2J") },
            CallError::CannotForward { route: route.clone(), reason: text("to nowhere") },
            CallError::Unavailable { route, reason: text("no directory") },
            CallError::Closed,
        ]
    }

    #[test]
    fn every_error_comes_back_the_same() {
        for error in errors() {
            let CallOutcome::Failed(failure) = CallOutcome::from(error.clone()) else { panic!("{error}") };
            let json = failure.to_json();
            let read = CallFailure::read(&json).unwrap();
            assert_eq!(read.has_not_begun(), error.has_not_begun(), "{error}");
            assert_eq!(read.into_call_error("shop/price"), error);
        }
        let other = CallError::OtherProtocol { route: "x".into(), process_id: 7, own: 3, found: 4 };
        let CallOutcome::Failed(CallFailure::Unavailable { reason }) = CallOutcome::from(other) else {
            panic!("another kind")
        };
        assert!(reason.contains("version 4") && reason.contains("version 3"), "{reason}");
    }

    #[test]
    fn long_texts_are_cut_at_characters() {
        let failure = CallFailure::Panicked { reason: format!("x{}", "ü".repeat(TEXT_LENGTH_MAX)) };
        let Ok(CallFailure::Panicked { reason }) = CallFailure::read(&failure.to_json()) else {
            panic!("another kind")
        };
        assert_eq!((reason.len(), reason.ends_with('ü')), (TEXT_LENGTH_MAX - 1, true));
    }

    #[test]
    fn other_bytes_are_no_ends() {
        let long = format!("{{\"kind\":\"closed\",\"x\":\"{}\"}}", "x".repeat(FAILURE_LENGTH_MAX));
        for json in ["", "{}", "[]", "{\"kind\":\"fine\"}", "{\"kind\":\"busy\",\"reason\":7}", &long] {
            assert!(CallFailure::read(json.as_bytes()).is_err(), "{}", &json[..json.len().min(40)]);
        }
    }
}
