//! The traits between generated messages and the code that carries them. A service's dispatch takes [`Decode`], its
//! replies take [`Encode`] (a whole object) or [`Direct`] (a flyweight, written piece by piece).

use crate::{DecodeError, EncodeError, Encoding};

pub trait MessageSchema {
    const SCHEMA_ID: u16;
    const TEMPLATE_ID: u16;
    const ENCODING: Encoding;
    const NAME: &'static str;
}

/// Read by a handler, a client or a node.
pub trait Decode: MessageSchema {
    /// A view of the payload, or an object.
    type Decoded<'a>;

    /// Decodes a payload.
    ///
    /// # Errors
    /// The fault in the payload and its place. SBE is checked as a whole here, so access to the decoded message cannot
    /// fail.
    fn decode(payload: &[u8]) -> Result<Self::Decoded<'_>, DecodeError>;
}

/// Written into a buffer piece by piece, without copy and without allocation.
pub trait Direct: MessageSchema {
    type Encoder<'a>;

    /// Every optional field is null until it is set.
    ///
    /// # Errors
    /// [`EncodeError::Capacity`] if not even the fixed part fits.
    fn encoder(buffer: &mut [u8]) -> Result<Self::Encoder<'_>, EncodeError>;

    /// Groups and data that were not written are empty. Returns the length in bytes.
    ///
    /// # Errors
    /// [`EncodeError::Capacity`] if it does not fit.
    fn finish(encoder: Self::Encoder<'_>) -> Result<usize, EncodeError>;
}

/// Written as a whole.
pub trait Encode: MessageSchema {
    /// Bytes that [`Encode::encode`] will write.
    fn encoded_length(&self) -> usize;

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// The first field that does not fit into the buffer or its range.
    fn encode(&self, buffer: &mut [u8]) -> Result<usize, EncodeError>;
}

/// Schema id << 16 | template id, as in a frame's header.
#[inline]
#[must_use]
pub const fn schema_key(schema_id: u16, template_id: u16) -> u32 {
    (schema_id as u32) << 16 | template_id as u32
}

/// [`Sbe`] makes it a message.
pub trait SbeObject: Sized {
    const SCHEMA_ID: u16;
    const TEMPLATE_ID: u16;
    const NAME: &'static str;

    /// `payload` begins with the message header.
    ///
    /// # Errors
    /// The fault in the payload and its place.
    fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError>;

    fn sbe_length(&self) -> usize;

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// The first field that does not fit into the buffer or its range.
    fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError>;
}

/// [`Protobuf`] makes it a message.
pub trait ProtobufObject: Sized {
    const SCHEMA_ID: u16;
    const TEMPLATE_ID: u16;
    const NAME: &'static str;

    /// Reads a protobuf payload.
    ///
    /// # Errors
    /// The fault in the payload and its place.
    fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError>;

    fn protobuf_length(&self) -> usize;

    /// Returns the length in bytes.
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

impl<T: SbeObject> Decode for Sbe<T> {
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

impl<T: ProtobufObject> Decode for Protobuf<T> {
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
