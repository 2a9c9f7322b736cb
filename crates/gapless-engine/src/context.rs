//! [`Context`]: what a handler knows of its message, and what it may do.

use crate::outputs::{Draft, Outputs, TimerChange};
use crate::random;
use crate::reject::Reject;
use crate::sessions::{NOTICES_UNRECEIVED_MAX, Receivers};
use gapless_client::client::MessageType;
use gapless_schema::{Direct, Encode, EncodeError, Encoding, schema_key};

/// Where a message stands in the order, and where its handler's outputs go.
pub struct Context<'a> {
    pub(crate) outputs: &'a mut Outputs,
    pub(crate) sessions: &'a dyn Receivers,
    /// Whether the stream belongs to others: then nobody waits for replies, and the handler publishes.
    pub(crate) is_on_event_stream: bool,
    pub(crate) sequence: u64,
    pub(crate) time_ns: u64,
    pub(crate) session: u64,
    pub(crate) session_seq: u64,
    pub(crate) version: u32,
    /// Random numbers so far.
    pub(crate) drawn: u64,
}

/// The longest output of a handler, bytes. The same in each stream, for ever: a handler that meets it live meets it again at
/// each replay.
pub const OUTPUT_LENGTH_MAX: usize = gapless_transport::link::ANSWER_LENGTH_MAX;

/// Room for a direct encoder whose caller names no length, in bytes.
const DIRECT_LENGTH_MAX: usize = 4096;

impl Context<'_> {
    /// The message's place in the total order: unique, gapless, the same at every replay. A good
    /// source of identifiers.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Sequenced time in nanoseconds since the epoch: strictly rising, the same at every replay.
    #[must_use]
    pub const fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// The next random number, any of the 2⁶⁴: made of where the message stands, so that it is the same on every member, at every replay and in every
    /// later program ([`random`]). Whoever knows sequence and time can tell it: no secret is made of it.
    #[must_use]
    pub const fn random(&mut self) -> u64 {
        let number = random::number(self.sequence, self.time_ns, self.drawn);
        self.drawn += 1;
        number
    }

    /// The next random number, below `limit`.
    ///
    /// # Panics
    /// If `limit` is 0.
    #[must_use]
    pub const fn random_below(&mut self, limit: u64) -> u64 {
        random::below(self.random(), limit)
    }

    /// Which version of itself the service acts as ([`crate::Service::versions`]): the same at every replay.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Who sent the message; 0 for a timer.
    #[must_use]
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// The message's number in its session; 0 for a timer.
    #[must_use]
    pub const fn session_seq(&self) -> u64 {
        self.session_seq
    }

    /// Replies with an object.
    ///
    /// # Errors
    /// The object cannot be encoded, there is a reply already, or nobody waits for one (on an event stream).
    pub fn reply<M: Encode>(&mut self, message: &M) -> Result<(), Reject> {
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.reply_bytes(schema, M::ENCODING, message.encoded_length(), |buffer| message.encode(buffer))
    }

    /// Replies by writing fields in place through the message's encoder.
    ///
    /// # Errors
    /// The message does not fit 4 KiB (see [`Context::reply_bytes`]), or there is a reply already.
    #[inline]
    pub fn reply_direct<M: Direct>(
        &mut self,
        write: impl FnOnce(&mut M::Encoder<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), Reject> {
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.reply_bytes(schema, M::ENCODING, DIRECT_LENGTH_MAX, |buffer| encode_direct::<M>(buffer, write))
    }

    /// Replies with bytes; see [`Context::reply_bytes`] for very many.
    ///
    /// # Errors
    /// There is a reply already.
    pub fn reply_with(&mut self, message: MessageType, payload: &[u8]) -> Result<(), Reject> {
        self.reply_bytes(message.schema, message.encoding, payload.len(), |buffer| {
            buffer.copy_from_slice(payload);
            Ok::<_, EncodeError>(payload.len())
        })
    }

    /// Replies with a payload of at most `length_max` bytes, which `encode` writes and tells the length of.
    ///
    /// Beyond 1,048,512 bytes nothing is encoded, and the handler goes on as if it had been: the command is done, and
    /// its publisher is told so, without the reply ([`gapless_client::ClientError::ReplyTooLong`]).
    ///
    /// # Errors
    /// `encode` fails, there is a reply already, or nobody waits for one (on an event stream).
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

    /// Sends an object to `session`, which did not ask for it: a *notice*. It is kept until that session has received it, and
    /// received once, also over a restart of the service and a reconnect of the client.
    ///
    /// A session that is not open (closed, expired, never there, 0) receives nothing, and that is no error, so that one
    /// receiver that has gone does not fail a command for all: [`Context::room_for_notices`] says whether it is open.
    ///
    /// Send first, then change the state: what is refused at the limit has then had no effect.
    ///
    /// # Errors
    /// The session has 1,024 notices that it has not received, those of this call among them; the object cannot be encoded; on
    /// an event stream: there are no sessions, publish instead. Nothing of this message is sent then, and the handler may
    /// refuse with this error (`?`), or go on without it. It is the same at each replay and on each member.
    pub fn send<M: Encode>(&mut self, session: u64, message: &M) -> Result<(), Reject> {
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.send_bytes(session, schema, M::ENCODING, message.encoded_length(), |buffer| message.encode(buffer))
    }

    /// As [`Context::send`], a payload of at most `length_max` bytes, which `encode` writes.
    ///
    /// # Errors
    /// As for [`Context::send`]; `length_max` is beyond 1,048,512 bytes, or `encode` fails.
    pub fn send_bytes<E: std::fmt::Display>(
        &mut self,
        session: u64,
        schema: u32,
        encoding: Encoding,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), Reject> {
        self.check_replies()?;
        // Those of this call are counted only where all of them together could be too many.
        let kept = self.sessions.unreceived(session).unwrap_or(0);
        if kept + self.outputs.notices.len() >= NOTICES_UNRECEIVED_MAX && self.room_for_notices(session) == Some(0) {
            return Err(notices_full(session));
        }
        let draft = self.stage(schema, encoding, length_max, encode)?;
        self.outputs.notices.push((session, draft));
        Ok(())
    }

    /// How many more notices may be sent to `session` now; `None` if it is not open, and then it receives none.
    #[must_use]
    pub fn room_for_notices(&self, session: u64) -> Option<usize> {
        let kept = self.sessions.unreceived(session)?;
        let room = NOTICES_UNRECEIVED_MAX.saturating_sub(kept);
        let new = self.outputs.notices.iter().filter(|(other, _)| *other == session).count();
        Some(room.saturating_sub(new))
    }

    /// Publishes an object into the event stream that the service runs on.
    ///
    /// # Errors
    /// The object cannot be encoded, or the service's stream is its own: its commands have replies.
    pub fn publish<M: Encode>(&mut self, message: &M) -> Result<(), Reject> {
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.publish_bytes(schema, M::ENCODING, message.encoded_length(), |buffer| message.encode(buffer))
    }

    /// Publishes by writing fields in place through the message's encoder.
    ///
    /// # Errors
    /// The message does not fit 4 KiB (see [`Context::publish_bytes`]).
    #[inline]
    pub fn publish_direct<M: Direct>(
        &mut self,
        write: impl FnOnce(&mut M::Encoder<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), Reject> {
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.publish_bytes(schema, M::ENCODING, DIRECT_LENGTH_MAX, |buffer| encode_direct::<M>(buffer, write))
    }

    /// Publishes a payload of at most `length_max` bytes, which `encode` writes, into the event stream that the
    /// service runs on. Copies of the service publish the same, and it is there once.
    ///
    /// # Errors
    /// `length_max` is beyond 1,048,512 bytes, `encode` fails, or the service's stream is its own: its commands have
    /// replies.
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

    /// Calls [`crate::Service::on_timer`] with `timer` once sequenced time has reached `deadline_ns`.
    /// A timer with the same identifier is replaced.
    pub fn set_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.outputs.timers.push(TimerChange::Set { timer, deadline_ns });
    }

    /// Forgets a timer; nothing happens if there is none.
    pub fn cancel_timer(&mut self, timer: u64) {
        self.outputs.timers.push(TimerChange::Cancel { timer });
    }

    /// Whether there are sessions, to reply and to send to.
    #[inline]
    fn check_replies(&self) -> Result<(), Reject> {
        if self.is_on_event_stream {
            return Err("on an event stream nobody waits for a reply; publish instead".into());
        }
        Ok(())
    }

    /// Stages what may be refused for its length; a reply that is too long is not.
    #[inline]
    fn stage<E: std::fmt::Display>(
        &mut self,
        schema: u32,
        encoding: Encoding,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Draft, Reject> {
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

/// Writes fields in place through the encoder of `M`; the length.
#[inline]
fn encode_direct<M: Direct>(
    buffer: &mut [u8],
    write: impl FnOnce(&mut M::Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<usize, EncodeError> {
    let mut encoder = M::encoder(buffer)?;
    write(&mut encoder)?;
    M::finish(encoder)
}
