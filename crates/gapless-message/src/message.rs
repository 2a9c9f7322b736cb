//! [`Message`]: values that are sent, as commands, events, requests, replies and refusals.

use crate::shape::{Shape, fingerprint, shape_at};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Encoding {
    /// Bytes that only the application understands.
    #[default]
    Bytes = 0,
    Postcard = 1,
    Sbe = 2,
    Protobuf = 3,
    /// JSON text, for people and tools.
    Json = 4,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{type_name}: {reason}")]
pub struct MessageError {
    pub type_name: &'static str,
    pub reason: String,
}

impl MessageError {
    pub(crate) fn of<M: Message>(reason: impl Into<String>) -> Self {
        Self { type_name: M::TYPE_NAME, reason: reason.into() }
    }

    pub(crate) fn other_version<M: Message>(version: u32) -> Self {
        let older: Vec<_> = M::older().iter().map(|older| older.version).collect();
        Self::of::<M>(format!(
            "version {version} is asked for; this program speaks {}, and of older ones {older:?}",
            M::VERSION
        ))
    }
}

/// Version that this program also reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OlderVersion {
    pub version: u32,
    pub fingerprint: u64,
}

impl OlderVersion {
    #[must_use]
    pub fn of<M: Message + Shape>(version: u32) -> Self {
        Self { version, fingerprint: fingerprint(&shape_at::<M>(version)) }
    }
}

/// A request or a reply. Within one process its values move; between processes they are encoded.
///
/// | type | between processes |
/// |---|---|
/// | a struct or enum with `#[derive(Serialize, Deserialize, Message)]` | postcard |
/// | `bool`, `char`, `String`, `f32`, `f64`, integers from `u8` to `i128`, `usize`, `isize` | postcard |
/// | `Vec<u8>` | the bytes, neither compared nor interpreted |
/// | `()` | no bytes |
/// | [`Json`](crate::Json) | JSON text; for callers that learn a route's types at run time |
/// | `Sbe<T>`, `Protobuf<T>` of a schema's object | as the schema says |
/// | `Arc` of a message that threads may share: inside a process the value is not copied | as the message |
///
/// Other types of other crates are not messages, including `&str`, `Vec<T>` of anything but bytes, `Option`, `Result`,
/// tuples, arrays and maps: they have no name to tell them apart. Put them into a field; a field may hold any serde
/// type whose [`Shape`] is known:
///
/// ```compile_fail,E0277
/// fn is_message<M: gapless_message::Message>() {}
/// is_message::<Vec<String>>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no message: it cannot be a request or a reply",
    label = "not a message",
    note = "a struct or enum is one with `#[derive(serde::Serialize, serde::Deserialize, Message)]`",
    note = "numbers, `bool`, `char`, `String`, `Vec<u8>`, `()` and `Json` are messages; another vector, an option, a tuple or a map goes into \
            a field of a struct"
)]
pub trait Message: Sized + Send + 'static {
    /// Name of the type, for errors and tools.
    const TYPE_NAME: &'static str;
    const ENCODING: Encoding;
    /// Version that this program was built with.
    const VERSION: u32 = 1;

    /// Hash of the type's shape; 0 is not compared.
    #[must_use]
    fn fingerprint() -> u64;

    /// One line, for people: shown by a refusal when fingerprints differ.
    #[must_use]
    fn shape() -> String {
        Self::TYPE_NAME.to_owned()
    }

    /// Older versions that this program also reads and writes; newest first.
    #[must_use]
    fn older() -> Vec<OlderVersion> {
        Vec::new()
    }

    /// The line for an older version, or for this one.
    #[must_use]
    fn shape_as(version: u32) -> String {
        let _ = version;
        Self::shape()
    }

    /// Appends the encoded message.
    ///
    /// # Errors
    /// The value cannot be encoded; `into` is then unchanged.
    fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError>;

    /// Decodes all of `bytes`.
    ///
    /// # Errors
    /// The bytes are no such message.
    fn decode(bytes: &[u8]) -> Result<Self, MessageError>;

    /// Encodes for a program that knows only `version`.
    ///
    /// # Errors
    /// As [`Message::encode`]; also for an unsupported version, and for a value that the version cannot hold.
    fn encode_as(&self, version: u32, into: &mut Vec<u8>) -> Result<(), MessageError> {
        if version == Self::VERSION { self.encode(into) } else { Err(MessageError::other_version::<Self>(version)) }
    }

    /// Decodes a message of a program that knows only `version`.
    ///
    /// # Errors
    /// As [`Message::decode`]; also for an unsupported version.
    fn decode_as(version: u32, bytes: &[u8]) -> Result<Self, MessageError> {
        if version == Self::VERSION { Self::decode(bytes) } else { Err(MessageError::other_version::<Self>(version)) }
    }

    /// The bytes of [`Message::encode`], if they exist in memory: then they are sent without a copy.
    fn encoded(&self) -> Option<&[u8]> {
        None
    }

    /// Decodes from a buffer that may be kept; its content is unspecified afterwards.
    ///
    /// # Errors
    /// As [`Message::decode_as`].
    fn decode_owned(version: u32, bytes: &mut Vec<u8>) -> Result<Self, MessageError> {
        Self::decode_as(version, bytes)
    }

    /// Gives the memory of an unused message to the bytes of the next one.
    #[must_use]
    fn into_buffer(self) -> Vec<u8> {
        Vec::new()
    }

    /// Encodes the message as JSON, for people and tools.
    ///
    /// # Errors
    /// The type has no JSON form, or the value does not fit it.
    fn to_json(&self) -> Result<Vec<u8>, MessageError> {
        Err(MessageError { type_name: Self::TYPE_NAME, reason: "it has no form as JSON".to_owned() })
    }

    /// Decodes a message from JSON.
    ///
    /// # Errors
    /// As [`Message::to_json`]; also for text that is no such message.
    fn from_json(_text: &[u8]) -> Result<Self, MessageError> {
        Err(MessageError { type_name: Self::TYPE_NAME, reason: "it has no form as JSON".to_owned() })
    }
}
