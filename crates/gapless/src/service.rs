//! Services on a stream. A [`Host`](crate::Host) runs them.
//!
//! An *event-sourced* [`Service`] is a deterministic fold: its handlers run on every member and at every replay. A
//! *state-replicated* [`StateService`] keeps its state in a [`Store`](crate::store::Store); its handlers run once, and
//! the stream holds their changes.
//!
//! ```
//! use gapless::Host;
//! use gapless::prelude::*;
//! use gapless::store::{Counter, Store};
//!
//! const CALL: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
//!
//! struct Calls {
//!     counter: Counter,
//! }
//!
//! impl Calls {
//!     fn new(store: &mut Store) -> Self {
//!         Self { counter: store.counter(1, "calls") }
//!     }
//! }
//!
//! impl StateService for Calls {
//!     fn handlers(handlers: &mut StateHandlers<Self>) {
//!         handlers.on_bytes(CALL.schema, |calls: &Self, store, payload, context| {
//!             store.add(calls.counter, 1)?;
//!             if payload.is_empty() {
//!                 return Err("an empty call".into()); // Undoes the changes before it.
//!             }
//!             let count = store.value(calls.counter);
//!             context.reply_with(CALL, &count.to_le_bytes())
//!         });
//!     }
//! }
//!
//! let host = Host::in_memory().replicated_state(Calls::new).start()?;
//! let mut client = host.polled_client(ClientOptions::default())?;
//! let session = client.open_session(random_token(), 16)?;
//! assert!(client.call(session, CALL, b"", Duration::from_secs(5)).is_err());
//! assert_eq!(client.call(session, CALL, b"now", Duration::from_secs(5))?.payload, 1_i64.to_le_bytes());
//! host.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate's first example is an event-sourced service. `docs/guides/writing-a-service.md` has the rules for both.

pub use gapless_engine::fold::{
    CheckRefusals, CheckSnapshots, OnOtherOutputs, OnOtherProgram, OnPanic, OnUnhandled, Policy,
};
pub use gapless_engine::interruption::{interrupted_at, interrupted_speculation_at};
pub use gapless_engine::recovery::RecoverySummary;
#[doc(hidden)]
pub use gapless_engine::service::derived;
pub use gapless_engine::skips::{SkippedCommand, skip};
pub use gapless_engine::{
    Context, EngineError, Handlers, NoticesFull, Persistence, QueryContext, Reject, Service, StateHandlers,
    StateService, Threads,
};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/writing-a-service.md")]
struct Guide;
