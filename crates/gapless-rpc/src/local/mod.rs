//! The reach of a route inside one process: requests and replies move as the values that they are, nothing is encoded.
//!
//! It knows nothing of domains, other processes and handlers' types; the callers' and the servers' layers stand on it.
//! The walk of a call: [`LocalRoute::call`] → `intake` → [`LocalWorker`] → [`Incoming`] → [`Answer`] → `one_shot` →
//! [`LocalCall`].
//!
//! | module | what lives there |
//! |---|---|
//! | `route` | [`LocalRoute`]: where requests are offered, and workers enter |
//! | `worker` | [`LocalWorker`]: a thread or a task that pulls requests |
//! | `answer` | [`Incoming`] and [`Answer`]: a request that has begun, and what is owed for it; forwarding |
//! | `intake` | the queue and the books of the workers, under one lock |
//! | `call` | [`LocalCall`]: a call as its caller holds it |
//! | `gauges` | [`QueueGauges`]: how full the queue is, and what was late, for other processes |
//! | `queued` | a request that waits |
//! | `one_shot` | where an outcome is left and fetched |
//! | `offer` | [`Offer`]: what travels with a request |
//! | `overflow` | [`Overflow`]: where the requests of a full queue wait |
//! | `idle`, `spin` | pure parts: the idle workers; looking before sleeping |
//! | `sync` | the locks and words that loom takes the place of |

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
pub use answer::{Answer, ForwardHook, Forwarded, Forwarding, HOPS_MAX, Incoming};
pub use call::{LocalCall, Outcome};
pub use gapless_agent::deadlines::Deadlines;
pub use gauges::QueueGauges;
pub use intake::QueueState;
pub use offer::Offer;
pub use overflow::{ByteQueues, EncodedOverflow, Overflow, PoppedRequest};
pub use route::{LocalOptions, LocalRoute, NotAdopted, QUEUE_MAX, QUEUE_MAX_MAX, Unsent};
pub use worker::{LocalWorker, Next};
