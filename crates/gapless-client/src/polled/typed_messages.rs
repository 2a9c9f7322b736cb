//! Typed requests and their answers; objects of a schema: sending them, and decoding replies.

use super::{MessageType, OwnedReply, PolledClient, Reply};
use crate::ClientError;
use crate::message_type::{decode, encode, read};
use crate::session_key::SessionKey;
use gapless_message::contract::{self, AnswerError};
use gapless_message::{Message, MessageError, Request};
use gapless_schema::{Decode, Encode};
use gapless_wire::control::RefusalCode;
use std::time::Duration;

impl PolledClient {
    /// Like [`PolledClient::send`], for a typed request. [`Reply::answer`] decodes its answer.
    ///
    /// # Errors
    /// As for [`PolledClient::send`]; the request cannot be encoded.
    pub fn send_request<R: Request>(&mut self, key: SessionKey, request: &R) -> Result<u64, ClientError> {
        let number = self.enqueue_request(key, request)?;
        self.flush();
        Ok(number)
    }

    /// Like [`PolledClient::enqueue`], for a typed request.
    ///
    /// # Errors
    /// As for [`PolledClient::send_request`].
    #[inline]
    pub fn enqueue_request<R: Request>(&mut self, key: SessionKey, request: &R) -> Result<u64, ClientError> {
        let payload = self.encode_request(request)?;
        let sent = self.enqueue(key, MessageType::typed::<R>(), payload.len(), |buffer| {
            buffer.copy_from_slice(&payload);
            Ok(payload.len())
        });
        self.request = payload;
        sent
    }

    /// Like [`PolledClient::call`], for a typed request: its reply, or its refusal. For a request that the service does
    /// not handle, the client asks it for its types, which may take another second.
    ///
    /// # Errors
    /// As for [`PolledClient::call`]; [`ClientError::Mismatch`]; the request cannot be encoded, or the answer cannot be
    /// decoded.
    pub fn call_request<R: Request>(
        &mut self,
        key: SessionKey,
        request: &R,
        timeout: Duration,
    ) -> Result<Result<R::Reply, R::Refusal>, ClientError> {
        let payload = self.encode_request(request)?;
        let called = self.call(key, MessageType::typed::<R>(), &payload, timeout);
        self.request = payload;
        match called {
            Err(error @ ClientError::Refused { code: RefusalCode::Unhandled, .. }) => {
                Err(self.explained_command::<R>(error, timeout))
            }
            called => called?.answer::<R>(),
        }
    }

    pub(super) fn encode_request<R: Request>(&mut self, request: &R) -> Result<Vec<u8>, ClientError> {
        let mut payload = std::mem::take(&mut self.request);
        payload.clear();
        contract::encode_request(request, &mut payload).map_err(|error| ClientError::Encode(error.to_string()))?;
        Ok(payload)
    }

    /// Like [`PolledClient::send`], for an object of a schema.
    ///
    /// # Errors
    /// As for [`PolledClient::send`]; the object cannot be encoded.
    pub fn send_message<M: Encode>(&mut self, key: SessionKey, message: &M) -> Result<u64, ClientError> {
        self.send(key, MessageType::of::<M>(), message.encoded_length(), |buffer| encode(message, buffer))
    }

    /// Like [`PolledClient::call`], for an object of a schema.
    ///
    /// # Errors
    /// As for [`PolledClient::call`]; the object cannot be encoded.
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

    /// Reads as a typed message that is no answer: a notice.
    ///
    /// # Errors
    /// [`ClientError::Decode`], if it is another message ([`Reply::message_type`]), or malformed.
    pub fn read<M: Message>(&self) -> Result<M, ClientError> {
        read(self.message_type(), self.payload)
    }

    /// Decodes the answer to a typed request: its reply, or its refusal.
    ///
    /// # Errors
    /// [`ClientError::Refused`] or [`ClientError::ReplyTooLong`], if the engine refused the command;
    /// [`ClientError::ReplyLost`]; [`ClientError::Decode`], if it is another message, or malformed.
    pub fn answer<R: Request>(&self) -> Result<Result<R::Reply, R::Refusal>, ClientError> {
        match self.refused() {
            Some(error) => Err(error),
            None => answer::<R>(self.message_type(), self.sequence, self.payload),
        }
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

    /// Decodes the answer to a typed request: its reply, or its refusal.
    ///
    /// # Errors
    /// [`ClientError::ReplyLost`]; [`ClientError::Decode`], if it is another message, or malformed.
    pub fn answer<R: Request>(&self) -> Result<Result<R::Reply, R::Refusal>, ClientError> {
        answer::<R>(self.message_type(), self.sequence, &self.payload)
    }

    /// Decodes as an object or a view of the payload.
    ///
    /// # Errors
    /// [`ClientError::Decode`], if it is another message ([`OwnedReply::message_type`]), or malformed.
    pub fn decode<M: Decode>(&self) -> Result<M::Decoded<'_>, ClientError> {
        decode::<M>(self.message_type(), &self.payload)
    }
}

pub(super) fn answer<R: Request>(
    found: MessageType,
    sequence: u64,
    payload: &[u8],
) -> Result<Result<R::Reply, R::Refusal>, ClientError> {
    if found != MessageType::typed::<R>() {
        let reason = format!("it is schema {:#x} in {:?}, no answer to {}", found.schema, found.encoding, R::TYPE_NAME);
        return Err(ClientError::Decode { expected: R::Reply::TYPE_NAME, reason });
    }
    contract::decode_answer::<R>(payload).map_err(|error| match error {
        AnswerError::ReplyLost => ClientError::ReplyLost { sequence, reply: R::Reply::TYPE_NAME },
        AnswerError::Message(MessageError { type_name, reason }) => ClientError::Decode { expected: type_name, reason },
    })
}
