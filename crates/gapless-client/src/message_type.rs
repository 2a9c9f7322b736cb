//! `MessageType`: schema, message and encoding; with encoding and decoding of generated messages, shared by clients and
//! nodes.

use crate::ClientError;
use gapless_message::{Message, contract};
use gapless_schema::{Decode, Encode, MessageSchema, schema_key};
use gapless_wire::Encoding;

/// Type of a message: everything but its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageType {
    /// Schema id << 16 | template id, or the key of a typed message's name.
    pub schema: u32,
    pub encoding: Encoding,
}

impl MessageType {
    /// Type of an object, encoder or decoder.
    #[must_use]
    pub const fn of<M: MessageSchema>() -> Self {
        Self { schema: schema_key(M::SCHEMA_ID, M::TEMPLATE_ID), encoding: M::ENCODING }
    }

    /// Type of a typed message, by the key of its name.
    #[must_use]
    pub const fn typed<M: Message>() -> Self {
        Self { schema: contract::name_key(M::TYPE_NAME), encoding: Encoding::Postcard }
    }
}

pub(crate) fn encode(message: &impl Encode, buffer: &mut [u8]) -> Result<usize, ClientError> {
    message.encode(buffer).map_err(|error| ClientError::Encode(error.to_string()))
}

pub(crate) fn decode<M: Decode>(found: MessageType, payload: &[u8]) -> Result<M::Decoded<'_>, ClientError> {
    let refuse = |reason| ClientError::Decode { expected: M::NAME, reason };
    let expected = MessageType::of::<M>();
    if found != expected {
        let describe = |it: MessageType| {
            format!("schema {} template {} in {:?}", it.schema >> 16, it.schema & 0xffff, it.encoding)
        };
        return Err(refuse(format!("it is {}, not {}", describe(found), describe(expected))));
    }
    M::decode(payload).map_err(|error| refuse(error.to_string()))
}

/// Decodes a typed message that is no answer.
pub(crate) fn read<M: Message>(found: MessageType, payload: &[u8]) -> Result<M, ClientError> {
    let refuse = |reason| ClientError::Decode { expected: M::TYPE_NAME, reason };
    if found != MessageType::typed::<M>() {
        let MessageType { schema, encoding } = found;
        return Err(refuse(format!("it is another message, {schema:#x} in {encoding:?}")));
    }
    contract::decode_message(payload).map_err(|error| refuse(error.to_string()))
}
