//! `BusTransactions`: the writer, called by the sequencer's thread.

use super::counters::{CommandCountersReader, WriterCounters};
use super::loading::{ChangedKeys, IndexReader, LoadRequest, LoadResult, Loader, LoaderParts};
use super::{AggregateOptions, TRACE_TARGET, Threading, is_traced};
use crate::envelope::CommandEnvelope;
use crate::events::EventReader;
use crate::handling::{self, FollowUpQueue};
use crate::identifiers::Identifiers;
use crate::identity::{Position, TypeKey};
use crate::model::CheckedModel;
use crate::origin::CommandOrigin;
use crate::released::IdentifierHandover;
use crate::snapshots::SNAPSHOTS_FOLDER;
use crate::store::{EventIndex, INDEX_FOLDER};
use crate::writer::{AggregateCache, CommandStamp, CommandWriter, DecisionModels, RunFailure, RunResult};
use gapless_agent::fault::{crash_point, mutant};
use gapless_agent::{Waker, private_folder};
use gapless_engine::transaction_service::{WriterParts, write_done, write_refusal};
use gapless_stream::Sequencer;
use gapless_stream::transactions::{ExecutionResult, Transactions};
use gapless_wire::FrameHeader;
use gapless_wire::control::{RefusalCode, TimerFired};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tracing::field::Empty;

const ANSWER_SCHEMA: u32 = TypeKey::of("gapless.cqrs.answer").0;

pub(super) struct BusTransactions {
    writer: CommandWriter,
    handover: Arc<IdentifierHandover>,
    follow_ups: Arc<FollowUpQueue>,
    released_waker: Waker,
    leading: LeadershipState,
    new_version: Option<u32>,
    loader: Loader,
    index: EventIndex,
    index_reader: IndexReader,
    counters: WriterCounters,
    aggregates: (usize, usize),
}

enum LeadershipState {
    No,
    /// Waits for the identifiers up to this sequence, and after following for the changes of other leaders.
    TakingOver(u64),
    Yes,
}

impl BusTransactions {
    /// Creates writer and loader.
    ///
    /// # Errors
    /// No thread, or no folder of the index.
    pub fn new(
        model: CheckedModel,
        identifiers: Identifiers,
        (options, threading): (&AggregateOptions, Threading),
        (handover, follow_ups): (Arc<IdentifierHandover>, Arc<FollowUpQueue>),
        index: EventIndex,
        parts: WriterParts<'_>,
    ) -> io::Result<Self> {
        let counters = WriterCounters::add_to(parts.counters).map_err(io::Error::other)?;
        let next_to = |folder: &str| parts.journal().map(|journal| journal.with_file_name(folder));
        let directory = next_to(INDEX_FOLDER);
        if let Some(folder) = &directory {
            make_folder(folder)?;
        }
        let filters = || directory.as_ref().map(|_| index.filters());
        let cache = AggregateCache::new(filters(), options.aggregates_max);
        let decision_models = DecisionModels::new(filters(), options.decision_models_max);
        let (window, has_index) = (parts.window().clone(), directory.is_some());
        let loader = LoaderParts {
            identity: parts.window().identity(),
            directory,
            snapshots: next_to(SNAPSHOTS_FOLDER),
            index_entries_max: options.index_entries_max,
            readers: [1, 1].map(|sequence| EventReader::over(parts.reader(sequence), Position::default())),
            aggregates: model.aggregates.all.iter().map(|aggregate| aggregate.new_of_same_type()).collect(),
            decision_models: model.decision_models.all.clone(),
            names: model.names.clone(),
            waker: parts.waker,
        };
        let loader = Loader::start(index.clone(), loader, threading)?;
        let index_reader = loader.index_reader(window, has_index);
        let writer = CommandWriter::new(model, identifiers, cache, decision_models);
        let (released_waker, leading, new_version) = (parts.released_waker, LeadershipState::No, None);
        Ok(Self {
            writer,
            handover,
            follow_ups,
            released_waker,
            leading,
            new_version,
            loader,
            index,
            index_reader,
            counters,
            aggregates: (0, 0),
        })
    }

    pub fn readers(&self) -> (IndexReader, CommandCountersReader) {
        (self.index_reader.clone(), self.counters.reader())
    }

    #[cold]
    fn take_over(&mut self, last_sequence: u64) -> Result<bool, String> {
        if self.writer.has_aggregates() {
            let Some(changed) = self.loader.changes_through(last_sequence) else {
                self.loader.wake_writer_soon();
                return Ok(false);
            };
            match changed {
                ChangedKeys::NotRecorded => {}
                ChangedKeys::Keys(keys) => self.writer.drop_aggregates(keys),
                ChangedKeys::All => drop_on_thread(self.writer.drop_all_aggregates()),
            }
        } else {
            let _ = self.loader.changes_through(0);
        }
        let Some((bytes, version)) = self.handover.take() else {
            self.released_waker.wake();
            return Ok(false);
        };
        let begun = self.writer.begin_to_lead(last_sequence, &bytes, self.new_version.unwrap_or(version));
        begun.map_err(|error| error.to_string())?;
        self.leading = LeadershipState::Yes;
        Ok(true)
    }

    #[inline]
    fn take_loads(&mut self) {
        for result in self.loader.results() {
            match result {
                LoadResult::Aggregate(loaded) => {
                    self.counters.count_loaded(loaded.content.is_ok());
                    self.writer.store_aggregate(loaded);
                }
                LoadResult::Model(loaded) => self.writer.store_model(loaded),
            }
        }
    }

    #[inline]
    fn expire_absent_sessions(&mut self) {
        if self.writer.expire_absent_sessions(Instant::now) {
            self.loader.wake_writer_soon();
        }
    }

    #[cold]
    fn run_traced(&mut self, stamp: &CommandStamp, payload: &[u8], length_max: usize) -> RunResult {
        let CommandStamp { sequence, session, number, .. } = *stamp;
        let span =
            tracing::trace_span!(target: TRACE_TARGET, "command", sequence, session, number, outcome = Empty).entered();
        let result = handling::run_handler(|| self.writer.run(stamp, payload, length_max));
        if !span.is_disabled() {
            span.record("outcome", self.writer.outcome(result));
        }
        result
    }

    fn request_loads(&mut self) {
        let loads = self.writer.aggregate_loads();
        if !loads.is_empty() {
            self.loader.load(loads.drain(..).map(LoadRequest::Aggregate));
        }
        let loads = self.writer.model_loads();
        if !loads.is_empty() {
            self.loader.load(loads.drain(..).map(LoadRequest::Model));
        }
    }
}

/// Reports an unusable folder at the start: commands to cold aggregates would wait for it.
fn make_folder(folder: &Path) -> io::Result<()> {
    let created = private_folder::create(folder);
    created.map_err(|error| {
        io::Error::new(error.kind(), format!("the index of the events, {}: {error}", folder.display()))
    })
}

/// Millions take longer to drop than a leader may be silent.
fn drop_on_thread(aggregates: impl Send + 'static) {
    let dropping = std::thread::Builder::new().name("gapless-drop".to_owned()).spawn(move || drop(aggregates));
    if let Err(error) = dropping {
        tracing::warn!("there was no thread to drop aggregates, which has taken time: {error}");
    }
}

impl Transactions for BusTransactions {
    fn lead(&mut self, _term: u64, last_sequence: u64) {
        self.writer.prepare_to_lead(last_sequence);
        self.new_version = None;
        self.handover.request(last_sequence);
        self.leading = LeadershipState::TakingOver(last_sequence);
    }

    fn follow(&mut self, _last_sequence: u64) {
        self.handover.withdraw();
        self.follow_ups.withdraw();
        self.leading = LeadershipState::No;
        let indexed = self.loader.record_changes();
        if mutant("keep_cut_overlay") {
            return;
        }
        self.writer.stop_leading(indexed);
    }

    #[inline]
    fn poll(&mut self, _last_sequence: u64) -> bool {
        self.loader.turn();
        match self.leading {
            LeadershipState::Yes => {
                self.take_loads();
                self.expire_absent_sessions();
                let aggregates = self.writer.aggregate_counts();
                if aggregates != self.aggregates {
                    self.aggregates = aggregates;
                    self.counters.note_aggregates(aggregates.0, aggregates.1);
                }
                true
            }
            LeadershipState::No => false,
            LeadershipState::TakingOver(last_sequence) => self.take_over(last_sequence).unwrap_or_else(|reason| {
                tracing::error!("the identifiers of commands cannot be taken over: {reason}");
                false
            }),
        }
    }

    fn command(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        _sequencer: &Sequencer,
        length_max: usize,
        out: &mut Vec<u8>,
    ) -> ExecutionResult {
        let stamp = CommandStamp {
            sequence: header.sequence,
            time_ns: header.timestamp_ns,
            session: header.session,
            number: header.session_seq,
        };
        // Room for the other parts of a transaction.
        let length_max = length_max.saturating_sub(64);
        self.writer.begin_command(&stamp, self.index.last_sequence());
        let result = match is_traced() {
            false => handling::run_handler(|| self.writer.run(&stamp, payload, length_max)),
            true => self.run_traced(&stamp, payload, length_max),
        };
        crash_point("command_decided");
        self.counters.count(result, self.writer.last_answer());
        handling::settle_follow_ups(&self.follow_ups, || {
            let envelope = CommandEnvelope::read(payload).ok()?;
            let origin = CommandOrigin { session: stamp.session, number: stamp.number, metadata: envelope.metadata };
            (result == RunResult::Answered && self.writer.has_accepted()).then_some((stamp.sequence, origin))
        });
        match result {
            RunResult::Answered => write_done(out, ANSWER_SCHEMA, self.writer.answer(), self.writer.changes()),
            RunResult::Failed(failure) => {
                let code = match failure {
                    RunFailure::Unknown => RefusalCode::Unhandled,
                    RunFailure::Malformed => RefusalCode::Malformed,
                    RunFailure::Panicked => RefusalCode::HandlerPanicked,
                    RunFailure::Inadmissible => RefusalCode::Rejected,
                };
                write_refusal(out, code, self.writer.text(), true);
                self.request_loads();
            }
            RunResult::Later => {
                self.writer.defer_command(&stamp);
                self.request_loads();
                return ExecutionResult::Deferred;
            }
        }
        self.writer.end_command(&stamp);
        let snapshots = self.writer.due_snapshots();
        if !snapshots.is_empty() {
            self.loader.write_snapshots(snapshots);
        }
        ExecutionResult::Done
    }

    fn dropped(&mut self, header: &FrameHeader, payload: &[u8]) {
        if header.fragment.index == 0 {
            let number = header.session_seq + u64::from(header.fragment.count) - 1;
            self.writer.keep_queue_position(header.session, number, payload);
            self.request_loads();
        }
    }

    fn gone(&mut self, session: u64) {
        self.writer.remove_session(session);
    }

    fn ready(&mut self) -> Option<u64> {
        self.writer.next_ready_session()
    }

    fn become_version(&mut self, version: u32) {
        self.new_version = Some(version);
        self.writer.become_version(version);
    }

    fn is_set(&self, _: TimerFired) -> bool {
        false
    }

    fn timer(&mut self, _: &FrameHeader, _: TimerFired, _: &Sequencer, _: usize, _: &mut Vec<u8>) {
        unreachable!("no timer is set")
    }

    fn acknowledged(&mut self, _: u64, _: u64) {}

    fn closed(&mut self, _: u64) {}
}
