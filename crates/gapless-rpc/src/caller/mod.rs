//! Calling a route: [`Caller`], and [`Call`] for each call under way. Where the route is served, here or elsewhere, makes no
//! difference to the code.
//!
//! | module | what lives there |
//! |---|---|
//! | `caller_options` | [`CallerOptions`]: where a caller looks for its route, and what its calls have |
//! | `calling` | [`Caller`]: calls, sends and broadcasts of one route |
//! | [`together`] | many calls under one deadline: all results, the first, or what came in time |
//! | [`call`] | [`Call`]: waited for, polled, awaited, or told to a function |
//! | `settling` | a call whose copies have not been heard of yet |
//! | `told` | [`Call::on_end`] |
//! | `observed` | who looks at a call: interceptors, and whoever records its span |
//! | `inherited` | what a call has of its options, and of the handler that makes it |
//! | `absent` | a call that waits until somebody serves its route |
//! | `backlog` | requests that wait for a slot, with the rest of them on disk |
//! | `pursuit` | one call between processes, over copies and routes, until it has ended |
//! | [`interceptor`] | [`Interceptor`]: what looks at every call of a caller |
//! | `routes` | where routes are served: in this process, in others |

mod absent;
mod backlog;
pub mod call;
mod caller_options;
mod calling;
mod inherited;
pub mod interceptor;
mod observed;
pub(crate) mod pursuit;
pub(crate) mod routes;
mod settling;
pub mod together;
mod told;

pub use call::Call;
pub use caller_options::{CallerOptions, Reach};
pub use calling::{Caller, CopyOutcomes};
pub use interceptor::Interceptor;
