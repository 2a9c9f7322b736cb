//! Calling a route: [`Caller`], and [`Call`] for each call under way. Where the route is served, here or elsewhere, makes no
//! difference to the code.
//!
//! | module | what lives there |
//! |---|---|
//! | `caller_options` | [`CallerOptions`]: where a caller looks for its route, and what its calls have |
//! | `calling` | [`Caller`]: calls, sends and broadcasts of one route |
//! | [`together`] | many calls under one deadline: all results, the first, or what came in time |
//! | [`call`] | [`Call`]: waited for, polled, awaited, or told to a function |
//! | `mixed` | the same for calls of several types |
//! | `in_time` | what a task waits for until a time is over |
//! | `discovering_call` | a call whose copies have not been heard of yet |
//! | `callback_call` | [`Call::on_end`]; what was sent, and is forwarded |
//! | `observed` | the observers of a call: interceptors, and the subscriber that records its span |
//! | `inherited` | what a call has of its options, and of the handler that makes it |
//! | `call_awaiting_route` | a call that waits until somebody serves its route |
//! | `backlog` | requests that wait for a slot, with the rest of them on disk |
//! | `remote_call` | one call between processes, over copies and routes, until it has ended |
//! | [`interceptor`] | [`Interceptor`]: what looks at every call of a caller |
//! | `routes` | where routes are served: in this process, in others |

mod backlog;
pub mod call;
mod call_awaiting_route;
mod callback_call;
mod caller_options;
mod calling;
mod discovering_call;
mod in_time;
mod inherited;
pub mod interceptor;
mod mixed;
mod observed;
pub(crate) mod remote_call;
pub(crate) mod routes;
pub mod together;

pub use call::Call;
pub(crate) use callback_call::follow_sent;
pub use caller_options::{CallerOptions, Reach};
pub(crate) use calling::RelayedBytes;
pub use calling::{Caller, CopyAddress, CopyOutcomes};
pub use interceptor::Interceptor;
