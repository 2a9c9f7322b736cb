//! Relays: routes served and called as bytes, by programs that carry calls between domains of several machines.
//!
//! A program that is a member of two domains, or of one and of a network, opens a [`Relay`] for each route that is
//! served elsewhere. It takes encoded requests, carries them to where the route is served, and answers with the outcome
//! there. Callers and instances do not notice: the real instance compares the types, and every end of a call is passed
//! back unchanged.
//!
//! Nothing here blocks or has threads of its own: a relay and its calls are polled.
//!
//! # Instances
//! A relay announces which instances in other domains it [stands for](RelayBuilder::stands_for). For such a route
//! - a call without a key goes to an instance of this domain, if an open one accepts the caller, else to a relay;
//! - a call with a key goes to the instance of that key among all, here and elsewhere, so that all domains agree on it;
//! - a broadcast reaches every instance, each with a request of its own that [names it](RelayedRequest::instance).
//!
//! # Two domains in one program
//!
//! ```
//! use gapless_rpc::domain::{Domain, DomainOptions};
//! use gapless_rpc::message::described::TypeDescription;
//! use gapless_rpc::relay::RelayedCall;
//! use std::time::Duration;
//!
//! let folder = tempfile::tempdir()?;
//! let open = |name: &str| Domain::open_directory(folder.path().join(name), DomainOptions::default());
//! // Two members of each domain: a process does not call its own routes so.
//! let (server, far, near, client) = (open("far")?, open("far")?, open("near")?, open("near")?);
//! let _route = server.serve("double").handle(|number: u64, _: &gapless_rpc::CallContext| Ok(number * 2))?;
//!
//! let mut relay = near.relay("double").open()?;
//! let caller = client.caller::<u64, u64>("double")?;
//! let call = caller.start(21);
//! let mut request = std::iter::repeat_with(|| relay.take()).flatten().next().expect("it comes");
//! let types: (TypeDescription, TypeDescription) = (request.request_type().clone(), request.reply_type().clone());
//! let elsewhere = far.relayed_caller("double", types.0, types.1)?;
//! assert!(request.begin(), "its caller still waits");
//! let timeout = request.remaining();
//! let payload = request.take_payload();
//! match elsewhere.start(RelayedCall { payload, timeout, ..RelayedCall::default() }).wait() {
//!     Ok(reply) => request.reply(&reply),
//!     Err(error) => request.end(&error),
//! };
//! assert_eq!(call.wait(), Ok(42));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod opening;
mod relayed_caller;
mod request;

pub use crate::registry::{INSTANCE_NAME_LENGTH_MAX, INSTANCES_MAX, Instance};
pub use opening::{Relay, RelayBuilder};
pub use relayed_caller::{RelayedCall, RelayedCaller};
pub use request::RelayedRequest;
