//! Typed messages without an answer: timers, notices and events. Their payloads name their contract.

use crate::context::Context;
use crate::handler_guard::HandlerRefusal;
use crate::outputs::OUTPUT_LENGTH_MAX;
use crate::outputs::{OutputDraft, TimerChange};
use crate::sessions::NOTICES_UNRECEIVED_MAX;
use gapless_message::contract::{self, ContractError};
use gapless_message::{Deterministic, Message};
use gapless_schema::Encoding;
use serde::{Deserialize, Serialize};

/// A session with 1,024 unacknowledged notices, which takes no more. The notice was not sent; the handler may go on, or
/// refuse with this error, which is a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, gapless_message::Message)]
#[message(name = "gapless.NoticesFull")]
#[error("session {session} has {NOTICES_UNRECEIVED_MAX} unreceived notices, and may have no more")]
pub struct NoticesFull {
    pub session: u64,
}

impl Context<'_> {
    /// Sends a *notice*, a message that is no reply, to `session`. Delivered exactly once, even across restarts of the
    /// service and reconnects of the client. Dropped without an error if the session is not open
    /// ([`Context::room_for_notices`]), so that one departed receiver does not fail a command for all. Send first, then
    /// change the state: a refusal at the limit then has no effect.
    ///
    /// A message with an unordered collection does not compile, here and wherever a service writes one: the members of a
    /// cluster would write different bytes.
    ///
    /// ```compile_fail,E0277
    /// use gapless_message::Message;
    /// use serde::{Deserialize, Serialize};
    /// use std::collections::HashMap;
    ///
    /// #[derive(Serialize, Deserialize, Message)]
    /// struct Prices(HashMap<u32, u64>);
    ///
    /// fn tell(context: &mut gapless_engine::Context<'_>, prices: Prices) {
    ///     let _ = context.notify(context.session(), &prices);
    /// }
    /// ```
    ///
    /// # Errors
    /// [`NoticesFull`]: the session has 1,024 unacknowledged notices, including those of this call.
    ///
    /// # Panics
    /// The service runs on an event stream, or the message cannot be encoded or is longer than 1,048,512 bytes.
    pub fn notify<M: Message + Deterministic>(&mut self, session: u64, message: &M) -> Result<(), NoticesFull> {
        assert!(!self.is_on_event_stream, "on an event stream no one is notified; publish instead");
        let Some(kept) = self.sessions.unacknowledged_notices(session) else { return Ok(()) };
        if kept + self.outputs.notices.len() >= NOTICES_UNRECEIVED_MAX && self.room_for_notices(session) == Some(0) {
            return Err(NoticesFull { session });
        }
        let draft = self.stage_message(message);
        self.outputs.notices.push((session, draft));
        Ok(())
    }

    /// Publishes a message to the event stream that the service runs on. The stream has it once, although every instance
    /// of the service publishes it.
    ///
    /// # Panics
    /// The service has a stream of its own, or the message cannot be encoded or is longer than 1,048,512 bytes.
    pub fn publish<M: Message + Deterministic>(&mut self, message: &M) {
        assert!(self.is_on_event_stream, "only a service on an event stream publishes; this one replies");
        let draft = self.stage_message(message);
        self.outputs.published.push(draft);
    }

    /// Schedules the handler of `M` ([`Handlers::timer`](crate::Handlers::timer)) with `message`, once sequenced time has
    /// reached `deadline_ns`. A timer with an equal message moves there.
    ///
    /// # Panics
    /// The service has no handler for it, or the message cannot be encoded or is longer than 1,048,512 bytes.
    pub fn set_timer<M: Message + Deterministic>(&mut self, message: &M, deadline_ns: u64) {
        let schema = contract::name_key(M::TYPE_NAME);
        let is_taken = self.outputs.timer_schemas.contains(&schema);
        assert!(is_taken, "no handler takes timers with {}", M::TYPE_NAME);
        let message = self.stage_message(message);
        self.outputs.timers.push(TimerChange::SetMessage { message, deadline_ns });
    }

    /// Cancels the timer with an equal message; does nothing if it is not set.
    ///
    /// # Panics
    /// The message cannot be encoded, or is longer than 1,048,512 bytes.
    pub fn cancel_timer<M: Message + Deterministic>(&mut self, message: &M) {
        let message = self.stage_message(message);
        self.outputs.timers.push(TimerChange::CancelMessage { message });
    }

    fn stage_message<M: Message>(&mut self, message: &M) -> OutputDraft {
        let mut payload = self.outputs.take_typed();
        if let Err(error) = contract::encode_message(message, &mut payload) {
            panic!("{error}");
        }
        let length = payload.len();
        assert!(length <= OUTPUT_LENGTH_MAX, "{} of {length} bytes; {OUTPUT_LENGTH_MAX} are the most", M::TYPE_NAME);
        let draft = self.outputs.stage_bytes(contract::name_key(M::TYPE_NAME), Encoding::Postcard, &payload);
        self.outputs.put_back(payload);
        draft
    }
}

/// Decodes a message in its sender's version.
#[inline]
pub(crate) fn decode<M: Message>(payload: &[u8]) -> Result<M, HandlerRefusal> {
    contract::decode_message(payload).map_err(undecodable)
}

#[cold]
fn undecodable(error: ContractError) -> HandlerRefusal {
    match error {
        ContractError::Unknown { .. } => HandlerRefusal::Unhandled(error.to_string()),
        ContractError::Message(_) => HandlerRefusal::undecodable(error),
    }
}
