//! The command bus: commands, aggregates, and an event store that is the stream.
//!
//! | module | what lives there |
//! |---|---|
//! | [`deleted`] | [`DeletedEvents`]: the file that replaces deleted events, read from outside |
//! | [`derived`] | [`DerivedFiles`]: files next to a journal that are derived from it |
//! | [`directory`] | [`EventDirectory`]: the events of a directory, read from outside |
//! | `drives` | tests of the promises of a bus, on each of its drives |
//! | `simulated` | for the simulator: a command bus on a member that is polled, with the feature `cluster` |
//! | `member` | `CommandMember`: a command bus on a member of a cluster, with the feature `cluster` |
//! | [`direct`] | [`PolledBus`]: a command bus without threads, polled by its one owner |
//! | [`host`] | [`CommandHost`]: a command bus and its stream, on one node |
//! | `bare_writer` | the writer without a stream, for fuzzing |
//! | [`fixture`] | given, when, then: tests of aggregates and models alone |
//! | [`bus`] | [`CommandBus`]: sends commands and returns outcomes |
//! | `released` | state that every member derives from released transactions |
//! | `writer` | turns commands into transactions |
//! | [`found_events`] | [`FoundEvents`]: the events of a filter |
//! | `store` | index of the events of an aggregate, of a tag or of a type |
//! | [`events`] | [`EventReader`]: the events of the stream |
//! | `stored_frames` | the frames of a directory's journal, read from outside |
//! | `open_readers` | positions of readers, which deletions respect |
//! | [`model`] | [`CommandModel`]: the types of aggregates and handlers |
//! | [`names`] | [`TypeNames`]: names of types, in a file next to the journal |
//! | [`interceptor`] | [`DispatchInterceptor`], [`HandlerInterceptor`]: hooks around every command |
//! | [`handler`] | [`CommandHandler`]: commands that span aggregates |
//! | [`decision_model`] | [`DecisionModel`]: states for decisions that span aggregates |
//! | [`aggregate`] | [`Aggregate`]: decides on commands and changes by events |
//! | [`draft`] | [`Draft`]: a command to be sent |
//! | `handling` | commands sent from within a handler |
//! | [`outcome`] | [`CommandOutcome`]: the outcome of a command without its types |
//! | `envelope` | encoding of commands and answers |
//! | [`event_filter`] | [`EventFilter`]: selects events |
//! | [`snapshots`] | states of aggregates in files; [`SnapshotPolicy`] |
//! | [`identifiers`] | remembered identifiers of commands |
//! | `short_bytes` | byte strings that are usually short |
//! | `samples` | sample aggregates for tests |
//! | [`transaction`] | encoding of events in the stream |
//! | [`origin`] | [`Cause`] and correlation of commands |
//! | [`error`] | [`CommandError`] and [`ModelError`] |
//! | [`identity`] | [`Position`], [`AggregateId`], [`TypeKey`] |
//!
//! Commands, events and refusals are [`message::Message`]s, from the crate `gapless-message`, which is re-exported as
//! [`message`].
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
pub mod outcome;
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

pub use aggregate::{Aggregate, Creation, Decision, DecisionContext, Entity, OldEvent, Tags};
pub use bus::{AcceptedCommand, BusOptions, CommandBus, PendingOutcome, RetryPolicy};
pub use decision_model::DecisionModel;
pub use deleted::DeletedEvents;
pub use derived::DerivedFiles;
pub use direct::{PolledBus, Ticket};
pub use directory::EventDirectory;
pub use draft::Draft;
pub use error::{BaseFileError, BusError, CommandError, IndexFileError, ModelError, TypesError};
pub use event_filter::EventFilter;
pub use events::{EventReader, ReadError, RecordedTransaction};
pub use fixture::{Fixture, Invariants, ModelFixture, ModelInvariants, Random, TestEvent, When, WhenSent};
pub use found_events::FoundEvents;
pub use gapless_message as message;
pub use gapless_message::headers::Headers;
pub use gapless_message::{Message, MessageError};
pub use handler::{CommandHandler, EventTags, ExecuteError, HandlerContext, HandlerError, Interruption};
pub use host::{AggregateOptions, CommandCounters, CommandHost, DeletionError, DeletionReport, HostError};
pub use identifiers::{IdentifierLimits, time_ordered_identifier};
pub use identity::{AggregateId, IdForm, Position, TypeKey};
pub use interceptor::{DispatchInterceptor, DispatchedCommand, HandlerInterceptor, InterceptedCommand};
pub use model::CommandModel;
pub use names::TypeNames;
pub use origin::{CAUSATION, CORRELATION, Cause};
pub use outcome::CommandOutcome;
pub use snapshots::SnapshotPolicy;
pub use transaction::{CommandIdentity, RecordedEvent, RecordedEvents};
