//! The guard around what an application writes: a panic becomes a reason why the call had no effect, and so do outputs that
//! cannot be kept. The fold and the speculative executor call their handlers here and nowhere else. The guard changes
//! nothing: what a reason means (stop, refuse, roll back) is the caller's to decide.

use crate::outputs::{Outcome, Outputs};
use crate::reject::Reject;
use crate::sessions::NOTICES_UNRECEIVED_MAX;
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
    /// The handler succeeded, and its outputs or its changes of the state cannot be kept.
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

/// Checks the outputs of a handler that succeeded. `unreceived` says how many notices a session has not received yet; where
/// it says `None` the session has no limit.
///
/// # Errors
/// An output has no receiver, or its session has too many unreceived notices.
#[inline]
pub(crate) fn check_outputs(
    outputs: &Outputs,
    is_on_event_stream: bool,
    unreceived: impl Fn(u64) -> Option<usize>,
) -> Result<(), Refused> {
    match without_receiver(outputs, is_on_event_stream).or_else(|| full_notices(outputs, unreceived)) {
        None => Ok(()),
        Some(reason) => Err(Refused::Inadmissible(reason)),
    }
}

/// Whether a call has outputs that its service has no place for.
#[inline]
fn without_receiver(outputs: &Outputs, is_on_event_stream: bool) -> Option<String> {
    if !is_on_event_stream && !outputs.published.is_empty() {
        return Some("only a service on an event stream publishes; this one replies".to_owned());
    }
    let has_reply = outputs.reply.is_some() || outputs.reply_too_long.is_some();
    if is_on_event_stream && (has_reply || !outputs.notices.is_empty()) {
        return Some("on an event stream nobody waits for a reply; publish instead".to_owned());
    }
    None
}

/// Whether a session would be left with too many unreceived notices; `unreceived` as for [`check_outputs`].
#[inline]
pub(crate) fn full_notices(outputs: &Outputs, unreceived: impl Fn(u64) -> Option<usize>) -> Option<String> {
    outputs.notices.iter().find_map(|(session, _)| {
        let new = outputs.notices.iter().filter(|(other, _)| other == session).count();
        let kept = unreceived(*session)?;
        (kept + new > NOTICES_UNRECEIVED_MAX)
            .then(|| format!("session {session} has {kept} unreceived notices; the limit is {NOTICES_UNRECEIVED_MAX}"))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use gapless_schema::Encoding;
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

    #[test]
    fn notices_have_a_limit_where_their_session_has_one() {
        let mut outputs = Outputs::default();
        for session in [1, 2, 1] {
            let draft = outputs.stage(0, Encoding::Opaque, 0, |_| Ok::<_, ()>(0)).unwrap();
            outputs.notices.push((session, draft));
        }
        let check = |unreceived: fn(u64) -> Option<usize>| check_outputs(&outputs, false, unreceived);
        assert!(check(|_| Some(0)).is_ok());
        assert!(check(|_| Some(NOTICES_UNRECEIVED_MAX - 2)).is_ok());
        let (code, _, text, dead) = told(check(|_| Some(NOTICES_UNRECEIVED_MAX - 1)));
        assert_eq!((code, dead), (RefusalCode::Rejected, true));
        assert_eq!(text, "session 1 has 1023 unreceived notices; the limit is 1024");
        assert!(check(|session| (session == 2).then_some(NOTICES_UNRECEIVED_MAX - 1)).is_ok());
        assert!(check_outputs(&outputs, true, |_| None).is_err(), "an event stream has no notices");
    }
}
