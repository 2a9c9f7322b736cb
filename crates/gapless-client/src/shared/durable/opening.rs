//! Opening of a durable client: the session of the earlier life, and the outcomes of its commands. All outcomes are
//! asked for before a new command is sent, because the service keeps only the replies of a session's last commands.

use super::log::{CommandLog, Unsettled};
use crate::polled::{Outcome, PolledClient, SavedSession, WINDOW_COMMANDS_MAX};
use crate::shared::call_state::Ending;
use crate::{ClientError, SessionKey};
use gapless_transport::token::random_token;
use gapless_wire::control::RefusalCode;
use std::time::Duration;

const SESSION_GONE: &str = "its session has expired, or the stream was restored, between two lives of this program";
const REPLY_GONE: &str = "the service no longer keeps its reply";
const BY_HAND: &str = "settle the kept commands by hand, and remove the directory, or give the address of their stream";

/// Resumes the session of the log, or opens a new one, and settles what it can.
///
/// # Errors
/// The address leads to another stream, or to one that lacks seen history; an outcome is not known yet; the disk or
/// the connection fails. Nothing is lost: open again.
pub(super) fn resume(client: &mut PolledClient, log: &CommandLog, within: Duration) -> Result<SessionKey, ClientError> {
    let Some(saved) = log.session() else { return open_session(client, log) };
    let (expected, found) = (saved.seen.identity, client.welcome().identity);
    if expected.stream_id != 0 && expected.stream_id != found.stream_id {
        return Err(log.error(format!(
            "its commands belong to stream {:032x}, and the service has stream {:032x}; {BY_HAND}",
            expected.stream_id, found.stream_id
        )));
    }
    let resumed = match client.resume_session(&saved) {
        Ok(key) => Some(key),
        Err(ClientError::NoSuchSession(_) | ClientError::OtherStream { .. }) => None,
        Err(error @ ClientError::OtherHistory { .. }) => return Err(log.error(format!("{error}; {BY_HAND}"))),
        Err(error) => return Err(error),
    };
    for unsettled in log.unsettled() {
        match resumed {
            Some(key) => settle(client, log, key, unsettled, within)?,
            None => settle_unknown(log, unsettled)?,
        }
    }
    match resumed {
        Some(key) => save(client, log, key),
        None => open_session(client, log),
    }
}

/// The token is recorded before the service knows it.
fn open_session(client: &mut PolledClient, log: &CommandLog) -> Result<SessionKey, ClientError> {
    let new = client.unopened_session(random_token(), WINDOW_COMMANDS_MAX);
    log.save_session(new)?;
    let key = client.resume_session(&new)?;
    save(client, log, key)
}

fn save(client: &PolledClient, log: &CommandLog, key: SessionKey) -> Result<SessionKey, ClientError> {
    let saved: SavedSession = client.saved_session(key).ok_or(ClientError::NoSuchSession(key))?;
    log.save_session(saved).map(|()| key)
}

fn settle_unknown(log: &CommandLog, unsettled: Unsettled) -> Result<(), ClientError> {
    let Unsettled { id, number, .. } = unsettled;
    log.settle(id, Ending::Unknown { number, reason: SESSION_GONE.to_owned() })
}

fn settle(
    client: &mut PolledClient,
    log: &CommandLog,
    key: SessionKey,
    unsettled: Unsettled,
    within: Duration,
) -> Result<(), ClientError> {
    let Unsettled { id, number, is_of_session } = unsettled;
    if !is_of_session || client.session_id(key) != Some(number.session) {
        return settle_unknown(log, unsettled);
    }
    let ending = match client.outcome(key, number.session_seq, within)? {
        Outcome::Done(reply) => {
            let message = reply.message_type();
            Ending::Reply { sequence: reply.sequence, message, payload: reply.payload }
        }
        Outcome::Refused { code, detail, reason } => {
            Ending::Refused { number, sequence: 0, code, detail, text: reason }
        }
        Outcome::ReplyTooLong { sequence, length_bytes } => {
            let (code, text) = (RefusalCode::ReplyTooLong, String::new());
            Ending::Refused { number, sequence, code, detail: length_bytes, text }
        }
        Outcome::NoLongerKept { .. } => Ending::Unknown { number, reason: REPLY_GONE.to_owned() },
        // It is sent as new.
        Outcome::NotArrived { .. } | Outcome::NoCommand { .. } => return log.unnumber(id),
        Outcome::NotYetDone => {
            let reason = "the service has not handled it yet; open the directory again".to_owned();
            return Err(ClientError::OutcomeUnknown { session_seq: number.session_seq, reason });
        }
    };
    log.settle(id, ending)
}
