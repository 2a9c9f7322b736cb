//! Decoding of the sequencer's answers to a publisher.

use super::publishing_session::PublishingSession;
use crate::ClientError;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpened};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Frame, Kind};

pub(super) enum Response {
    Throttled { until_ns: u64 },
    Limit,
    NotLeader { leaders: String },
}

/// No session gets this far, and above it sums could overflow.
const NUMBER_MAX: u64 = u64::MAX / 2;

pub(super) fn take_response(
    publisher: &mut PublishingSession,
    frame: &Frame<'_>,
    now_ns: u64,
) -> Result<Option<Response>, ClientError> {
    let protocol = |what: &str| Err(ClientError::Protocol { what: what.to_owned() });
    if frame.kind() != Kind::Reply {
        return protocol("an answer that is no reply");
    }
    if frame.flags() & REFUSED_FLAG != 0 {
        let Some(refusal) = Refusal::from_bytes(frame.payload()) else { return protocol("a malformed refusal") };
        let is_own = publisher.session() == Some(frame.session());
        match refusal.code {
            RefusalCode::Gap if is_own && (1..=NUMBER_MAX).contains(&refusal.detail) => {
                publisher.note_missing(refusal.detail, now_ns)
            }
            RefusalCode::SessionUnknown if is_own => publisher.note_unknown(),
            RefusalCode::Throttled => return Ok(Some(Response::Throttled { until_ns: refusal.detail })),
            RefusalCode::Limit => return Ok(Some(Response::Limit)),
            RefusalCode::NotLeader => {
                publisher.note_unknown();
                return Ok(Some(Response::NotLeader { leaders: refusal.text.to_owned() }));
            }
            RefusalCode::Gap | RefusalCode::SessionUnknown => {}
            code => {
                let what = format!("a refusal of this connection: {code:?} {}", refusal.text);
                return Err(ClientError::Protocol { what });
            }
        }
        return Ok(None);
    }
    if frame.session_seq() != 0 {
        if publisher.session() == Some(frame.session()) && frame.session_seq() <= NUMBER_MAX {
            publisher.note_accepted(frame.session_seq(), now_ns);
        }
        return Ok(None);
    }
    let Some(opened) = SessionOpened::from_bytes(frame.payload()) else {
        return protocol("a malformed answer to a session open");
    };
    if opened.next_session_seq == 0 || opened.next_session_seq > NUMBER_MAX {
        return protocol("a session's next number that none can be");
    }
    if opened.token == publisher.token() {
        publisher.opened(frame.session(), &opened, now_ns)?;
    }
    Ok(None)
}
