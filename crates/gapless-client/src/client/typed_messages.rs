//! Messages described by a schema: sending objects, and decoding replies.

use super::{Client, MessageType, OwnedReply, Reply};
use crate::ClientError;
use crate::message_type::{decode, encode};
use crate::session_key::SessionKey;
use gapless_schema::{Decode, Encode};
use std::time::Duration;

impl Client {
    /// Like [`Client::send`], for an object of a schema.
    ///
    /// # Errors
    /// As for [`Client::send`]; the object cannot be encoded.
    pub fn send_message<M: Encode>(&mut self, key: SessionKey, message: &M) -> Result<u64, ClientError> {
        self.send(key, MessageType::of::<M>(), message.encoded_length(), |buffer| encode(message, buffer))
    }

    /// Like [`Client::call`], for an object of a schema.
    ///
    /// # Errors
    /// As for [`Client::call`]; the object cannot be encoded.
    pub fn call_message<M: Encode>(
        &mut self,
        key: SessionKey,
        message: &M,
        timeout: Duration,
    ) -> Result<OwnedReply, ClientError> {
        let mut payload = vec![0; message.encoded_length()];
        let length = encode(message, &mut payload)?;
        self.call(key, MessageType::of::<M>(), &payload[..length], timeout)
    }
}

impl<'a> Reply<'a> {
    #[must_use]
    pub const fn message_type(&self) -> MessageType {
        MessageType { schema: self.schema, encoding: self.encoding }
    }

    /// Decodes as an object or a view of the payload.
    ///
    /// # Errors
    /// [`ClientError::Refused`] or [`ClientError::ReplyTooLong`], if it is the refusal of a command;
    /// [`ClientError::Decode`], if it is another message ([`Reply::message_type`]), or malformed.
    pub fn decode<M: Decode>(&self) -> Result<M::Decoded<'a>, ClientError> {
        match self.refused() {
            Some(error) => Err(error),
            None => decode::<M>(self.message_type(), self.payload),
        }
    }
}

impl OwnedReply {
    #[must_use]
    pub const fn message_type(&self) -> MessageType {
        MessageType { schema: self.schema, encoding: self.encoding }
    }

    /// Decodes as an object or a view of the payload.
    ///
    /// # Errors
    /// [`ClientError::Decode`], if it is another message ([`OwnedReply::message_type`]), or malformed.
    pub fn decode<M: Decode>(&self) -> Result<M::Decoded<'_>, ClientError> {
        decode::<M>(self.message_type(), &self.payload)
    }
}
