//! Calls: services by name, within this process and between processes of one machine, without a broker.
//!
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
#[cfg(not(loom))]
pub mod relay;
#[cfg(not(loom))]
mod remote;
#[cfg(not(loom))]
mod route_counters;
#[cfg(not(loom))]
mod served;
#[cfg(not(loom))]
mod spill;

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
pub use gapless_message as message;
pub use gapless_message::route_name;
pub use gapless_message::{Encoding, Json, Message, MessageError};
pub use gapless_overflow as overflow;
/// Implements [`trait@Message`] for a struct or an enum.
pub use gapless_rpc_macros::Message;
/// Turns a function into a route and its typed client.
pub use gapless_rpc_macros::route;
pub use gapless_trace::{CallScope, NoTraceParent, TraceBridge, TraceContext, set_trace_bridge};
pub use options::{CallOptions, Priority, Retry, Waiting};
pub use outcome::{CallError, Refusal, Rejection};
#[cfg(not(loom))]
#[doc(hidden)]
pub use remote::ended::ended_again;
#[cfg(not(loom))]
pub use remote::request_words::CopyQuery;
#[cfg(not(loom))]
#[doc(hidden)]
pub use remote::status::refusal_again;
#[cfg(not(loom))]
pub use remote::table::CallStatistics;
#[cfg(not(loom))]
pub use served::counters::CopyStatistics;
#[cfg(not(loom))]
pub use served::interceptor::{HandlerOutcome, ServerInterceptor};
