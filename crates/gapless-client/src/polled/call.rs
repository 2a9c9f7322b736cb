//! One command and its reply, for callers that have nothing else to do meanwhile.

use super::incoming::DeferredMessage;
use super::reconnecting::DeferredInput;
use super::waiting::{CallWaits, RESEND_INTERVAL, TimeLimit};
use super::{Incoming, MessageType, OwnedReply, PolledClient};
use crate::ClientError;
use crate::session_key::SessionKey;
use gapless_agent::fault::mutant;
use gapless_log::LogError;
use gapless_wire::control::RefusalCode;
use std::time::{Duration, Instant};

impl PolledClient {
    /// Sends `payload` and waits for the reply. Reconnects to a service that is restarted meanwhile; the command takes
    /// effect once.
    ///
    /// Other messages that arrive meanwhile, notices and replies to other commands, are delivered by the next
    /// [`PolledClient::poll`], in their order. A client that calls and never polls keeps them. The service refuses a command
    /// once its session has 1,024 unacknowledged notices.
    ///
    /// # Errors
    /// Each states what happened to the command:
    /// - not sent: [`ClientError::WindowFull`], [`ClientError::NotOpen`] and [`LogError::Full`], if there was no room
    ///   within `timeout`; the other errors of [`PolledClient::send`]; [`ClientError::Disconnected`] and
    ///   [`ClientError::TimedOut`], if the service was gone before there was room;
    /// - sent, outcome unknown: [`ClientError::OutcomeUnknown`], with its number, if there is no reply within
    ///   `timeout`, or the service is gone and does not come back in that time;
    /// - refused: [`ClientError::Refused`];
    /// - done: [`ClientError::ReplyTooLong`], whose reply is lost;
    /// - session lost: [`ClientError::NoSuchSession`]; the stream does not contain the history that this client has
    ///   seen: [`ClientError::OtherHistory`].
    pub fn call(
        &mut self,
        key: SessionKey,
        message: MessageType,
        payload: &[u8],
        timeout: Duration,
    ) -> Result<OwnedReply, ClientError> {
        let begun = self.now();
        let given_up = if mutant("give_up_early") { timeout * 4 / 5 } else { timeout };
        let limit = TimeLimit { given: timeout, end: begun + given_up };
        let deadline = limit.end;
        let mut waits = CallWaits::since(begun);
        let number = loop {
            let sent = self.send(key, message, payload.len(), |buffer| {
                buffer.copy_from_slice(payload);
                Ok(payload.len())
            });
            let (until, room) = match sent {
                Err(ClientError::WindowFull { .. } | ClientError::NotOpen) if self.now() < deadline => {
                    (waits.until(deadline), "room for a command in its session")
                }
                Err(ClientError::Log(LogError::Full { .. })) if self.now() < deadline => {
                    (deadline.min(self.now() + RESEND_INTERVAL), "room for a command in the ring")
                }
                other => break other?,
            };
            if let Some(Err(error)) = self.await_reply(Some(key), None, until, limit)? {
                return Err(error);
            }
            waits.log_if_due(self, room);
        };
        loop {
            match self.await_reply(Some(key), Some(number), waits.until(deadline), limit) {
                Ok(Some(Err(ClientError::Refused { code: RefusalCode::ReplyExpired, reason, .. }))) => {
                    return Err(ClientError::OutcomeUnknown { session_seq: number, reason });
                }
                Ok(Some(answer)) => return answer,
                Ok(None) if self.now() < deadline => waits.log_if_due(self, "a reply"),
                Ok(None) => {
                    let reason = self.no_reply_reason(key, number, timeout);
                    return Err(ClientError::OutcomeUnknown { session_seq: number, reason });
                }
                Err(error @ (ClientError::NoSuchSession(_) | ClientError::OtherHistory { .. })) => return Err(error),
                Err(error) => {
                    return Err(ClientError::OutcomeUnknown { session_seq: number, reason: error.to_string() });
                }
            }
        }
    }

    pub(super) fn no_reply_reason(&self, key: SessionKey, number: u64, timeout: Duration) -> String {
        let (peer, milliseconds) = (self.peer(), timeout.as_millis());
        if self.is_accepted(key, number) {
            return format!(
                "the stream has it, and no service runs at {peer} that would answer, for {milliseconds} ms"
            );
        }
        format!("no reply from {peer} within {milliseconds} ms")
    }

    pub(super) fn is_accepted(&self, key: SessionKey, number: u64) -> bool {
        let (session, accepted) = self.accepted;
        accepted >= number && self.session_id(key) == Some(session)
    }

    /// Keeps every message but the reply to the session's command `number` for the next poll; `None` keeps all.
    /// Reconnects until the end of `limit`.
    pub(super) fn await_reply(
        &mut self,
        key: Option<SessionKey>,
        number: Option<u64>,
        until: Instant,
        limit: TimeLimit,
    ) -> Result<Option<Result<OwnedReply, ClientError>>, ClientError> {
        let mut answer = None;
        let mut deferred = DeferredInput::default();
        let earlier = std::mem::take(&mut self.deferred.messages);
        self.awaits_reply = true;
        let polled = self.poll_into(usize::MAX, &mut |incoming| match incoming {
            Incoming::Reply { session, reply, .. } if Some(session) == key && Some(reply.session_seq) == number => {
                answer = Some(reply.owned());
            }
            Incoming::SessionLost { session } if Some(session) == key => {
                answer = Some(Err(ClientError::NoSuchSession(session)));
            }
            Incoming::Reply { session, reply, first } => {
                deferred.messages.push_back(DeferredMessage::new(session, &reply, Some(first)))
            }
            Incoming::Notice { session, notice } => {
                deferred.messages.push_back(DeferredMessage::new(session, &notice, None))
            }
            Incoming::Opened { session } => deferred.opened.push(session),
            Incoming::SessionLost { session } => deferred.lost.push(session),
        });
        self.awaits_reply = false;
        let is_new = !deferred.messages.is_empty() || self.queries.take_news();
        self.deferred.messages = earlier;
        self.deferred.messages.append(&mut deferred.messages);
        self.deferred.opened.append(&mut deferred.opened);
        self.deferred.lost.append(&mut deferred.lost);
        if answer.is_some() {
            return Ok(answer);
        }
        let left = until.saturating_duration_since(self.now());
        let slept = match polled {
            // A reply may have made room for frames waiting to be resent.
            Ok(_) if is_new || left.is_zero() => Ok(()),
            Ok(_) => self.sleep_for_reply(left),
            Err(error) => Err(error),
        };
        match slept {
            Err(ClientError::Disconnected { peer, reason }) => {
                self.reconnect_until(limit).map_err(|error| with_cause(error, peer, reason))?;
            }
            other => other?,
        }
        Ok(None)
    }
}

fn with_cause(error: ClientError, peer: String, reason: Option<String>) -> ClientError {
    match (error, reason) {
        (
            error @ (ClientError::Disconnected { .. }
            | ClientError::NoSuchSession(_)
            | ClientError::OtherHistory { .. }),
            _,
        )
        | (error, None) => error,
        (error, Some(reason)) => ClientError::Disconnected { peer, reason: Some(format!("{reason}; then: {error}")) },
    }
}
