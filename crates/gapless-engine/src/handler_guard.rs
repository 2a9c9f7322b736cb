//! What becomes of a handler's call: why it had no effect, and which of its outputs cannot be kept. Called around
//! handlers by the fold and by the speculative executor.

use crate::outputs::Outputs;
use crate::reject::Reject;
use crate::sessions::{NOTICES_UNRECEIVED_MAX, SessionTable};
use gapless_schema::DecodeError;
use std::any::Any;

/// Why a handler's call had no effect.
pub(crate) enum Refused {
    /// The payload is not the message that its header says.
    Undecodable(DecodeError),
    /// The handler said no.
    Rejected(Reject),
    /// There is no handler.
    Unhandled(String),
}

/// Whether a call has outputs that its service has no place for.
#[inline]
pub(crate) fn misplaced(is_on_event_stream: bool, outputs: &Outputs) -> Option<String> {
    if !is_on_event_stream && !outputs.published.is_empty() {
        return Some("only a service on an event stream publishes; this one replies".to_owned());
    }
    let has_reply = outputs.reply.is_some() || outputs.reply_too_long.is_some();
    if is_on_event_stream && (has_reply || !outputs.notices.is_empty()) {
        return Some("on an event stream nobody waits for a reply; publish instead".to_owned());
    }
    None
}

/// Whether a session would be left with too many unreceived notices.
pub(crate) fn full_notices(sessions: &SessionTable, outputs: &Outputs) -> Option<String> {
    outputs.notices.iter().find_map(|(session, _)| {
        let new = outputs.notices.iter().filter(|(other, _)| other == session).count();
        let kept = sessions.get(*session)?.notices.len();
        (kept + new > NOTICES_UNRECEIVED_MAX)
            .then(|| format!("session {session} has {kept} unreceived notices; the limit is {NOTICES_UNRECEIVED_MAX}"))
    })
}

pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
