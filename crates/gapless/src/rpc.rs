//! Calls: services by name, in this process and between processes of one machine, without a broker, with the feature
//! `rpc`.
//!
//! A function becomes a route and its typed client. The same code serves and calls within one process
//! ([`Domain::in_process`]), where values move, and between processes ([`Domain::open`]), where they travel through
//! shared memory:
//!
//! ```
//! use gapless::Message;
//! use gapless::rpc::{CallError, CallOptions, Domain, Rejection, route, together};
//! use serde::{Deserialize, Serialize};
//! use std::time::Duration;
//!
//! #[derive(Serialize, Deserialize, Message)]
//! struct Divide { dividend: i64, divisor: i64 }
//!
//! #[route("calculator/divide")]
//! fn divide(request: Divide) -> Result<i64, Rejection> {
//!     request.dividend.checked_div(request.divisor).ok_or_else(|| "no number is divided by 0".into())
//! }
//!
//! fn server(domain: &Domain) -> Result<(), Box<dyn std::error::Error>> {
//!     let served = divide::serve_by(domain.serve(divide::NAME).workers(2))?;
//!     // A program of its own would wait for its signal here.
//! #   client(domain)?;
//!     served.drain();
//!     Ok(())
//! }
//!
//! fn client(domain: &Domain) -> Result<(), Box<dyn std::error::Error>> {
//!     let divider = divide::caller(domain)?;
//!     assert_eq!(divider.call(Divide { dividend: 42, divisor: 6 })?, 7);
//!     match divider.call(Divide { dividend: 42, divisor: 0 }) {
//!         Err(CallError::Refused { refusal, .. }) => assert_eq!(refusal.text, "no number is divided by 0"),
//!         other => panic!("{other:?}"),
//!     }
//!     // Ten at once, joined under one deadline: `None` for each reply that is late.
//!     let calls = (1..=10).map(|divisor| divider.start(Divide { dividend: 2520, divisor }));
//!     let quotients = together::within(calls, Duration::from_secs(5));
//!     assert_eq!(quotients[9], Some(Ok(252)));
//!     Ok(())
//! }
//!
//! // In two processes each opens it: `Domain::open_from_environment("calculator", DomainOptions::default())`.
//! server(&Domain::in_process("calculator"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `gapless routes`, `gapless call`, `gapless serve` and `gapless broadcast` do the same from a shell. The guide
//! `docs/guides/calling.md` has the rest: options, outcomes of calls, retries, and the effects of each death.

/// Derives a route and its typed client from a function, for the calls of this module: see the example at its head.
pub use gapless_macros::face_route as route;
pub use gapless_rpc::caller::{InstanceAddress, together};
pub use gapless_rpc::domain::{CallReading, InstanceReading, KnownRoute, KnownRouteState, ServeReach};
pub use gapless_rpc::interceptors;
pub use gapless_rpc::overflow::ElasticQueueOptions;
pub use gapless_rpc::{
    Call, CallContext, CallError, CallOptions, CallScope, CallStatistics, Caller, CallerAddress, CallerIdentity,
    CallerOptions, Domain, DomainOptions, InstanceQuery, InstanceStatistics, Priority, Reach, Refusal, Rejection,
    Retry, RouteBuilder, RpcError, ServedRoute, TraceBridge, TraceContext, TraceParentError, Waiting, set_trace_bridge,
};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/calling.md")]
struct Guide;
