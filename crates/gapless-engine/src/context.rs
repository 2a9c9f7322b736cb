//! `Context`: a handler's view of its message, and the outputs that it may produce.

use crate::handler_guard::HandlerRefusal;
use crate::outputs::{OUTPUT_LENGTH_MAX, OutputDraft, Outputs, TimerChange};
use crate::random;
use crate::reject::Reject;
use crate::sessions::{NOTICES_UNRECEIVED_MAX, NoticeReceivers};
use gapless_client::polled::MessageType;
use gapless_schema::{Direct, Encode, EncodeError, Encoding, schema_key};

/// Position of a message in the stream, and the destination of its handler's outputs.
pub struct Context<'a> {
    pub(crate) outputs: &'a mut Outputs,
    pub(crate) sessions: &'a dyn NoticeReceivers,
    pub(crate) is_on_event_stream: bool,
    pub(crate) sequence: u64,
    pub(crate) time_ns: u64,
    pub(crate) session: u64,
    pub(crate) session_seq: u64,
    pub(crate) version: u32,
    pub(crate) drawn: u64,
}

const DIRECT_LENGTH_MAX: usize = 4096;

impl Context<'_> {
    /// Returns the message's sequence: unique, without gaps, the same at every replay.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the sequenced time, ns since the epoch: strictly rising, the same at every replay.
    #[must_use]
    pub const fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// Draws the next random number, uniform over all 2⁶⁴ values: the same on every member, at every replay and in
    /// later program versions ([`random`]). Derived from the message's sequence and time: never use it for secrets.
    #[must_use]
    pub const fn random(&mut self) -> u64 {
        let number = random::number(self.sequence, self.time_ns, self.drawn);
        self.drawn += 1;
        number
    }

    /// Draws a random number below `limit`.
    ///
    /// # Panics
    /// If `limit` is 0.
    #[must_use]
    pub const fn random_below(&mut self, limit: u64) -> u64 {
        random::below(self.random(), limit)
    }

    /// Returns the version that the service acts as ([`crate::Service::versions`]): the same at every replay.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Returns the sender's session; 0 for a timer.
    #[must_use]
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Returns the message's number in its session; 0 for a timer.
    #[must_use]
    pub const fn session_seq(&self) -> u64 {
        self.session_seq
    }

    /// Replies with an object of a schema.
    ///
    /// # Errors
    /// The object cannot be encoded, the handler has replied already, or the service runs on an event stream.
    pub fn reply<M: Encode>(&mut self, message: &M) -> Result<(), Reject> {
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.reply_bytes(schema, M::ENCODING, message.encoded_length(), |buffer| message.encode(buffer))
    }

    /// Replies through the message's direct encoder.
    ///
    /// # Errors
    /// The message does not fit 4 KiB (see [`Context::reply_bytes`]), the handler has replied already, or the service
    /// runs on an event stream.
    #[inline]
    pub fn reply_direct<M: Direct>(
        &mut self,
        write: impl FnOnce(&mut M::Encoder<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), Reject> {
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.reply_bytes(schema, M::ENCODING, DIRECT_LENGTH_MAX, |buffer| encode_direct::<M>(buffer, write))
    }

    /// Replies with bytes; see [`Context::reply_bytes`] for long payloads.
    ///
    /// # Errors
    /// The handler has replied already, or the service runs on an event stream.
    pub fn reply_with(&mut self, message: MessageType, payload: &[u8]) -> Result<(), Reject> {
        self.reply_bytes(message.schema, message.encoding, payload.len(), |buffer| {
            buffer.copy_from_slice(payload);
            Ok::<_, EncodeError>(payload.len())
        })
    }

    /// Replies with a payload of at most `length_max` bytes: `encode` writes it and returns its length. Above 1,048,512
    /// bytes nothing is encoded, the command still takes effect, and its client gets
    /// [`gapless_client::ClientError::ReplyTooLong`].
    ///
    /// # Errors
    /// `encode` fails, the handler has replied already, or the service runs on an event stream.
    #[inline]
    pub fn reply_bytes<E: std::fmt::Display>(
        &mut self,
        schema: u32,
        encoding: Encoding,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), Reject> {
        self.check_replies()?;
        if self.outputs.reply.is_some() || self.outputs.reply_too_long.is_some() {
            return Err(Reject::from("the handler replied twice".to_owned()));
        }
        if length_max > OUTPUT_LENGTH_MAX {
            self.outputs.reply_too_long = Some(length_max as u64);
            return Ok(());
        }
        self.outputs.reply = Some(self.outputs.stage(schema, encoding, length_max, encode)?);
        Ok(())
    }

    /// Sends an object of a schema as a notice ([`Context::notify`]).
    ///
    /// # Errors
    /// The session has 1,024 unacknowledged notices, including those of this call; the object cannot be encoded; or the
    /// service runs on an event stream. Nothing of this message is sent then. The handler may refuse (`?`) or continue.
    pub fn notify_object<M: Encode>(&mut self, session: u64, message: &M) -> Result<(), Reject> {
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.notify_bytes(session, schema, M::ENCODING, message.encoded_length(), |buffer| message.encode(buffer))
    }

    /// Sends a notice like [`Context::notify_object`], of at most `length_max` bytes that `encode` writes.
    ///
    /// # Errors
    /// As for [`Context::notify_object`]; `length_max` is above 1,048,512 bytes, or `encode` fails.
    pub fn notify_bytes<E: std::fmt::Display>(
        &mut self,
        session: u64,
        schema: u32,
        encoding: Encoding,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), Reject> {
        self.check_replies()?;
        let kept = self.sessions.unacknowledged_notices(session).unwrap_or(0);
        if kept + self.outputs.notices.len() >= NOTICES_UNRECEIVED_MAX && self.room_for_notices(session) == Some(0) {
            return Err(notices_full(session));
        }
        let draft = self.stage(schema, encoding, length_max, encode)?;
        self.outputs.notices.push((session, draft));
        Ok(())
    }

    /// Returns how many more notices `session` can take now; `None` if it is not open.
    #[must_use]
    pub fn room_for_notices(&self, session: u64) -> Option<usize> {
        let kept = self.sessions.unacknowledged_notices(session)?;
        let room = NOTICES_UNRECEIVED_MAX.saturating_sub(kept);
        let new = self.outputs.notices.iter().filter(|(other, _)| *other == session).count();
        Some(room.saturating_sub(new))
    }

    /// Publishes an object of a schema to the event stream that the service runs on.
    ///
    /// # Errors
    /// The object cannot be encoded, or the service has a stream of its own: it replies instead.
    pub fn publish_object<M: Encode>(&mut self, message: &M) -> Result<(), Reject> {
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.publish_bytes(schema, M::ENCODING, message.encoded_length(), |buffer| message.encode(buffer))
    }

    /// Publishes through the message's direct encoder.
    ///
    /// # Errors
    /// The message does not fit 4 KiB (see [`Context::publish_bytes`]), or the service has a stream of its own.
    #[inline]
    pub fn publish_direct<M: Direct>(
        &mut self,
        write: impl FnOnce(&mut M::Encoder<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), Reject> {
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.publish_bytes(schema, M::ENCODING, DIRECT_LENGTH_MAX, |buffer| encode_direct::<M>(buffer, write))
    }

    /// Publishes a payload of at most `length_max` bytes that `encode` writes. The stream has it once, although every
    /// instance of the service publishes it.
    ///
    /// # Errors
    /// `length_max` is above 1,048,512 bytes, `encode` fails, or the service has a stream of its own.
    #[inline]
    pub fn publish_bytes<E: std::fmt::Display>(
        &mut self,
        schema: u32,
        encoding: Encoding,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), Reject> {
        if !self.is_on_event_stream {
            return Err("only a service on an event stream publishes; this one replies".into());
        }
        let draft = self.stage(schema, encoding, length_max, encode)?;
        self.outputs.published.push(draft);
        Ok(())
    }

    /// Schedules [`crate::Service::on_timer`] with the number `timer` once sequenced time has reached `deadline_ns`.
    /// Replaces a timer with the same number.
    pub fn set_numbered_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.outputs.timers.push(TimerChange::Set { timer, deadline_ns });
    }

    /// Cancels a timer; does nothing if it is not set.
    pub fn cancel_numbered_timer(&mut self, timer: u64) {
        self.outputs.timers.push(TimerChange::Cancel { timer });
    }

    /// Replies with a typed answer. A reply that is too long is lost; a refusal that is too long becomes an untyped one.
    #[inline]
    pub(crate) fn reply_typed(
        &mut self,
        schema: u32,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), HandlerRefusal>,
    ) -> Result<(), HandlerRefusal> {
        if self.outputs.reply.is_some() || self.outputs.reply_too_long.is_some() {
            // The command has an effect, so this is no refusal.
            let text = "the handler sent a reply by its context and returned one, too";
            return Err(HandlerRefusal::Panicked(text.to_owned()));
        }
        self.outputs.reply_too_long = self.outputs.stage_reply(schema, OUTPUT_LENGTH_MAX, encode)?;
        Ok(())
    }

    #[inline]
    pub(crate) fn check_replies(&self) -> Result<(), Reject> {
        if self.is_on_event_stream {
            return Err("on an event stream nobody waits for a reply; publish instead".into());
        }
        Ok(())
    }

    /// Stages an output that may be refused for its length. A reply is not: see [`Context::reply_bytes`].
    #[inline]
    fn stage<E: std::fmt::Display>(
        &mut self,
        schema: u32,
        encoding: Encoding,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<OutputDraft, Reject> {
        if length_max > OUTPUT_LENGTH_MAX {
            let reason = format!("an output of {length_max} bytes; {OUTPUT_LENGTH_MAX} are the most");
            return Err(Reject::from(reason));
        }
        Ok(self.outputs.stage(schema, encoding, length_max, encode)?)
    }
}

#[cold]
fn notices_full(session: u64) -> Reject {
    format!("session {session} has {NOTICES_UNRECEIVED_MAX} unreceived notices, and may have no more").into()
}

#[inline]
fn encode_direct<M: Direct>(
    buffer: &mut [u8],
    write: impl FnOnce(&mut M::Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<usize, EncodeError> {
    let mut encoder = M::encoder(buffer)?;
    write(&mut encoder)?;
    M::finish(encoder)
}
