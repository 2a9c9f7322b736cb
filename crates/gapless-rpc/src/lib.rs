//! Calls: services by name, in this process and between processes of one machine, with nobody in the middle.
//!
//! | module | what lives there |
//! |---|---|
//! | [`domain`] | [`Domain`]: where routes are served and called; [`RouteBuilder`] and [`ServedRoute`] |
//! | [`caller`] | [`Caller`] and [`Call`]: calling a route |
//! | `served` | workers, and from a request's bytes to its reply's |
//! | `remote` | the reach between processes: requests and replies in shared memory |
//! | `registry` | how processes find each other, and learn of each other's death |
//! | `spill` | what has no room in the one of the next two lies in the other |
//! | [`local`] | the reach inside this process: values move |
//! | [`overflow`] | [`overflow::ElasticQueue`]: a queue whose rest lies on disk |
//! | [`options`] | options of calls and routes |
//! | [`context`] | [`CallContext`]: what a handler may know of its call |
//! | [`message`] | [`Message`]: what a request and a reply are |
//! | [`outcome`] | [`CallError`], [`Refusal`] and [`Rejection`]: how a call ends without a reply |
//! | [`route_name`] | what a route may be called |
//! | `block_on` | drives a future to its end on this thread |
//! | `clock` | the clock of deadlines |
//! | `foreign` | the application's functions, whose panics are caught |
//! | [`error`] | [`RpcError`] |
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

// Under loom only the reach inside a process is there: what opens memory of other processes does not build.
#[cfg(not(loom))]
mod block_on;
#[cfg(not(loom))]
pub mod caller;
mod clock;
pub mod context;
#[cfg(not(loom))]
pub mod domain;
pub mod error;
mod foreign;
pub mod local;
pub mod message;
pub mod options;
pub mod outcome;
#[cfg(not(loom))]
pub mod overflow;
#[cfg(not(loom))]
mod registry;
#[cfg(not(loom))]
mod remote;
pub mod route_name;
#[cfg(not(loom))]
mod served;
#[cfg(not(loom))]
mod spill;

#[cfg(not(loom))]
pub use caller::{Call, Caller, CallerOptions, Interceptor, Reach};
pub use context::{CallContext, CallerIdentity, Headers, TraceContext};
#[cfg(not(loom))]
pub use domain::{Domain, DomainOptions, RouteBuilder, ServedRoute};
pub use error::RpcError;
pub use gapless_rpc_macros::{Message, route};
pub use message::{Encoding, Json, Message, MessageError};
pub use options::{CallOptions, Priority, Retry, Waiting};
pub use outcome::{CallError, Refusal, Rejection};
#[cfg(not(loom))]
pub use remote::table::CallStatistics;
#[cfg(not(loom))]
pub use served::answering::Asked;
#[cfg(not(loom))]
pub use served::counters::CopyStatistics;
