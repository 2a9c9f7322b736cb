//! Services on a stream: dispatch, exactly-once replies, timers, snapshots, recovery.
//!
//! | module | contents |
//! |---|---|
//! | [`stream_service`] | [`StreamService`]: a service as a node of an event stream that belongs to others |
//! | [`embedded_host`] | [`EmbeddedHost`]: a host without threads, polled by its owner |
//! | [`service_host`] | [`ServiceHost`]: a service with a stream of its own, and its threads |
//! | `replica` | `Replica`: a service on a member of a cluster, with the feature `cluster` |
//! | [`replica_service`] | a service in the form that a cluster member runs |
//! | [`executor`] | [`executor::Executor`]: the agent that applies released frames and replies |
//! | [`sender`] | the agent that sends replies on a thread of its own, if configured |
//! | [`state`] | [`StateService`]: state replication, where only the leader runs the handlers |
//! | [`transaction_service`] | services with a writer of their own, which turns commands into transactions |
//! | [`state_hasher`] | [`state_hasher::StateHasher`]: hashes of the state, compared between members |
//! | `thread_assignment`, `host_journal` | a host's threads; a host's journal for snapshots |
//! | [`snapshot_schedule`] | times of snapshots, and the thread that writes them |
//! | [`options`] | [`ServiceHostOptions`]: configuration of a host |
//! | [`recovery`] | state recovery at a start, and debugging replays of a journal |
//! | [`directory_consistency`] | checks that a directory's files come from one history, and starts a new one |
//! | [`skips`] | commands skipped by an operator: marks in the stream, and a file for starts |
//! | [`interruption`] | the frame in progress when the previous process was killed or aborted |
//! | [`output_record`] | a record of the handlers' outputs, which reveals a replay with other outputs |
//! | [`snapshot`] | the snapshot file |
//! | [`fold`] | [`Fold`]: state, sessions and timers as a fold over the stream; no I/O |
//! | `erased_service` | a service without its type, so that the rest is compiled once |
//! | [`mod@service`] | [`Service`] and [`Handlers`]: the application's part |
//! | [`query`] | [`QueryContext`]: a query handler's view of the stream; answers of typed queries |
//! | `pending_query` | a query on its way |
//! | `typed_command` | decoding and answers of typed commands |
//! | `typed_message` | timers, notices and events: messages without an answer |
//! | [`context`] | [`Context`]: a handler's view of its message, and its outputs |
//! | `handler_guard` | guard around application code: panics, refusals, inadmissible changes |
//! | [`sessions`] | session table: last replies and notices of each session |
//! | [`timers`] | timer table |
//! | [`dead_letters`] | log of commands that no handler took |
//! | [`store`] | [`store::Store`]: typed objects with change tracking, for state replication |
//! | [`error`] | [`EngineError`] |
//! | [`reject`] | [`Reject`]: a handler's refusal, sent to the client |
//! | [`transaction_layout`] | encoding of a transaction in the stream |
//! | [`outputs`] | outputs of a running handler, committed or dropped together |
//! | [`random`] | random numbers for handlers, the same at every replay |
//!
//! Path of a command: sequencer → window → journaler → released → [`executor`] → [`fold`] → handler → [`outputs`] →
//! [`sessions`] → the publisher's ring. Path of a query: sequencer → [`executor`] → handler → the publisher's ring; of a
//! leader's replicated state: → the appending agent → handler → [`executor`], which waits for the release.

#![forbid(unsafe_code)]

pub mod context;
pub mod dead_letters;
pub mod directory_consistency;
pub mod embedded_host;
mod erased_service;
pub mod error;
pub mod executor;
pub mod fold;
mod handler_guard;
mod host_journal;
pub mod interruption;
pub mod options;
pub mod output_record;
pub mod outputs;
mod pending_query;
pub mod query;
pub mod random;
pub mod recovery;
pub mod reject;
#[cfg(feature = "cluster")]
pub mod replica;
pub mod replica_service;
pub mod sender;
pub mod service;
pub mod service_host;
pub mod sessions;
pub mod skips;
pub mod snapshot;
pub mod snapshot_schedule;
pub mod state;
pub mod state_hasher;
pub mod store;
pub mod stream_service;
mod thread_assignment;
pub mod timers;
pub mod transaction_layout;
pub mod transaction_service;
mod typed_command;
mod typed_message;

pub use context::Context;
pub use embedded_host::{CommandOutcome, EmbeddedHost};
pub use error::EngineError;
pub use fold::{Fold, OnOtherOutputs, OnOtherProgram, OnPanic, OnUnhandled, Policy};
pub use gapless_macros::service;
pub use gapless_stream::Persistence;
pub use options::{ServiceHostOptions, Threads};
pub use outputs::OUTPUT_LENGTH_MAX;
pub use query::QueryContext;
pub use reject::Reject;
#[cfg(feature = "cluster")]
pub use replica::Replica;
pub use replica_service::ReplicaOptions;
pub use service::{Handlers, Service};
pub use service_host::ServiceHost;
pub use state::{StateHandlers, StateOptions, StateService};
pub use stream_service::{StreamService, StreamServiceOptions};
pub use typed_message::NoticesFull;
