//! `InlineMessage`: an object stored as its message's bytes, read and written in place by the direct types.

use super::error::ObjectError;
use super::object::{StoreObject, message_type};
use gapless_schema::{Decode, DecodeError, Direct, EncodeError};
use std::fmt;
use std::marker::PhantomData;

/// An object stored as the bytes of a message, at most `N`, always valid. It allocates nothing; a change costs a copy
/// and a comparison. `M` is a direct decoder such as `CarDecoder<'static>`.
pub struct InlineMessage<M, const N: usize> {
    length: u32,
    bytes: [u8; N],
    message: PhantomData<fn() -> M>,
}

impl<M, const N: usize> Clone for InlineMessage<M, N> {
    fn clone(&self) -> Self {
        Self { length: self.length, bytes: self.bytes, message: PhantomData }
    }
}

impl<M, const N: usize> PartialEq for InlineMessage<M, N> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl<M: Decode, const N: usize> fmt::Debug for InlineMessage<M, N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}({} bytes)", M::NAME, self.length)
    }
}

impl<M, const N: usize> InlineMessage<M, N> {
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }
}

impl<M: Decode, const N: usize> InlineMessage<M, N> {
    /// Copies the bytes of a message's bytes.
    ///
    /// # Errors
    /// The bytes are not a message of this type, or are more than `N`.
    pub fn new(bytes: &[u8]) -> Result<Self, ObjectError> {
        if bytes.len() > N {
            return Err(ObjectError::Invalid(format!("{}: {} bytes, it holds {N}", M::NAME, bytes.len())));
        }
        M::decode(bytes)?;
        let mut record = Self { length: bytes.len() as u32, bytes: [0; N], message: PhantomData };
        record.bytes[..bytes.len()].copy_from_slice(bytes);
        Ok(record)
    }

    /// Takes the output of `write` with the encoder `E` of the same message.
    ///
    /// # Errors
    /// The error of `write`; or the message exceeds `N` bytes, or is of another type.
    pub fn written<E: Direct>(
        write: impl FnOnce(&mut E::Encoder<'_>) -> Result<(), EncodeError>,
    ) -> Result<Self, ObjectError> {
        let mut record = Self { length: 0, bytes: [0; N], message: PhantomData };
        let mut encoder = E::encoder(&mut record.bytes)?;
        write(&mut encoder)?;
        record.length = E::finish(encoder)? as u32;
        M::decode(record.bytes())?;
        Ok(record)
    }

    /// Reads the message in place.
    ///
    /// # Errors
    /// Never for a record created by this type; decoding checks the bytes again.
    #[inline]
    pub fn read(&self) -> Result<M::Decoded<'_>, DecodeError> {
        M::decode(self.bytes())
    }

    /// Overwrites the bytes at `position`, given by the schema: 8 for the first field of an SBE message with the usual
    /// header.
    ///
    /// # Errors
    /// The bytes lie outside the message, or it would become invalid; it is unchanged then.
    #[inline]
    pub fn overwrite<const L: usize>(&mut self, position: usize, field: [u8; L]) -> Result<(), ObjectError> {
        let length = self.length as usize;
        let Some(place) = self.bytes[..length].get_mut(position..).and_then(|rest| rest.first_chunk_mut::<L>()) else {
            let reason = format!("{}: a field of {L} bytes at byte {position} of {length}", M::NAME);
            return Err(ObjectError::Invalid(reason));
        };
        let before = std::mem::replace(place, field);
        let checked = M::decode(&self.bytes[..length]).map(|_| ());
        checked.map_err(|error| {
            self.bytes[position..position + L].copy_from_slice(&before);
            error.into()
        })
    }
}

impl<M: Decode + 'static, const N: usize> StoreObject for InlineMessage<M, N> {
    const TYPE: u64 = message_type(M::ENCODING, M::SCHEMA_ID, M::TEMPLATE_ID);
    const VERSION: u16 = 0;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), ObjectError> {
        out.extend_from_slice(self.bytes());
        Ok(())
    }

    #[inline]
    fn decode(_: u16, bytes: &[u8]) -> Result<Self, ObjectError> {
        Self::new(bytes)
    }

    #[inline]
    fn as_encoded(&self) -> Option<&[u8]> {
        Some(self.bytes())
    }
}
