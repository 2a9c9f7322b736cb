//! Calls within one process: requests and replies move as values, without encoding.
//!
//! Independent of domains, other processes and handler types; the layers of callers and servers build on it. Path of a
//! call: [`LocalRoute::call`] → `intake` → [`LocalWorker`] → [`IncomingRequest`] → [`ReplySender`] → `one_shot` →
//! [`LocalCall`].
//!
//! | module | what lives there |
//! |---|---|
//! | `route` | [`LocalRoute`]: takes requests and workers |
//! | `worker` | [`LocalWorker`]: a thread or a task that pulls requests |
//! | `answer` | [`IncomingRequest`] and [`ReplySender`]: a request that has begun, and its answer; forwarding |
//! | `intake` | the queue and the workers, under one lock |
//! | `call` | [`LocalCall`]: the caller's side of a call |
//! | `gauges` | [`QueueGauges`]: queue length and expired requests, for other processes |
//! | `queued` | a queued request |
//! | `one_shot` | the slot of a call's outcome |
//! | `offer` | [`LocalOffer`]: attributes that travel with a request |
//! | `overflow` | [`Overflow`]: requests beyond the queue's limit |
//! | `idle`, `spin` | pure parts: idle workers; spinning before a sleep |
//! | `sync` | locks and atomics, replaced under loom |

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
