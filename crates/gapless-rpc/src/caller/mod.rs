//! Calling a route: [`Caller`], and [`Call`] for each call under way. The code is the same for routes in this process
//! and elsewhere.
//!
//! | module | what lives there |
//! |---|---|
//! | `caller_options` | [`CallerOptions`]: reach, waiting and defaults of calls |
//! | `route_caller` | [`Caller`]: calls, sends and broadcasts of one route |
//! | [`together`] | many calls under one deadline: all results, the first, or those in time |
//! | [`call`] | [`Call`]: blocking, polled, awaited, or with a callback |
//! | `mixed` | the same for calls of several types |
//! | `timeout` | a timeout for a polled condition |
//! | `discovering_call` | calls made before their instances are discovered |
//! | `callback_call` | [`Call::on_end`]; one-way requests that are forwarded |
//! | `observed` | observers of a call: interceptors, and the subscriber that records its span |
//! | `call_awaiting_route` | calls that wait until their route is served |
//! | `backlog` | requests that wait for a slot, spilled to disk |
//! | `remote_call` | one call between processes, over instances and routes, to its end; each of its attempts |
//! | [`interceptor`] | [`Interceptor`]: a hook around every call |
//! | `routes` | lookup of routes: in this process, in others |
//! | `table` | `RouteTable`: slots of one route, shared with its instances |

mod backlog;
pub mod call;
mod call_awaiting_route;
mod callback_call;
mod caller_options;
mod discovering_call;
pub mod interceptor;
mod mixed;
mod observed;
pub(crate) mod remote_call;
mod route_caller;
pub(crate) mod routes;
pub(crate) mod table;
mod timeout;
pub mod together;

pub use call::Call;
pub(crate) use callback_call::follow_sent;
pub use caller_options::{CallerOptions, Reach};
pub use interceptor::Interceptor;
pub(crate) use route_caller::RelayedBytes;
pub use route_caller::{Caller, InstanceAddress, InstanceOutcomes};
