//! [`Message`]: what a request and a reply are. `#[derive(Message)]` comes with `gapless-rpc`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`headers`] | [`Headers`](headers::Headers): what the application sends beside a request |
//! | [`route_name`] | what a route may be called |
//! | [`described`] | [`TypeKey`](described::TypeKey): what a caller and a copy compare of a type |
//! | [`typed`] | serde types as postcard and JSON: what `#[derive(Message)]` stands on; numbers and texts as messages |
//! | `schema` | SBE and protobuf objects of `gapless-schema` as messages; behind the feature `schema` |
//! | [`bytes`] | bytes and nothing as messages |
//! | [`shared`] | what is shared as a message: `Arc` |
//! | [`json`] | [`Json`]: for callers that know a route's types only when they run |
//! | [`version`] | [`OlderVersion`], [`version_of`]: which version both sides speak; [`rewritten`]: the bytes of one as those of another |
//! | [`shaped`] | a message of which only the shape is known, as JSON |
//! | [`postcard_reader`] | postcard from bytes that nobody has checked, with limits |
//! | [`shape`] | [`Shape`]: a type's layout as text, and its fingerprint |
//! | [`mod@difference`] | where two shapes first differ, in a sentence |
//!
//! # What both sides compare
//! Postcard is positional: bytes say neither which field they are nor of what type. So a caller and a copy compare
//! [`Message::fingerprint`], a hash of [`Message::shape`], before the first call, and refuse each other when they differ; the
//! refusal says where. The shape holds the type's name and version, its fields and variants in order by name and type, and
//! the same of each type in it. What changes it is a change: an order, a name, a type, at any depth. Where the type stands in
//! its crate does not matter, nor what its methods do.
//!
//! # How a message may change
//! - **A field at the end, a variant at the end**: say `#[message(version = 2)]` on the type and `#[message(since = 2)]` on what is
//!   new; a field needs `#[serde(default)]` too. The new program then also reads and writes version 1
//!   ([`Message::decode_as`], [`Message::encode_as`]), which is what the old program takes for its own. It does not matter which
//!   side is new, nor which was started first. Without the new field on the wire its default stands; a new variant cannot be sent to
//!   an old program, and the sender gets an error.
//! - **Anything else**, also growth inside a nested type or of a type that holds itself: another message. Serve it under another name, or beside the old one.
//! - **Same shape, other meaning**: raise `version` alone; then old and new refuse each other.
//! - SBE and protobuf change by their own rules; they are compared by schema and message alone.
//!
//! [`shape`]: mod@shape
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod bytes;
pub mod described;
pub mod difference;
pub mod headers;
pub mod json;
pub mod postcard_reader;
pub mod route_name;
#[cfg(feature = "schema")]
pub mod schema;
pub mod shape;
pub mod shaped;
pub mod shared;
pub mod typed;
pub mod version;

pub use json::Json;
pub use shape::{Shape, ShapeWriter};
pub use version::{OlderVersion, rewritten, version_of};

/// How a payload is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Encoding {
    /// Bytes that only the application understands.
    #[default]
    Bytes = 0,
    /// A serde type, as postcard writes it.
    Postcard = 1,
    /// Simple Binary Encoding.
    Sbe = 2,
    /// Protocol buffers.
    Protobuf = 3,
    /// JSON text, for people and tools.
    Json = 4,
}

/// Why bytes are no message, or a message no bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{type_name}: {reason}")]
pub struct MessageError {
    /// The message's type.
    pub type_name: &'static str,
    /// What was expected, and what was found.
    pub reason: String,
}

impl MessageError {
    /// An error of the message `M`.
    pub(crate) fn of<M: Message>(reason: impl Into<String>) -> Self {
        Self { type_name: M::TYPE_NAME, reason: reason.into() }
    }

    fn other_version<M: Message>(version: u32) -> Self {
        let older: Vec<_> = M::older().iter().map(|older| older.version).collect();
        Self::of::<M>(format!(
            "version {version} is asked for; this program speaks {}, and of older ones {older:?}",
            M::VERSION
        ))
    }
}

/// A request or a reply. Inside one process values of it move as they are; between processes they are encoded.
///
/// | type | between processes |
/// |---|---|
/// | a struct or enum with `#[derive(Serialize, Deserialize, Message)]` | postcard |
/// | `bool`, `char`, `String`, `f32`, `f64`, integers from `u8` to `i128`, `usize`, `isize` | postcard |
/// | `Vec<u8>` | its bytes, which nobody compares or reads |
/// | `()` | no bytes |
/// | [`Json`] | JSON text; for who knows a route's types only at run time |
/// | `Sbe<T>`, `Protobuf<T>` of a schema's object; with the feature `schema` | as the schema says |
/// | `Arc` of a message that threads may share: inside a process the value is not copied | as the message |
///
/// Other types of other crates are none, also `&str`, `Vec<T>` of anything but bytes, `Option`, `Result`, tuples, arrays and maps: they
/// have no name to be told apart by. They go into a field, where whatever serde reads and writes may stand whose [`Shape`] is
/// known:
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
    /// Its name, for errors and tools.
    const TYPE_NAME: &'static str;
    /// How it is encoded between processes.
    const ENCODING: Encoding;
    /// Which version of the type this program was built with.
    const VERSION: u32 = 1;

    /// A number that differs when the type's shape does; 0 is not compared.
    #[must_use]
    fn fingerprint() -> u64;

    /// The type's layout in one line, for people: what a refusal names when fingerprints differ.
    #[must_use]
    fn shape() -> String {
        Self::TYPE_NAME.to_owned()
    }

    /// Older versions that this program reads and writes too, the newest first.
    #[must_use]
    fn older() -> Vec<OlderVersion> {
        Vec::new()
    }

    /// Appends its bytes.
    ///
    /// # Errors
    /// What cannot be encoded; `into` is then as before.
    fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError>;

    /// Reads it from all of `bytes`.
    ///
    /// # Errors
    /// Bytes that are no such message.
    fn decode(bytes: &[u8]) -> Result<Self, MessageError>;

    /// Appends its bytes for a program that knows only `version`.
    ///
    /// # Errors
    /// As [`Message::encode`]; a version that is not spoken; a value that the version cannot hold.
    fn encode_as(&self, version: u32, into: &mut Vec<u8>) -> Result<(), MessageError> {
        if version == Self::VERSION { self.encode(into) } else { Err(MessageError::other_version::<Self>(version)) }
    }

    /// Reads what a program wrote that knows only `version`.
    ///
    /// # Errors
    /// As [`Message::decode`]; a version that is not spoken.
    fn decode_as(version: u32, bytes: &[u8]) -> Result<Self, MessageError> {
        if version == Self::VERSION { Self::decode(bytes) } else { Err(MessageError::other_version::<Self>(version)) }
    }

    /// The bytes that [`Message::encode`] would append, if they lie in memory as they are: then they are not copied to be
    /// sent.
    fn encoded(&self) -> Option<&[u8]> {
        None
    }

    /// As [`Message::decode_as`], from a buffer that may be kept: it holds anything afterwards.
    ///
    /// # Errors
    /// As [`Message::decode_as`].
    fn decode_owned(version: u32, bytes: &mut Vec<u8>) -> Result<Self, MessageError> {
        Self::decode_as(version, bytes)
    }

    /// The memory of a message that nobody needs any more, for the bytes of the next one; empty where there is none to give.
    #[must_use]
    fn into_buffer(self) -> Vec<u8> {
        Vec::new()
    }

    /// As JSON, for people and tools; types that have no such form refuse.
    ///
    /// # Errors
    /// A type without that form, or a value that it cannot hold.
    fn to_json(&self) -> Result<Vec<u8>, MessageError> {
        Err(MessageError { type_name: Self::TYPE_NAME, reason: "it has no form as JSON".to_owned() })
    }

    /// From JSON.
    ///
    /// # Errors
    /// As [`Message::to_json`]; text that is no such message.
    fn from_json(_text: &[u8]) -> Result<Self, MessageError> {
        Err(MessageError { type_name: Self::TYPE_NAME, reason: "it has no form as JSON".to_owned() })
    }
}
