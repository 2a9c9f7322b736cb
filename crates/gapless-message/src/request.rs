//! [`Request`]: a message that is answered.

use crate::message::Message;

/// A command or a query, which names the types of its answers once. Derived with [`trait@Message`]:
///
/// ```
/// use gapless_message::{Message, NoRefusal, Request};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(reply = u64, refusal = Overdrawn)]
/// struct Withdraw { account: u64, amount: u64 }
///
/// #[derive(Serialize, Deserialize, Message)]
/// struct Overdrawn { balance: u64 }
///
/// // Answered by `()`, never refused.
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(request)]
/// struct Deposit { account: u64, amount: u64 }
///
/// fn answers<R: Request<Reply = A, Refusal = N>, A, N>() {}
/// answers::<Withdraw, u64, Overdrawn>();
/// answers::<Deposit, (), NoRefusal>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a request: its derive names no reply",
    label = "not a request",
    note = "derive `Message` with `#[message(reply = Type, refusal = Type)]`, or with `#[message(request)]` if it is answered by `()`"
)]
pub trait Request: Message {
    type Reply: Message;
    type Refusal: Message;
}

/// Refusal of a request that is never refused; no value of it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, crate::Message)]
pub enum NoRefusal {}
