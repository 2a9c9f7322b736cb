//! The command bus: commands, aggregates, and an event store that is the stream.
//!
//! | module | what lives there |
//! |---|---|
//! | [`deleted`] | [`DeletedEvents`]: what stands for deleted events, looked at from outside |
//! | [`derived`] | [`DerivedFiles`]: what is made of a journal and lies beside it |
//! | [`directory`] | [`EventDirectory`]: the events of a directory, read from outside |
//! | `drives` | tests of the promises of a bus, over each of its drives |
//! | `simulated` | for the simulator: a command bus on a member that is polled, with the feature `cluster` |
//! | `member` | `CommandMember`: a command bus on a member of a cluster, with the feature `cluster` |
//! | [`direct`] | [`DirectBus`]: the same without threads, polled by its one owner |
//! | [`host`] | [`CommandHost`]: a command bus and its stream, on one node |
//! | `bare_writer` | the writer without a stream, for hostile bytes |
//! | [`fixture`] | given, when, then: tests of aggregates and models, without anything around them |
//! | [`bus`] | [`CommandBus`]: how commands are sent, and outcomes come back |
//! | `released` | what every member makes of released transactions |
//! | `writer` | from a command to its transaction |
//! | [`found_events`] | [`FoundEvents`]: the events that a filter has |
//! | `store` | where the events of an aggregate, with a tag or of a type are |
//! | [`events`] | [`EventReader`]: the events of the stream |
//! | `stored_frames` | the frames of a directory's journal, read from outside |
//! | `open_readers` | where readers are, for who deletes events |
//! | [`model`] | [`CommandModel`]: which aggregates and handlers there are |
//! | [`names`] | [`TypeNames`]: what types are called, in a file beside the journal |
//! | [`interceptor`] | [`DispatchInterceptor`], [`HandlerInterceptor`]: what looks at every command |
//! | [`handler`] | [`CommandHandler`]: commands that are no single aggregate's |
//! | [`decision_model`] | [`DecisionModel`]: what is decided by that is no aggregate's state |
//! | [`aggregate`] | [`Aggregate`]: what decides on commands and changes by events |
//! | [`draft`] | [`Draft`]: a command that is not sent yet |
//! | `handling` | whether a thread runs a handler, and what that has sent |
//! | [`ending`] | [`Ending`]: how a command has ended, without its types |
//! | `envelope` | the bytes of a command and of its answer |
//! | [`event_filter`] | [`EventFilter`]: which events are meant |
//! | [`snapshots`] | states of aggregates in files; [`SnapshotPolicy`] |
//! | [`identifiers`] | the identifiers of commands that are remembered |
//! | `short_bytes` | bytes of which most are few |
//! | `samples` | what tests decide on |
//! | [`transaction`] | the bytes of events in the stream |
//! | [`origin`] | [`Cause`] and correlation: what a command was sent for, and what it belongs to |
//! | [`error`] | [`CommandError`] and [`ModelError`] |
//! | [`identity`] | what things are called: [`Position`], [`AggregateId`], [`TypeKey`] |
//!
//! What commands, events and refusals are, [`message::Message`], is in the crate `gapless-message`, which is here as [`message`].
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod aggregate;
#[doc(hidden)] // For the targets of the fuzzer.
pub mod bare_writer;
pub mod bus;
pub mod decision_model;
pub mod deleted;
pub mod derived;
pub mod direct;
pub mod directory;
pub mod draft;
#[cfg(test)]
mod drives;
pub mod ending;
mod envelope;
pub mod error;
pub mod event_filter;
pub mod events;
pub mod fixture;
pub mod found_events;
pub mod handler;
mod handling;
pub mod host;
pub mod identifiers;
pub mod identity;
pub mod interceptor;
#[cfg(feature = "cluster")]
pub mod member;
pub mod model;
pub mod names;
mod open_readers;
pub mod origin;
mod released;
#[cfg(test)]
mod samples;
mod short_bytes;
#[cfg(feature = "cluster")]
#[doc(hidden)] // For the simulator.
pub mod simulated;
pub mod snapshots;
mod store;
mod stored_frames;
pub mod transaction;
mod writer;

pub use aggregate::{Aggregate, Circumstances, Creation, Decision, Entity, OldEvent, Tags};
pub use bus::{Accepted, BusOptions, CommandBus, Pending, RetryPolicy};
pub use decision_model::DecisionModel;
pub use deleted::DeletedEvents;
pub use derived::DerivedFiles;
pub use direct::{DirectBus, Ticket};
pub use directory::EventDirectory;
pub use draft::Draft;
pub use ending::Ending;
pub use error::{BaseFileError, BusError, CommandError, IndexFileError, ModelError, TypesError};
pub use event_filter::EventFilter;
pub use events::{EventReader, ReadError, RecordedTransaction};
pub use fixture::{Fixture, Happened, Invariants, ModelFixture, ModelInvariants, Random, When, WhenSent};
pub use found_events::FoundEvents;
pub use gapless_message as message;
pub use gapless_message::headers::Headers;
pub use gapless_message::{Message, MessageError};
/// Makes a message of a struct or an enum: a command, an event, a reply or a refusal.
///
/// ```
/// use gapless_cqrs::Message;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Message)]
/// #[message(version = 2)]
/// enum Event {
///     Opened,
///     Deposited(u64),
///     #[message(since = 2)]
///     Closed,
/// }
/// assert_eq!(Event::shape(), "Event v2 enum {Opened, Deposited(u64), Closed}");
/// ```
pub use gapless_rpc_macros::CommandMessage as Message;
pub use handler::{CommandHandler, EventTags, Interruption, Stop, Undone, Work};
pub use host::{CommandCounters, CommandHost, CommandHostOptions, DeletionError, DeletionReport, HostError};
pub use identifiers::{IdentifierLimits, time_ordered_identifier};
pub use identity::{AggregateId, IdForm, Position, TypeKey};
pub use interceptor::{DispatchInterceptor, Dispatched, HandlerInterceptor, Intercepted};
pub use model::CommandModel;
pub use names::TypeNames;
pub use origin::{CAUSATION, CORRELATION, Cause};
pub use snapshots::SnapshotPolicy;
pub use transaction::{CommandIdentity, RecordedEvent, RecordedEvents};
