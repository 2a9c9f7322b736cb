//! [`CommandHost`]: a command bus and its stream, on one node.

#[cfg(test)]
mod archive_tests;
mod base_builder;
#[cfg(test)]
mod cold_tests;
mod counters;
#[cfg(test)]
mod decision_tests;
#[cfg(test)]
mod deletion_edge_tests;
mod deletion_error;
#[cfg(test)]
mod deletion_tests;
mod event_deleter;
mod loading;
mod loading_failure;
mod state_builder;
mod transactions;
#[cfg(test)]
pub(crate) mod version_tests;
#[cfg(test)]
mod waiting_tests;

pub use counters::CommandCounters;
pub use deletion_error::DeletionError;
pub use event_deleter::DeletionReport;

use crate::bus::{BusOptions, CommandBus};
use crate::error::{BaseFileError, ModelError, TypesError};
use crate::event_filter::EventFilter;
use crate::events::EventReader;
use crate::found_events::FoundEvents;
use crate::handling::FollowUpQueue;
use crate::identifiers::{IdentifierLimits, Identifiers};
use crate::identity::Position;
use crate::model::CommandModel;
use crate::names::TypeNames;
use crate::released::{IdentifierHandover, ReleasedState};
use crate::store::EventIndex;
use counters::CommandCountersReader;
use event_deleter::EventDeleter;
use gapless_agent::fault::crash_point;
use gapless_agent::progress::ProgressCounter;
use gapless_client::ClientError;
use gapless_client::polled::ClientOptions;
use gapless_client::replay_merge::ReplayMerge;
use gapless_engine::transaction_service::{ReleasedTransaction, ReleasedTransactions, WriterParts};
use gapless_engine::{EngineError, ServiceHost, ServiceHostOptions};
use gapless_journal::Retention;
use gapless_stream::transactions::Transactions;
use loading::IndexReader;
use std::io;
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};
use transactions::BusTransactions;

/// Options besides those of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregateOptions {
    /// Limits of remembered identifiers.
    pub identifiers: IdentifierLimits,
    /// Approximate limit of aggregates in memory; unindexed ones stay, at tier `memory` all.
    pub aggregates_max: usize,
    /// Approximate limit of decision models in memory, with conditions; at tier `memory` all stay.
    pub decision_models_max: usize,
    /// Index entries in memory, about 40 bytes each, before they become a file: one for an event's aggregate, type and
    /// each tag.
    pub index_entries_max: usize,
}

impl Default for AggregateOptions {
    /// A million aggregates, 100,000 decision models and a million identifiers (for a day) in memory; two million index
    /// entries.
    fn default() -> Self {
        Self {
            identifiers: IdentifierLimits::default(),
            aggregates_max: 1_000_000,
            decision_models_max: 100_000,
            index_entries_max: 2 << 20,
        }
    }
}

/// Target, at level trace: span `command` during the decision, event `released`.
pub(crate) const TRACE_TARGET: &str = "gapless::commands";

#[inline]
fn is_traced() -> bool {
    tracing::level_filters::LevelFilter::current() >= tracing::level_filters::LevelFilter::TRACE
}

#[cold]
fn trace_released(sequence: u64, session: u64, number: u64) {
    tracing::trace!(target: TRACE_TARGET, sequence, session, number, "released");
}

/// A command bus does not start, or has stopped.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The model is invalid. Correct the program.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The service cannot start, or has stopped.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A handle cannot be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Events are deleted, and the base that stands for them cannot be used.
    #[error(transparent)]
    Base(BaseFileError),
}

impl HostError {
    pub(crate) fn of_start(error: EngineError) -> Self {
        if let EngineError::System { source, .. } = &error
            && let Some(base) = source.get_ref().and_then(|source| source.downcast_ref::<BaseFileError>())
        {
            return Self::Base(base.clone());
        }
        error.into()
    }
}

/// A command bus and its stream, on one node.
pub struct CommandHost {
    service: ServiceHost,
    bus_reader: BusReader,
}

impl CommandHost {
    /// Recovers `stream.directory`, and starts.
    ///
    /// # Errors
    /// An invalid model; senseless options, such as retention (an event store keeps its events); a directory in use;
    /// damage; a journal that has lost its beginning and has no intact base ([`HostError::Base`]); events whose layout
    /// differs from the stream's at the same version ([`TypesError`] is the source); too few threads or too little
    /// memory.
    pub fn start(
        model: CommandModel,
        options: AggregateOptions,
        stream: ServiceHostOptions,
    ) -> Result<Self, HostError> {
        refuse_retention(&stream)?;
        let BusParts { released, make_writer, bus_reader } = bus_parts(model, options)?;
        let started = ServiceHost::start_transactions(released, make_writer, stream);
        let service = started.map_err(HostError::of_start)?;
        bus_reader.resume_deletion(&service);
        Ok(Self { service, bus_reader })
    }

    /// A handle of the bus.
    ///
    /// # Errors
    /// Too little memory, or too few descriptors.
    pub fn bus(&self, options: &BusOptions) -> Result<CommandBus, HostError> {
        let client = self.service.connect(ClientOptions::default())?;
        Ok(CommandBus::over(client, options)?)
    }

    /// All events from a position on.
    #[must_use]
    pub fn events(&self, from: Position) -> EventReader {
        self.bus_reader.events(self.service.reader(from.sequence), from, self.service.progress())
    }

    /// Deletes the events before a sequence for good, while commands go on: whole segments of the journal, with
    /// archived parts. Reading them fails with [`ReadError::Deleted`](crate::ReadError::Deleted).
    ///
    /// The states of their aggregates are synced to one file first, so an aggregate keeps its state and version.
    /// Aggregates are then loaded from it: the versions of their types must stay readable.
    ///
    /// Blocks until that file is written: one pass over the events for each million of their aggregates
    /// ([`AggregateOptions::aggregates_max`]). Segments are deleted gradually; if the host is killed, after its next
    /// start.
    ///
    /// # Errors
    /// Nothing is deleted if a type of affected aggregates keeps no snapshots, an aggregate cannot be loaded, the model
    /// has decision models, a reader of this host is at an earlier position, or the disk fails; see [`DeletionError`].
    pub fn delete_events_before(&self, sequence: u64) -> Result<DeletionReport, DeletionError> {
        let reader = EventReader::over(self.service.reader(1), Position::default());
        let report = self.bus_reader.write_base(sequence, reader, || self.service.snapshot())?;
        self.service.delete_journal_before(report.before);
        Ok(report)
    }

    /// Released events of a filter, with those of every answered command.
    #[must_use]
    pub fn found_events(&self, filter: EventFilter, from: Position) -> FoundEvents {
        self.bus_reader.found_events(filter, from, self.service.reader(1), self.service.progress())
    }

    #[must_use]
    pub fn counters(&self) -> CommandCounters {
        self.bus_reader.counters()
    }

    #[must_use]
    pub const fn service(&self) -> &ServiceHost {
        &self.service
    }

    /// Stops cleanly, after commands taken; returns the last sequence.
    ///
    /// # Errors
    /// The error that made it stop by itself.
    pub fn stop(self) -> Result<u64, HostError> {
        Ok(self.service.stop()?)
    }
}

/// Filled in by the writer when it is created.
pub(crate) struct BusReader(Arc<OnceLock<BusReaderParts>>);

struct BusReaderParts {
    index: IndexReader,
    counters: CommandCountersReader,
    event_deleter: EventDeleter,
}

impl BusReader {
    fn parts(&self) -> &BusReaderParts {
        self.0.get().expect(WRITER_IS_MADE)
    }

    /// All events from a position on.
    pub fn events(&self, frames: ReplayMerge, from: Position, progress: Arc<ProgressCounter>) -> EventReader {
        EventReader::over(frames, from).with_progress(progress).registered_in(&self.parts().event_deleter.readers)
    }

    /// Events found by the index.
    pub fn found_events(
        &self,
        filter: EventFilter,
        from: Position,
        frames: ReplayMerge,
        progress: Arc<ProgressCounter>,
    ) -> FoundEvents {
        let reader = EventReader::over(frames, Position::default()).with_progress(progress);
        let BusReaderParts { index, event_deleter, .. } = self.parts();
        FoundEvents::new(filter, from, Box::new(index.clone()), reader, &event_deleter.readers)
    }

    pub fn counters(&self) -> CommandCounters {
        self.parts().counters.read()
    }

    /// Deletes further segments that the base replaces.
    pub fn resume_deletion(&self, service: &ServiceHost) {
        match self.parts().event_deleter.deleted_before() {
            0 => {}
            before => service.delete_journal_before(before),
        }
    }

    /// Writes a base; see [`CommandHost::delete_events_before`].
    pub fn write_base(
        &self,
        before: u64,
        reader: EventReader,
        snapshot: impl FnOnce() -> Result<u64, EngineError>,
    ) -> Result<DeletionReport, DeletionError> {
        let BusReaderParts { index, event_deleter, .. } = self.parts();
        event_deleter.write_base(before, index, reader, snapshot)
    }
}

const WRITER_IS_MADE: &str = "a bus that has started has made its writer";

type MakeWriter = Box<dyn FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send>;

pub(crate) struct BusParts {
    /// Applies released transactions.
    pub released: ReleasedConsumer,
    pub make_writer: MakeWriter,
    pub bus_reader: BusReader,
}

/// Aggregates are loaded from their events, so none may expire.
pub(crate) fn refuse_retention(stream: &ServiceHostOptions) -> Result<(), HostError> {
    if stream.persistence.retention == Retention::default() {
        return Ok(());
    }
    let reason = "an event store keeps its events: `gapless events archive` puts old ones elsewhere".to_owned();
    Err(EngineError::Option { option: "persistence.retention", reason }.into())
}

pub(crate) fn bus_parts(model: CommandModel, options: AggregateOptions) -> Result<BusParts, ModelError> {
    bus_parts_on(Threading::OwnThread, model, options)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threading {
    OwnThread,
    /// The writer's thread, in its turns; for simulations.
    InTurns,
}

pub(crate) fn bus_parts_on(
    threading: Threading,
    model: CommandModel,
    options: AggregateOptions,
) -> Result<BusParts, ModelError> {
    let mut model = model.finish()?;
    let handover = Arc::new(IdentifierHandover::default());
    let released = ReleasedState::new(options.identifiers, Arc::clone(&handover));
    let follow_ups = Arc::new(FollowUpQueue::default());
    let released = ReleasedConsumer { released, versions: model.versions.clone(), follow_ups: Arc::clone(&follow_ups) };
    let bus_reader = BusReader(Arc::default());
    let parts_cell = Arc::clone(&bus_reader.0);
    let make_writer = move |parts: WriterParts<'_>| {
        let (base, index) = (event_deleter::open_base(&model, &parts)?, EventIndex::empty());
        if let Some(base) = base {
            index.set_base(base);
        }
        let event_deleter = EventDeleter::new(&model, options.aggregates_max, index.clone(), &parts);
        if let Some(journal) = parts.journal() {
            match model.names.put(&journal.with_file_name(TypeNames::FILE_NAME), &model.event_layouts) {
                Ok(names) => model.names = names,
                Err(error) if TypesError::of(&error).is_some() => return Err(error),
                Err(error) => {
                    tracing::warn!("who looks at events from outside is not told what types are called: {error}")
                }
            }
        }
        let identifiers = Identifiers::new(options.identifiers);
        let (options, handover) = ((&options, threading), (handover, follow_ups));
        let writer = BusTransactions::new(model, identifiers, options, handover, index, parts)?;
        let (index, counters) = writer.readers();
        // The writer is created once.
        let _ = parts_cell.set(BusReaderParts { index, counters, event_deleter });
        Ok(Box::new(writer) as Box<dyn Transactions>)
    };
    Ok(BusParts { released, make_writer: Box::new(make_writer), bus_reader })
}

pub(crate) struct ReleasedConsumer {
    released: ReleasedState,
    versions: RangeInclusive<u32>,
    follow_ups: Arc<FollowUpQueue>,
}

impl ReleasedTransactions for ReleasedConsumer {
    #[inline]
    fn apply(&mut self, transaction: &ReleasedTransaction<'_>) -> Result<(), String> {
        let ReleasedTransaction { sequence, timestamp_ns, reply, changes, session, session_seq } = *transaction;
        crash_point("transaction_released");
        if is_traced() {
            trace_released(sequence, session, session_seq);
        }
        self.released.apply(sequence, timestamp_ns, reply.unwrap_or_default(), changes)
    }

    #[inline]
    fn between_batches(&mut self, last_sequence: u64) {
        self.released.between_batches(last_sequence);
        self.follow_ups.send_released(last_sequence);
    }

    fn versions(&self) -> RangeInclusive<u32> {
        self.versions.clone()
    }

    fn become_version(&mut self, version: u32) {
        self.released.become_version(version);
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        self.released.snapshot(state);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.released.restore(state)
    }
}
