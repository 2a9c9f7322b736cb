//! Calling a route: [`Caller`], and [`Call`] for each call under way. The code is the same for routes in this process
//! and elsewhere.

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
