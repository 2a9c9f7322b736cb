//! Services on a stream: dispatch, exactly-once replies, timers, snapshots, recovery.
//!
//! | module | what lives there |
//! |---|---|
//! | [`stream_service`] | [`StreamService`]: a service as a node of an event stream that belongs to others |
//! | [`embedded_host`] | [`EmbeddedHost`]: the same without threads, polled by its one owner |
//! | [`service_host`] | [`ServiceHost`]: a service and a stream of its own, put together and run |
//! | `replica` | `Replica`: a service on a member of a cluster, with the feature `cluster` |
//! | [`replica_service`] | a service as a member of a cluster runs it |
//! | [`executor`] | [`executor::Executor`]: the agent that applies released frames and answers |
//! | [`sender`] | the agent that delivers on a thread of its own, where one is asked for |
//! | [`state`] | [`StateService`]: state replication, in which the leader alone runs the handlers |
//! | [`transaction_service`] | services whose commands become transactions by a writer of their own |
//! | [`state_hasher`] | [`state_hasher::StateHasher`]: hashes of the state, for members to compare |
//! | `thread_assignment`, `host_journal` | a host's threads; its journal as snapshots need it |
//! | [`snapshot_schedule`] | when snapshots are taken, and the thread that writes them |
//! | [`options`] | [`ServiceHostOptions`]: how a host is run |
//! | [`recovery`] | how a start finds the state again, and a journal replayed for debugging |
//! | [`directory_consistency`] | whether everything in a directory comes from one history, and making it one of its own |
//! | [`skips`] | commands that an operator has skipped, marks of the stream and a file for starts |
//! | [`interruption`] | which frame was being handled when the process before was killed or aborted |
//! | [`output_record`] | a record of the handlers' outputs, so that a replay with other outputs is noticed |
//! | [`snapshot`] | the file that a snapshot is |
//! | [`fold`] | [`Fold`]: state, sessions and timers as a fold of the stream; no I/O |
//! | `erased_service` | a service without its type, so that the rest is compiled once |
//! | [`service`] | [`Service`] and [`Handlers`]: what an application writes |
//! | [`context`] | [`Context`]: what a handler may do |
//! | `handler_guard` | the guard around what an application writes: panics, refusals, changes that cannot be kept |
//! | [`sessions`] | the session table: each session's last replies and its notices |
//! | [`timers`] | the timer table |
//! | [`dead_letters`] | the record of commands that no handler took |
//! | [`store`] | [`store::Store`]: typed objects whose changes are tracked, for state replication |
//! | [`error`] | [`EngineError`] |
//! | [`reject`] | [`Reject`]: a handler's refusal, which the publisher gets |
//! | [`transaction_layout`] | what a leader's handler has done, as bytes in the stream |
//! | [`outputs`] | a handler's outputs while it runs; they leave together or not at all |
//! | [`random`] | the random numbers of handlers, the same at every replay |
//!
//! A command's walk: sequencer → window → journaler → released → [`executor`] → [`fold`] → handler →
//! [`outputs`] → [`sessions`] → the publisher's ring.

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

pub use context::{Context, OUTPUT_LENGTH_MAX};
pub use embedded_host::{Decided, EmbeddedHost};
pub use error::EngineError;
pub use fold::{Fold, OnOtherOutputs, OnOtherProgram, OnPanic, OnUnhandled, Policy};
pub use gapless_stream::Persistence;
pub use options::{ServiceHostOptions, Threads};
pub use reject::Reject;
#[cfg(feature = "cluster")]
pub use replica::Replica;
pub use replica_service::ReplicaOptions;
pub use service::{Handlers, Service};
pub use service_host::ServiceHost;
pub use state::{StateHandlers, StateOptions, StateService};
pub use stream_service::{StreamService, StreamServiceOptions};
