//! Guard around application code: turns panics and inadmissible changes into refusals. It changes no state: the caller
//! decides whether to stop, refuse or roll back.

use crate::outputs::{ExecutionOutcome, OUTPUT_LENGTH_MAX};
use crate::reject::Reject;
use gapless_schema::Encoding;
use gapless_wire::control::RefusalCode;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) enum HandlerRefusal {
    Undecodable(String),
    Rejected(Reject),
    /// A typed refusal, already encoded as the reply; the outputs hold nothing else. With its type, for reports.
    Typed(&'static str),
    Unhandled(String),
    Inadmissible(String),
    Panicked(String),
    /// Length of a query's answer.
    TooLong(usize),
}

impl From<HandlerRefusal> for ExecutionOutcome {
    /// A refusal by the handler is no fault; all others are dead letters.
    #[cold]
    fn from(refused: HandlerRefusal) -> Self {
        let (code, text) = match refused {
            HandlerRefusal::Typed(_) => return Self::Done,
            HandlerRefusal::Rejected(Reject { code: detail, text }) => {
                return Self::Refused { code: RefusalCode::Rejected, detail, text, dead: false };
            }
            HandlerRefusal::Undecodable(text) => (RefusalCode::Malformed, text),
            HandlerRefusal::Unhandled(text) => (RefusalCode::Unhandled, text),
            HandlerRefusal::Inadmissible(text) => (RefusalCode::Rejected, text),
            HandlerRefusal::Panicked(message) => {
                (RefusalCode::HandlerPanicked, format!("the handler panicked: {message}"))
            }
            HandlerRefusal::TooLong(length) => {
                let (code, detail) = (RefusalCode::ReplyTooLong, length as u64);
                let text = format!("an answer of {length} bytes; {OUTPUT_LENGTH_MAX} are the most");
                return Self::Refused { code, detail, text, dead: true };
            }
        };
        Self::Refused { code, detail: 0, text, dead: true }
    }
}

impl HandlerRefusal {
    #[cold]
    pub(crate) fn undecodable(error: impl std::fmt::Display) -> Self {
        Self::Undecodable(error.to_string())
    }
}

/// Calls application code.
///
/// # Errors
/// The error of `call`, or its panic. The state is then as the call left it.
#[inline]
pub(crate) fn guard(call: impl FnOnce() -> Result<(), HandlerRefusal>) -> Result<(), HandlerRefusal> {
    // Unwind safe: callers drop the outputs, and roll the state back, stop, or keep it as the panic left it, equally in
    // every replay.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

#[cold]
fn panicked(panic: &(dyn Any + Send)) -> HandlerRefusal {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    HandlerRefusal::Panicked(text.unwrap_or_else(|| "no message".to_owned()))
}

/// Text for a message whose name is not known.
pub(crate) fn describe(schema: u32, encoding: Encoding) -> String {
    if encoding == Encoding::Postcard {
        return format!("typed message {schema:#010x}");
    }
    format!("schema {} template {}", schema >> 16, schema & 0xffff)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use std::panic::panic_any;

    fn refusal(called: Result<(), HandlerRefusal>) -> (RefusalCode, u64, String, bool) {
        match called.map_or_else(ExecutionOutcome::from, |()| ExecutionOutcome::Done) {
            ExecutionOutcome::Done => panic!("it has an effect"),
            ExecutionOutcome::Refused { code, detail, text, dead } => (code, detail, text, dead),
        }
    }

    #[test]
    fn empty_call_has_a_reason() {
        assert!(guard(|| Ok(())).is_ok());
        let rejected = guard(|| Err(HandlerRefusal::Rejected(Reject::new(7, "no"))));
        assert_eq!(refusal(rejected), (RefusalCode::Rejected, 7, "no".to_owned(), false));
        let unhandled = guard(|| Err(HandlerRefusal::Unhandled("nothing takes it".to_owned())));
        assert_eq!(refusal(unhandled), (RefusalCode::Unhandled, 0, "nothing takes it".to_owned(), true));
        let inadmissible = guard(|| Err(HandlerRefusal::Inadmissible("too much".to_owned())));
        assert_eq!(refusal(inadmissible), (RefusalCode::Rejected, 0, "too much".to_owned(), true));
        let panicked = |call: fn() -> Result<(), HandlerRefusal>, message: &str| {
            let text = format!("the handler panicked: {message}");
            assert_eq!(refusal(guard(call)), (RefusalCode::HandlerPanicked, 0, text, true));
        };
        panicked(|| panic!("as text"), "as text");
        panicked(|| panic_any("as a string".to_owned()), "as a string");
        panicked(|| panic_any(5), "no message");
    }
}
