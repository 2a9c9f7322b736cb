//! [`CommandHost`]: a command bus and its stream, on one node.
//!
//! | module | what lives there |
//! |---|---|
//! | `archive_tests` | tests of archived segments |
//! | `cold_tests` | tests of aggregates that are not in memory |
//! | `decision_tests` | tests of decisions by what is no aggregate's state |
//! | `deletion_edge_tests` | tests of deletions that are disturbed |
//! | `deletion_tests` | tests of events that are deleted |
//! | `version_tests` | tests of events over versions |
//! | `waiting_tests` | tests of readers that wait for events |
//! | this | [`CommandHost`] and its options |
//! | `counters` | [`CommandCounters`]: what the writer has counted |
//! | `deleting` | events are deleted |
//! | `making_base` | what stands for them is made |
//! | `deletion_error` | why none are deleted |
//! | `transactions` | the writer as the sequencer's thread calls it |
//! | `loading` | the thread that makes aggregates and decision models of their events, and the index |
//! | `loading_failure` | when it tries again, and when a failure is logged |
//! | `folding` | how these are made |

#[cfg(test)]
mod archive_tests;
#[cfg(test)]
mod cold_tests;
mod counters;
#[cfg(test)]
mod decision_tests;
mod deleting;
#[cfg(test)]
mod deletion_edge_tests;
mod deletion_error;
#[cfg(test)]
mod deletion_tests;
mod folding;
mod loading;
mod loading_failure;
mod making_base;
mod transactions;
#[cfg(test)]
pub(crate) mod version_tests;
#[cfg(test)]
mod waiting_tests;

pub use counters::CommandCounters;
pub use deleting::DeletionReport;
pub use deletion_error::DeletionError;

use crate::bus::{BusOptions, CommandBus};
use crate::error::{BaseFileError, ModelError, TypesError};
use crate::event_filter::EventFilter;
use crate::events::EventReader;
use crate::found_events::FoundEvents;
use crate::handling::SentBehind;
use crate::identifiers::{IdentifierLimits, Identifiers};
use crate::identity::Position;
use crate::model::CommandModel;
use crate::names::TypeNames;
use crate::released::{Handover, Released};
use crate::store::Index;
use counters::CountersReader;
use deleting::Deleting;
use gapless_agent::fault::crash_point;
use gapless_agent::progress::Progress;
use gapless_client::ClientError;
use gapless_client::client::ClientOptions;
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

/// How a command bus is set up, beside its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandHostOptions {
    /// How long the identifiers of commands are remembered.
    pub identifiers: IdentifierLimits,
    /// Aggregates in memory at most, about: those with events that are not indexed yet stay. At tier `memory` all stay.
    pub aggregates_max: usize,
    /// States of decision models in memory at most, about; also of conditions. At tier `memory` all stay.
    pub decision_models_max: usize,
    /// Entries of the index in memory before they become a file: each event has one for its aggregate, its type and each of its tags, of about
    /// 40 bytes.
    pub index_entries_max: usize,
}

impl Default for CommandHostOptions {
    /// A million aggregates and 100,000 decision models in memory; a million identifiers, for a day; two million entries of the index.
    fn default() -> Self {
        Self {
            identifiers: IdentifierLimits::default(),
            aggregates_max: 1_000_000,
            decision_models_max: 100_000,
            index_entries_max: 2 << 20,
        }
    }
}

/// What is traced of each command, at level trace: the span `command` while it is decided on, with its outcome, and the event `released`.
pub(crate) const TRACED: &str = "gapless::commands";

/// Whether anybody may want to see that.
#[inline]
fn is_traced() -> bool {
    tracing::level_filters::LevelFilter::current() >= tracing::level_filters::LevelFilter::TRACE
}

#[cold]
fn trace_released(sequence: u64, session: u64, number: u64) {
    tracing::trace!(target: TRACED, sequence, session, number, "released");
}

/// Why a command bus does not start, or has stopped.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The model is none.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The stream does not start, or has stopped.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A handle cannot be made.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Events are deleted, and what stands for them cannot be used.
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
    reading: Reading,
}

impl CommandHost {
    /// Recovers what `stream.directory` holds, and starts: when this returns, commands can be sent.
    ///
    /// # Errors
    /// A model that is none, options that make no sense (one is retention: an event store keeps its events), a directory in use, damage, a journal
    /// whose beginning is gone without a whole file that stands for it ([`HostError::Base`]), events that have another layout than in the stream and
    /// the same version ([`TypesError`] is the source), no threads or memory.
    pub fn start(
        model: CommandModel,
        options: CommandHostOptions,
        stream: ServiceHostOptions,
    ) -> Result<Self, HostError> {
        keeps_everything(&stream)?;
        let BusParts { released, make_writer, reading } = parts(model, options)?;
        let started = ServiceHost::start_transactions(released, make_writer, stream);
        let service = started.map_err(HostError::of_start)?;
        reading.go_on_deleting(&service);
        Ok(Self { service, reading })
    }

    /// A handle of the bus.
    ///
    /// # Errors
    /// No memory or descriptors for it.
    pub fn bus(&self, options: &BusOptions) -> Result<CommandBus, HostError> {
        let client = self.service.connect(ClientOptions::default())?;
        Ok(CommandBus::over(client, options)?)
    }

    /// A reader of the events, from a position on.
    #[must_use]
    pub fn events(&self, from: Position) -> EventReader {
        self.reading.events(self.service.reader(from.sequence), from, self.service.progress())
    }

    /// Deletes the events before a sequence number for good, while commands go on: the whole segments of the journal before it, and what of them is
    /// archived. What their aggregates have become is written into one file before, on the device: an aggregate all of whose events are deleted is
    /// there as before, with its version. Who reads from before it is told so by [`ReadError::Deleted`](crate::ReadError::Deleted). Blocks until
    /// that file is there, which takes as long as reading the events once for each million of their aggregates
    /// ([`CommandHostOptions::aggregates_max`]); the segments go by and by, and when the host is killed behind its next start.
    ///
    /// Aggregates are read from these states for good: the versions of their types must stay readable.
    ///
    /// # Errors
    /// Nothing is deleted where a type of aggregates with such events keeps no snapshots, an aggregate cannot be made of its events, the model has
    /// decision models, a reader of this host stands before it, or the disk refuses; see [`DeletionError`].
    pub fn delete_events_before(&self, sequence: u64) -> Result<DeletionReport, DeletionError> {
        let reader = EventReader::over(self.service.reader(1), Position::default());
        let report = self.reading.write_base(sequence, reader, || self.service.snapshot())?;
        self.service.delete_journal_before(report.before);
        Ok(report)
    }

    /// A reader of the events that a filter has, from a position on. It sees all that is released: what a command was answered for is there.
    #[must_use]
    pub fn found_events(&self, filter: EventFilter, from: Position) -> FoundEvents {
        self.reading.found_events(filter, from, self.service.reader(1), self.service.progress())
    }

    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> CommandCounters {
        self.reading.counters()
    }

    /// The stream below it.
    #[must_use]
    pub const fn service(&self) -> &ServiceHost {
        &self.service
    }

    /// Stops cleanly: what was taken is finished. Returns the last sequence.
    ///
    /// # Errors
    /// The error that made it stop by itself, before or now.
    pub fn stop(self) -> Result<u64, HostError> {
        Ok(self.service.stop()?)
    }
}

/// What reads a bus and deletes its events. Its writer brings it when it is made.
pub(crate) struct Reading(Arc<OnceLock<ReadingParts>>);

struct ReadingParts {
    index: IndexReader,
    counters: CountersReader,
    deleting: Deleting,
}

impl Reading {
    fn parts(&self) -> &ReadingParts {
        self.0.get().expect(WRITER_IS_MADE)
    }

    /// All events, from a position on, of a host that is so far.
    pub fn events(&self, frames: ReplayMerge, from: Position, progress: Arc<Progress>) -> EventReader {
        EventReader::over(frames, from).waiting_by(progress).open_among(&self.parts().deleting.readers)
    }

    /// Events that are found by the index.
    pub fn found_events(
        &self,
        filter: EventFilter,
        from: Position,
        frames: ReplayMerge,
        progress: Arc<Progress>,
    ) -> FoundEvents {
        let reader = EventReader::over(frames, Position::default()).waiting_by(progress);
        let ReadingParts { index, deleting, .. } = self.parts();
        FoundEvents::new(filter, from, Box::new(index.clone()), reader, &deleting.readers)
    }

    /// What the writer has counted.
    pub fn counters(&self) -> CommandCounters {
        self.parts().counters.read()
    }

    /// Has the segments deleted for which a base stands already.
    pub fn go_on_deleting(&self, service: &ServiceHost) {
        match self.parts().deleting.deleted_before() {
            0 => {}
            before => service.delete_journal_before(before),
        }
    }

    /// What stands for the events before a sequence is written down; see [`CommandHost::delete_events_before`].
    pub fn write_base(
        &self,
        before: u64,
        reader: EventReader,
        snapshot: impl FnOnce() -> Result<u64, EngineError>,
    ) -> Result<DeletionReport, DeletionError> {
        let ReadingParts { index, deleting, .. } = self.parts();
        deleting.write_base(before, index, reader, snapshot)
    }
}

const WRITER_IS_MADE: &str = "a bus that has started has made its writer";

type MakeWriter = Box<dyn FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send>;

/// What a bus is made of.
pub(crate) struct BusParts {
    /// What is made of released transactions.
    pub released: ReleasedSide,
    pub make_writer: MakeWriter,
    pub reading: Reading,
}

/// Whether a stream keeps all of its journal: aggregates are made of their events.
pub(crate) fn keeps_everything(stream: &ServiceHostOptions) -> Result<(), HostError> {
    if stream.persistence.retention == Retention::default() {
        return Ok(());
    }
    let reason = "an event store keeps its events: `gapless events archive` puts old ones elsewhere".to_owned();
    Err(EngineError::Option { option: "persistence.retention", reason }.into())
}

pub(crate) fn parts(model: CommandModel, options: CommandHostOptions) -> Result<BusParts, ModelError> {
    parts_on(Threading::OfItsOwn, model, options)
}

/// Where aggregates are made of their events, and the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threading {
    /// On a thread of its own.
    OfItsOwn,
    /// In the turns of the writer, for simulations.
    InTurns,
}

pub(crate) fn parts_on(
    threading: Threading,
    model: CommandModel,
    options: CommandHostOptions,
) -> Result<BusParts, ModelError> {
    let mut model = model.finish()?;
    let handover = Arc::new(Handover::default());
    let released = Released::new(options.identifiers, Arc::clone(&handover));
    let sent_behind = Arc::new(SentBehind::default());
    let released = ReleasedSide { released, versions: model.versions.clone(), sent_behind: Arc::clone(&sent_behind) };
    let reading = Reading(Arc::default());
    let made = Arc::clone(&reading.0);
    let make_writer = move |parts: WriterParts<'_>| {
        let (base, index) = (deleting::base_of(&model, &parts)?, Index::empty());
        if let Some(base) = base {
            index.set_base(base);
        }
        let deleting = Deleting::new(&model, options.aggregates_max, index.clone(), &parts);
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
        let (options, handover) = ((&options, threading), (handover, sent_behind));
        let writer = BusTransactions::new(model, identifiers, options, handover, index, parts)?;
        let (index, counters) = writer.readers();
        // It is made once.
        let _ = made.set(ReadingParts { index, counters, deleting });
        Ok(Box::new(writer) as Box<dyn Transactions>)
    };
    Ok(BusParts { released, make_writer: Box::new(make_writer), reading })
}

/// What is released, as the engine calls it.
pub(crate) struct ReleasedSide {
    released: Released,
    versions: RangeInclusive<u32>,
    sent_behind: Arc<SentBehind>,
}

impl ReleasedTransactions for ReleasedSide {
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
        self.sent_behind.released(last_sequence);
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
