//! Calls: services by name, within this process and between processes of one machine, without a broker.
//!
//! | module | what lives there |
//! |---|---|
//! | [`interceptors`] | hooks around calls, at the caller and at the serving instance |
//! | [`relay`] | [`Relay`](relay::Relay) and [`RelayedCaller`](relay::RelayedCaller): routes served and called as bytes, for programs that carry calls between machines |
//! | [`domain`] | [`Domain`]: where routes are served and called; [`RouteBuilder`] and [`ServedRoute`] |
//! | [`caller`] | [`Caller`] and [`Call`]: calling a route |
//! | `server` | workers, from a request's bytes to its reply's |
//! | `protocol` | words of requests and replies between processes |
//! | `route_counters` | counters of one route: the file, its labels, latency buckets |
//! | `spill` | overflow of a queue in memory to a queue on disk |
//! | `cancelled` | [`Cancelled`]: a future that is ready when a handler's call is cancelled |
//! | [`local`] | calls within this process: values move |
//! | [`options`] | options of calls and routes |
//! | [`context`] | [`CallContext`]: a handler's view of its call |
//! | `nested` | the error of a nested call, returned to the outer caller |
//! | [`outcome`] | [`CallError`], [`Refusal`] and [`Rejection`]: ends of a call without a reply |
//! | `notice_route` | the route on which a process receives notices of a type |
//! | [`error`] | [`RpcError`] |
//! | `registry` | discovery of the processes of a domain, and detection of their death |
//! | [`overflow`] | a queue of byte records in four classes that spills to disk |
//!
//! Modules without a link are private.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

// Under loom only calls within a process exist: memory of other processes does not build there.
#[cfg(not(loom))]
pub mod caller;
#[cfg(not(loom))]
mod cancelled;
pub mod context;
#[cfg(not(loom))]
pub mod domain;
pub mod error;
#[cfg(not(loom))]
pub mod interceptors;
pub mod local;
mod nested;
mod notice_route;
pub mod options;
pub mod outcome;
pub mod overflow;
#[cfg(not(loom))]
mod protocol;
#[cfg(not(loom))]
mod registry;
#[cfg(not(loom))]
pub mod relay;
#[cfg(not(loom))]
mod route_counters;
#[cfg(not(loom))]
mod server;
#[cfg(not(loom))]
mod spill;
#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(not(loom))]
pub use caller::table::CallStatistics;
#[cfg(not(loom))]
pub use caller::{Call, Caller, CallerOptions, Interceptor, Reach};
#[cfg(not(loom))]
pub use cancelled::Cancelled;
pub use context::{CallContext, CallerAddress, CallerIdentity, Headers};
#[cfg(not(loom))]
pub use domain::{Domain, DomainOptions, RouteBuilder, ServedRoute};
pub use error::RpcError;
#[cfg(not(loom))]
use gapless_agent::block_on;
/// Turns a function into a route and its typed client.
///
/// ```
/// use gapless_rpc::{Domain, Rejection, route};
///
/// #[route("half")]
/// fn half(number: u64) -> Result<u64, Rejection> {
///     if number % 2 == 0 { Ok(number / 2) } else { Err("it is odd".into()) }
/// }
///
/// let domain = Domain::in_process("arithmetic");
/// let _served = half::serve(&domain)?;
/// assert_eq!(half::caller(&domain)?.call(8), Ok(4));
/// # Ok::<(), gapless_rpc::RpcError>(())
/// ```
pub use gapless_macros::route;
pub use gapless_message as message;
pub use gapless_message::route_name;
pub use gapless_message::{Encoding, Json, Message, MessageError};
pub use gapless_trace::{CallScope, TraceBridge, TraceContext, TraceParentError, set_trace_bridge};
pub use options::{CallOptions, Priority, Retry, Waiting};
pub use outcome::{CallError, Refusal, Rejection};
#[cfg(not(loom))]
#[doc(hidden)]
pub use protocol::ended::ended_again;
#[cfg(not(loom))]
pub use protocol::request_flags::InstanceQuery;
#[cfg(not(loom))]
#[doc(hidden)]
pub use protocol::status::refusal_again;
#[cfg(not(loom))]
#[doc(hidden)]
pub use registry::packet_again;
#[cfg(not(loom))]
pub use server::counters::InstanceStatistics;
#[cfg(not(loom))]
pub use server::interceptor::{HandlerOutcome, ServerInterceptor};
