//! `StoreObject`: required of a stored type, with implementations for the schema layer's types.

use super::error::ObjectError;
use gapless_schema::{Encoding, Protobuf, ProtobufObject, Sbe, SbeObject, schema_key};

/// Type of stored values. An encoding must decode to an equal value, and equal values must have equal encodings:
/// replicas compare hashes of encodings, and a rollback decodes the old one.
pub trait StoreObject: Sized + Send + 'static {
    /// Identifies the type in snapshots.
    const TYPE: u64;
    /// Increase it when the encoding changes.
    const VERSION: u16;

    /// Appends the value's encoding.
    ///
    /// # Errors
    /// The value has no encoding. A committed object that is unchanged must always encode.
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), ObjectError>;

    /// Decodes arbitrary `bytes` of `version`.
    ///
    /// # Errors
    /// Defect of the bytes. [`ObjectError::Version`] for a version newer than [`StoreObject::VERSION`], which the store
    /// checks before the call.
    fn decode(version: u16, bytes: &[u8]) -> Result<Self, ObjectError>;

    /// Returns the encoding, if the value is stored in that form; it saves copies.
    #[inline]
    fn as_encoded(&self) -> Option<&[u8]> {
        None
    }
}

#[inline]
pub(super) fn decode<V: StoreObject>(version: u16, bytes: &[u8]) -> Result<V, ObjectError> {
    if version > V::VERSION {
        return Err(ObjectError::Version { found: version, known: V::VERSION });
    }
    V::decode(version, bytes)
}

/// Encoding above the 32 bits of the schema key; applications should choose types below 2^32.
pub(super) const fn message_type(encoding: Encoding, schema_id: u16, template_id: u16) -> u64 {
    let number = match encoding {
        Encoding::Sbe => 1,
        Encoding::Protobuf => 2,
        Encoding::Opaque => 3,
        Encoding::Postcard => 4,
    };
    number << 32 | schema_key(schema_id, template_id) as u64
}

/// The message header has the version, so old encodings stay readable; a patch by an older version is refused if the
/// layout has changed.
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

/// Unknown fields are an error of the schema layer, or dropped: replicas of different versions have different hashes.
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
