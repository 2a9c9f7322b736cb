//! Serde types as messages: postcard between programs, JSON for people and tools. Used by the code of
//! `#[derive(Message)]`; also makes numbers, `bool`, `char` and `String` messages.

use super::shape::{Shape, fingerprint};
use super::{Encoding, Message, MessageError, postcard_reader};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reexported for derived code.
#[doc(hidden)]
pub use super::shape::shape_of;
#[doc(hidden)]
pub use serde;

struct AppendFlavor<'a>(&'a mut Vec<u8>);

impl postcard::ser_flavors::Flavor for AppendFlavor<'_> {
    type Output = ();

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

#[inline]
pub(crate) fn append<T: Serialize + ?Sized>(value: &T, into: &mut Vec<u8>) -> postcard::Result<()> {
    postcard::serialize_with_flavor(value, AppendFlavor(into))
}

/// Leaves `into` unchanged on failure.
///
/// # Errors
/// The value has no such form; the error names `M`.
pub fn encode<M: Message, T: Serialize + ?Sized>(value: &T, into: &mut Vec<u8>) -> Result<(), MessageError> {
    let start = into.len();
    append(value, into).map_err(|error| {
        into.truncate(start);
        MessageError::of::<M>(format!("it cannot be written as postcard: {error}"))
    })
}

/// Appends `value` without its last fields, which `newer` would append on their own.
///
/// # Errors
/// As [`encode`].
pub fn encode_without<M: Message + Serialize>(
    value: &M,
    into: &mut Vec<u8>,
    newer: impl FnOnce(&mut Vec<u8>) -> Result<(), MessageError>,
) -> Result<(), MessageError> {
    let start = into.len();
    encode::<M, M>(value, into)?;
    // A struct is the concatenation of its fields, so the last fields have the same length on their own.
    let end = into.len();
    let measured = newer(into);
    let newer_length = into.len() - end;
    into.truncate(end - newer_length);
    measured.inspect_err(|_| into.truncate(start))
}

/// Reads only the first `fields` fields of a struct; the others get their defaults.
///
/// # Errors
/// Expected, found, and the position.
pub fn decode<M: Message + DeserializeOwned>(bytes: &[u8], fields: usize) -> Result<M, MessageError> {
    postcard_reader::read(bytes, fields).map_err(MessageError::of::<M>)
}

#[must_use]
pub fn too_new<M: Message>(variant: &str, since: u32, version: u32) -> MessageError {
    MessageError::of::<M>(format!(
        "{variant} is there since version {since}, and the other side speaks version {version}"
    ))
}

#[must_use]
pub fn other_version<M: Message>(version: u32) -> MessageError {
    MessageError::other_version::<M>(version)
}

/// Encodes a message as JSON.
///
/// # Errors
/// The value has no such form, such as a map whose keys are not strings.
pub fn to_json<M: Message + Serialize>(value: &M) -> Result<Vec<u8>, MessageError> {
    serde_json::to_vec(value).map_err(|error| MessageError::of::<M>(format!("it cannot be written as JSON: {error}")))
}

/// Decodes a message from JSON.
///
/// # Errors
/// The text is no such message; the reason names the expectation and the position.
pub fn from_json<M: Message + DeserializeOwned>(text: &[u8]) -> Result<M, MessageError> {
    serde_json::from_slice(text).map_err(|error| MessageError::of::<M>(format!("as JSON: {error}")))
}

#[must_use]
pub fn fingerprint_of<T: Shape>() -> u64 {
    fingerprint(&shape_of::<T>())
}

macro_rules! plain {
    ($($type:ident)*) => {
        $(impl Message for $type {
            const TYPE_NAME: &'static str = stringify!($type);
            const ENCODING: Encoding = Encoding::Postcard;

            #[inline]
            fn fingerprint() -> u64 {
                // The shape is the name of the type.
                const { fingerprint(stringify!($type)) }
            }

            fn shape() -> String {
                shape_of::<Self>()
            }

            fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError> {
                encode::<Self, Self>(self, into)
            }

            fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
                decode(bytes, usize::MAX)
            }

            fn to_json(&self) -> Result<Vec<u8>, MessageError> {
                to_json(self)
            }

            fn from_json(text: &[u8]) -> Result<Self, MessageError> {
                from_json(text)
            }
        })*
    };
}

plain! { bool char f32 f64 String u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize }
