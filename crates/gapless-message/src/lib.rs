//! [`trait@Message`]: commands, events, requests, replies and refusals.
//!
//! | module | what lives there |
//! |---|---|
//! | [`request_description`] | [`Describe`](request_description::Describe): the types of a request, for a client that the service does not understand |
//! | [`contract`] | typed requests and their answers in frames |
//! | [`request`] | [`Request`]: a message that is answered |
//! | [`headers`] | [`Headers`](headers::Headers): metadata that the application sends with a request |
//! | [`route_name`] | valid names of routes |
//! | [`described`] | [`TypeKey`](described::TypeKey): the properties of a type that caller and instance compare |
//! | [`mod@state`] | [`trait@State`]: the state of a service in snapshots |
//! | [`typed`] | serde types as postcard and JSON, the base of `#[derive(Message)]`; numbers and texts as messages |
//! | [`schema`] | SBE and protobuf objects of `gapless-schema` as messages |
//! | [`bytes`] | bytes and `()` as messages |
//! | [`shared`] | shared values as messages: `Arc` |
//! | [`json`] | [`Json`]: for callers that learn a route's types at run time |
//! | [`version`] | [`version_of`]: agreement on a version; [`rewritten`]: conversion between versions |
//! | [`message`] | [`trait@Message`], [`Encoding`], [`MessageError`], [`OlderVersion`] |
//! | [`shaped`] | a message known only by its shape, as JSON |
//! | [`postcard_reader`] | postcard from untrusted bytes, with limits |
//! | [`shape`] | [`Shape`]: a type's layout as text, and its fingerprint |
//! | [`mod@difference`] | the first difference of two shapes, as a sentence |
//!
//! # Comparing types
//! Postcard is positional: the bytes name neither fields nor types. So before the first call, caller and instance
//! compare [`Message::fingerprint`], a hash of [`Message::shape`]. If they differ, they refuse each other with the
//! first difference. The shape holds the type's name and version, its fields and variants in order by name and type,
//! and the same for each type in it. Any change of order, name or type, at any depth, changes the shape. The type's
//! place in its crate and its methods do not matter.
//!
//! # Changing a message
//! - **A field at the end, a variant at the end**: put `#[message(version = 2)]` on the type and
//!   `#[message(since = 2)]` on the addition; a field needs `#[serde(default)]` too. The new program then also reads
//!   and writes version 1 ([`Message::decode_as`], [`Message::encode_as`]), which the old program takes for its own. It
//!   does not matter which side is new, nor which was started first. A missing field gets its default. A new variant
//!   cannot be sent to an old program, and the sender gets an error.
//! - **Anything else**, including growth inside a nested or recursive type: a different message. Serve it under another
//!   name, or next to the old one.
//! - **Same shape, other meaning**: raise only `version`; then old and new refuse each other.
//! - SBE and protobuf change by their own rules; only schema and message are compared.
//!
//! [`shape`]: mod@shape
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

// Derived code in this crate names it as others do.
extern crate self as gapless_message;

pub mod bytes;
pub mod contract;
pub mod described;
pub mod difference;
pub mod headers;
pub mod json;
pub mod message;
pub mod postcard_reader;
pub mod request;
pub mod request_description;
pub mod route_name;
pub mod schema;
pub mod shape;
pub mod shaped;
pub mod shared;
pub mod state;
pub mod typed;
pub mod version;

/// Implements [`trait@Message`] for a struct or an enum, and [`Deterministic`] if its fields do.
///
/// ```
/// use gapless_message::Message;
/// use gapless_message::version_of;
/// use serde::{Deserialize, Serialize};
///
/// // In the program of a year ago it was called `Order`.
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(name = "Order")]
/// struct OldOrder {
///     id: u64,
/// }
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
/// #[message(version = 2)]
/// struct Order {
///     id: u64,
///     #[serde(default)]
///     #[message(since = 2)]
///     note: String,
/// }
///
/// assert_eq!(Order::shape(), "Order v2 {id: u64, note: String}");
/// // Fingerprint sent by the old program.
/// let version = version_of::<Order>(OldOrder::fingerprint()).expect("it is one of ours");
/// let mut bytes = Vec::new();
/// OldOrder { id: 7 }.encode(&mut bytes)?;
/// assert_eq!(Order::decode_as(version, &bytes)?, Order { id: 7, note: String::new() });
/// # Ok::<(), gapless_message::MessageError>(())
/// ```
///
/// A type of another crate in a field, and the crate under a name of the application's:
///
/// ```
/// mod foundation {
///     pub use gapless_message as message;
/// }
/// use foundation::message::Message;
/// use serde::{Deserialize, Serialize};
///
/// // It might come from another crate.
/// #[derive(Serialize, Deserialize)]
/// struct Currency(String);
///
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(crate = foundation)]
/// struct Price {
///     amount: i64,
///     #[message(shape = "Currency 1")]
///     currency: Currency,
/// }
///
/// assert_eq!(Price::shape(), "Price v1 {amount: i64, currency: Currency 1}");
/// ```
pub use gapless_macros::Message;
/// Implements [`trait@State`] and [`Deterministic`] for a struct or an enum: see [`trait@State`].
pub use gapless_macros::State;
pub use json::Json;
/// Names that derived code uses.
#[doc(hidden)]
pub mod derived {
    pub use crate::message::{Encoding, Message, MessageError, OlderVersion};
    pub use crate::request::{NoRefusal, Request};
    pub use crate::shape::{Shape, ShapeWriter, shape_at};
    pub use crate::state::{Deterministic, Itself, OldState, State, assert_deterministic};
    pub use crate::typed;
}
pub use message::{Encoding, Message, MessageError, OlderVersion};
pub use request::{NoRefusal, Request};
pub use shape::{Shape, ShapeWriter};
pub use state::{Deterministic, OldState, State, StateError};
pub use version::{rewritten, version_of};
