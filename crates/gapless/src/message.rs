//! What is sent, as a command, an event, a request, a reply or a refusal: [`trait@Message`], and how it may change.
//!
//! The guide `docs/guides/messages-over-versions.md` has the rules with examples.

/// Derives a message from a struct or an enum that serde can write and read.
///
/// ```
/// use gapless::Message;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(version = 2)]
/// struct Order {
///     id: u64,
///     #[serde(default)]
///     #[message(since = 2)]
///     note: Option<String>,
/// }
/// assert_eq!(Order::shape(), "Order v2 {id: u64, note: String?}");
/// ```
pub use gapless_macros::FaceMessage as Message;
#[doc(hidden)]
pub use gapless_message::derived;
pub use gapless_message::headers::Headers;
pub use gapless_message::message::{Encoding, Message, MessageError};
pub use gapless_message::{Json, NoRefusal, Request, Shape};
