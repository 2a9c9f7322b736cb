//! [`Context`]: what a handler knows of its message, and what it may do.

use crate::outputs::{Draft, Outputs, TimerChange};
use crate::reject::Reject;
use gapless_client::client::MessageType;
use gapless_schema::{Direct, Encode, EncodeError, Encoding, schema_key};

/// Where a message stands in the order, and where its handler's outputs go.
pub struct Context<'a> {
    pub(crate) outputs: &'a mut Outputs,
    pub(crate) sequence: u64,
    pub(crate) time_ns: u64,
    pub(crate) session: u64,
    pub(crate) session_seq: u64,
    pub(crate) version: u32,
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
    /// The object cannot be encoded, or there is a reply already.
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
    /// Beyond [`OUTPUT_LENGTH_MAX`] nothing is encoded, and the handler goes on as if it had been: the command is done, and
    /// its publisher is told so, without the reply ([`gapless_client::ClientError::ReplyTooLong`]).
    ///
    /// # Errors
    /// `encode` fails, or there is a reply already.
    #[inline]
    pub fn reply_bytes<E: std::fmt::Display>(
        &mut self,
        schema: u32,
        encoding: Encoding,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), Reject> {
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

    /// Sends an object to `session`, which did not ask for it. It is kept until that session has
    /// received it, and then received once.
    ///
    /// # Errors
    /// The object cannot be encoded.
    pub fn send<M: Encode>(&mut self, session: u64, message: &M) -> Result<(), Reject> {
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.send_bytes(session, schema, M::ENCODING, message.encoded_length(), |buffer| message.encode(buffer))
    }

    /// Sends a payload of at most `length_max` bytes, which `encode` writes, to `session`.
    ///
    /// # Errors
    /// `length_max` is beyond [`OUTPUT_LENGTH_MAX`], or `encode` fails.
    pub fn send_bytes<E: std::fmt::Display>(
        &mut self,
        session: u64,
        schema: u32,
        encoding: Encoding,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), Reject> {
        let draft = self.stage(schema, encoding, length_max, encode)?;
        self.outputs.notices.push((session, draft));
        Ok(())
    }

    /// Publishes an object into the event stream that the service runs on.
    ///
    /// # Errors
    /// The object cannot be encoded.
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
    /// `length_max` is beyond [`OUTPUT_LENGTH_MAX`], or `encode` fails. A service whose stream is its own is refused
    /// when its handler returns: its commands have replies.
    #[inline]
    pub fn publish_bytes<E: std::fmt::Display>(
        &mut self,
        schema: u32,
        encoding: Encoding,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), Reject> {
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
