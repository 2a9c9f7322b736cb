//! The guard around what an application writes: a panic becomes a reason why the call had no effect, and so do changes
//! that cannot be kept. The fold and the speculative executor call their handlers here and nowhere else. The guard changes
//! nothing: what a reason means (stop, refuse, roll back) is the caller's to decide.

use crate::outputs::Outcome;
use crate::reject::Reject;
use gapless_schema::DecodeError;
use gapless_wire::control::RefusalCode;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a handler's call had no effect.
pub(crate) enum Refused {
    /// The payload is not the message that its header says.
    Undecodable(DecodeError),
    /// The handler refused.
    Rejected(Reject),
    /// There is no handler.
    Unhandled(String),
    /// The handler succeeded, and its changes of the state cannot be kept.
    Inadmissible(String),
    /// The handler panicked, with this message.
    Panicked(String),
}

impl From<Refused> for Outcome {
    /// What the publisher is told. What the handler itself has refused is no fault; all else is recorded as a dead letter.
    #[cold]
    fn from(refused: Refused) -> Self {
        let (code, text) = match refused {
            Refused::Rejected(Reject { code: detail, text }) => {
                return Self::Refused { code: RefusalCode::Rejected, detail, text, dead: false };
            }
            Refused::Undecodable(error) => (RefusalCode::Malformed, error.to_string()),
            Refused::Unhandled(text) => (RefusalCode::Unhandled, text),
            Refused::Inadmissible(text) => (RefusalCode::Rejected, text),
            Refused::Panicked(message) => (RefusalCode::HandlerPanicked, format!("the handler panicked: {message}")),
        };
        Self::Refused { code, detail: 0, text, dead: true }
    }
}

/// Calls what an application has written.
///
/// # Errors
/// What `call` returns, or that it panicked. The state that it worked on is then as the panic left it.
#[inline]
pub(crate) fn guard(call: impl FnOnce() -> Result<(), Refused>) -> Result<(), Refused> {
    // Unwind safe: callers drop the outputs of a call that had no effect, and roll the state back, stop, or keep it as the
    // panic left it, on every replay alike.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

#[cold]
fn panicked(panic: &(dyn Any + Send)) -> Refused {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    Refused::Panicked(text.unwrap_or_else(|| "no message".to_owned()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use std::panic::panic_any;

    /// What a publisher is told, and whether it is recorded.
    fn told(called: Result<(), Refused>) -> (RefusalCode, u64, String, bool) {
        match called.map_or_else(Outcome::from, |()| Outcome::Done) {
            Outcome::Done => panic!("it has an effect"),
            Outcome::Refused { code, detail, text, dead } => (code, detail, text, dead),
        }
    }

    #[test]
    fn a_call_without_effect_is_a_refusal_that_says_why() {
        assert!(guard(|| Ok(())).is_ok());
        let rejected = guard(|| Err(Refused::Rejected(Reject::new(7, "no"))));
        assert_eq!(told(rejected), (RefusalCode::Rejected, 7, "no".to_owned(), false));
        let unhandled = guard(|| Err(Refused::Unhandled("nothing takes it".to_owned())));
        assert_eq!(told(unhandled), (RefusalCode::Unhandled, 0, "nothing takes it".to_owned(), true));
        let inadmissible = guard(|| Err(Refused::Inadmissible("too much".to_owned())));
        assert_eq!(told(inadmissible), (RefusalCode::Rejected, 0, "too much".to_owned(), true));
        let panicked = |call: fn() -> Result<(), Refused>, message: &str| {
            let text = format!("the handler panicked: {message}");
            assert_eq!(told(guard(call)), (RefusalCode::HandlerPanicked, 0, text, true));
        };
        panicked(|| panic!("as text"), "as text");
        panicked(|| panic_any("as a string".to_owned()), "as a string");
        panicked(|| panic_any(5), "no message");
    }
}
