//! Calls within one process: requests and replies move as values, without encoding. Path of a call:
//! [`LocalRoute::call`] → `intake` → [`LocalWorker`] → [`IncomingRequest`] → [`ReplySender`] → `one_shot` →
//! [`LocalCall`].

mod answer;
mod call;
mod gauges;
mod idle;
mod intake;
mod offer;
mod one_shot;
mod overflow;
mod queued;
mod route;
mod spin;
mod sync;
mod worker;

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(not(loom))]
pub(crate) use answer::check_hop;
pub use answer::{ForwardHook, ForwardSupport, ForwardedRequest, HOPS_MAX, IncomingRequest, ReplySender};
pub use call::{CallResult, LocalCall};
pub use gapless_agent::deadlines::Deadlines;
pub use gauges::QueueGauges;
pub use intake::QueueState;
pub use offer::LocalOffer;
pub use overflow::{ByteQueues, EncodedOverflow, Overflow, PoppedRequest};
pub use route::{LocalOptions, LocalRoute, QUEUE_MAX, QUEUE_MAX_MAX, RejectedForward, UnsentRequest};
pub use worker::{LocalWorker, NextRequest};
