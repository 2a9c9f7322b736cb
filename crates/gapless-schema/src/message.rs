//! The traits between generated messages and the code that carries them.
//!
//! A service's dispatch takes [`Message`], its replies take [`Encode`] (a whole object) or [`Direct`] (a flyweight,
//! written piece by piece); each is a [`MessageSchema`]. Generated code implements them; nothing here knows a
//! particular message.

use crate::{DecodeError, EncodeError, Encoding};

/// Identity of a message type: schema, message and encoding.
pub trait MessageSchema {
    /// Id of the schema.
    const SCHEMA_ID: u16;
    /// Id of the message in its schema.
    const TEMPLATE_ID: u16;
    /// Encoding of its payload.
    const ENCODING: Encoding;
    /// Name in the schema.
    const NAME: &'static str;
}

/// Message that is read by a handler, a client or a node.
pub trait Message: MessageSchema {
    /// Type passed to a handler: a view of the payload, or an object.
    type Decoded<'a>;

    /// Decodes a payload.
    ///
    /// # Errors
    /// The fault in the payload and its place. SBE is checked as a whole here, so access to the decoded message cannot
    /// fail.
    fn decode(payload: &[u8]) -> Result<Self::Decoded<'_>, DecodeError>;
}

/// Message written into a buffer piece by piece, without copy and without allocation.
pub trait Direct: MessageSchema {
    /// Flyweight that writes the fields.
    type Encoder<'a>;

    /// Begins a message at the start of `buffer`; every optional field is null until it is set.
    ///
    /// # Errors
    /// [`EncodeError::Capacity`] if not even the fixed part fits.
    fn encoder(buffer: &mut [u8]) -> Result<Self::Encoder<'_>, EncodeError>;

    /// Ends the message; groups and data that were not written are empty. Returns its length in bytes.
    ///
    /// # Errors
    /// [`EncodeError::Capacity`] if it does not fit.
    fn finish(encoder: Self::Encoder<'_>) -> Result<usize, EncodeError>;
}

/// Object that is written as a whole.
pub trait Encode: MessageSchema {
    /// Bytes that [`Encode::encode`] will write.
    fn encoded_length(&self) -> usize;

    /// Writes the message at the start of `buffer` and returns its length in bytes.
    ///
    /// # Errors
    /// The first field that does not fit into the buffer or its range.
    fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError>;
}

/// Content of a frame's `schema` field: schema id << 16 | template id.
#[inline]
#[must_use]
pub const fn schema_key(schema_id: u16, template_id: u16) -> u32 {
    (schema_id as u32) << 16 | template_id as u32
}

/// Object with an SBE form; [`Sbe`] makes it a [`Message`].
pub trait SbeObject: Sized {
    /// Id of the schema.
    const SCHEMA_ID: u16;
    /// Id of the message in its schema.
    const TEMPLATE_ID: u16;
    /// Name in the schema.
    const NAME: &'static str;

    /// Reads an SBE payload, which begins with the message header.
    ///
    /// # Errors
    /// The fault in the payload and its place.
    fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError>;

    /// Bytes that [`SbeObject::to_sbe`] will write.
    fn sbe_length(&self) -> usize;

    /// Writes the SBE form and returns its length in bytes.
    ///
    /// # Errors
    /// The first field that does not fit into the buffer or its range.
    fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError>;
}

/// Object with a protobuf form; [`Protobuf`] makes it a [`Message`].
pub trait ProtobufObject: Sized {
    /// Id of the schema.
    const SCHEMA_ID: u16;
    /// Id of the message in its schema.
    const TEMPLATE_ID: u16;
    /// Name in the schema.
    const NAME: &'static str;

    /// Reads a protobuf payload.
    ///
    /// # Errors
    /// The fault in the payload and its place.
    fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError>;

    /// Bytes that [`ProtobufObject::to_protobuf`] will write.
    fn protobuf_length(&self) -> usize;

    /// Writes the protobuf form and returns its length in bytes.
    ///
    /// # Errors
    /// [`EncodeError::Capacity`] if the buffer is too short.
    fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError>;
}

/// Object sent as SBE (`sbe.random`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sbe<T>(pub T);

/// Object sent as protobuf (`protobuf.random`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protobuf<T>(pub T);

impl<T: SbeObject> MessageSchema for Sbe<T> {
    const SCHEMA_ID: u16 = T::SCHEMA_ID;
    const TEMPLATE_ID: u16 = T::TEMPLATE_ID;
    const ENCODING: Encoding = Encoding::Sbe;
    const NAME: &'static str = T::NAME;
}

impl<T: SbeObject> Message for Sbe<T> {
    type Decoded<'a> = T;

    #[inline]
    fn decode(payload: &[u8]) -> Result<T, DecodeError> {
        T::from_sbe(payload)
    }
}

impl<T: SbeObject> Encode for Sbe<T> {
    #[inline]
    fn encoded_length(&self) -> usize {
        self.0.sbe_length()
    }

    #[inline]
    fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
        self.0.to_sbe(buffer)
    }
}

impl<T: ProtobufObject> MessageSchema for Protobuf<T> {
    const SCHEMA_ID: u16 = T::SCHEMA_ID;
    const TEMPLATE_ID: u16 = T::TEMPLATE_ID;
    const ENCODING: Encoding = Encoding::Protobuf;
    const NAME: &'static str = T::NAME;
}

impl<T: ProtobufObject> Message for Protobuf<T> {
    type Decoded<'a> = T;

    #[inline]
    fn decode(payload: &[u8]) -> Result<T, DecodeError> {
        T::from_protobuf(payload)
    }
}

impl<T: ProtobufObject> Encode for Protobuf<T> {
    #[inline]
    fn encoded_length(&self) -> usize {
        self.0.protobuf_length()
    }

    #[inline]
    fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
        self.0.to_protobuf(buffer)
    }
}
