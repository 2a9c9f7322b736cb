//! [`StoreObject`]: what a type must be able to do to be kept in a store, and the schema layer's types, which are.

use super::error::ObjectError;
use gapless_schema::{Encoding, Protobuf, ProtobufObject, Sbe, SbeObject, schema_key};

/// A type whose values are kept in a store.
///
/// What is encoded must decode to an equal value, and equal values must encode to the same bytes: a change is the
/// difference between two encodings, replicas compare hashes of encodings, and a transaction that is rolled back
/// decodes what was there before.
pub trait StoreObject: Sized + Send + 'static {
    /// Names the type in snapshots, so that no other is read in its place.
    const TYPE: u64;
    /// The version that [`StoreObject::encode`] writes; a change of the encoding takes the next.
    const VERSION: u16;

    /// Appends the value's encoding.
    ///
    /// # Errors
    /// A value that has none. An object that was committed must never come to this unless it was changed.
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), ObjectError>;

    /// The value that `version` encoded as `bytes`, which may be anything.
    ///
    /// # Errors
    /// What is wrong with the bytes; [`ObjectError::Version`] for a version that is newer than
    /// [`StoreObject::VERSION`], which the store asks for before it calls.
    fn decode(version: u16, bytes: &[u8]) -> Result<Self, ObjectError>;

    /// The encoding, if the value is kept as that; it saves copies.
    #[inline]
    fn as_encoded(&self) -> Option<&[u8]> {
        None
    }
}

/// Decodes, after a look at the version.
#[inline]
pub(super) fn decode<V: StoreObject>(version: u16, bytes: &[u8]) -> Result<V, ObjectError> {
    if version > V::VERSION {
        return Err(ObjectError::Version { found: version, known: V::VERSION });
    }
    V::decode(version, bytes)
}

/// The type of an object that is a message: its encoding above the 32 bits of its schema key. Types of an
/// application's own are best taken from below 2^32.
pub(super) const fn message_type(encoding: Encoding, schema_id: u16, template_id: u16) -> u64 {
    let number = match encoding {
        Encoding::Sbe => 1,
        Encoding::Protobuf => 2,
        Encoding::Opaque => 3,
    };
    number << 32 | schema_key(schema_id, template_id) as u64
}

/// The message header names the version, so what older versions wrote is read; a patch that they wrote is refused
/// where the layout has changed.
impl<T: SbeObject + Send + 'static> StoreObject for Sbe<T> {
    const TYPE: u64 = message_type(Encoding::Sbe, T::SCHEMA_ID, T::TEMPLATE_ID);
    const VERSION: u16 = 0;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), ObjectError> {
        let begin = out.len();
        out.resize(begin + self.0.sbe_length(), 0);
        let length = self.0.to_sbe(&mut out[begin..])?;
        out.truncate(begin + length);
        Ok(())
    }

    #[inline]
    fn decode(_: u16, bytes: &[u8]) -> Result<Self, ObjectError> {
        Ok(Self(T::from_sbe(bytes)?))
    }
}

/// Fields that are not known here are an error of the schema layer or are dropped by it; either way replicas of
/// different versions have different hashes.
impl<T: ProtobufObject + Send + 'static> StoreObject for Protobuf<T> {
    const TYPE: u64 = message_type(Encoding::Protobuf, T::SCHEMA_ID, T::TEMPLATE_ID);
    const VERSION: u16 = 0;

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), ObjectError> {
        let begin = out.len();
        out.resize(begin + self.0.protobuf_length(), 0);
        let length = self.0.to_protobuf(&mut out[begin..])?;
        out.truncate(begin + length);
        Ok(())
    }

    #[inline]
    fn decode(_: u16, bytes: &[u8]) -> Result<Self, ObjectError> {
        Ok(Self(T::from_protobuf(bytes)?))
    }
}
