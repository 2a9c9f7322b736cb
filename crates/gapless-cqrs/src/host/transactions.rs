//! [`BusTransactions`]: the writer, called by the sequencer's thread.

use super::counters::{CountersOfWriter, CountersReader};
use super::loading::{Asked, Changed, IndexReader, Loader, LoaderParts, Made};
use super::{CommandHostOptions, TRACED, Threading, is_traced};
use crate::envelope::Envelope;
use crate::events::EventReader;
use crate::handling::{self, SentBehind};
use crate::identifiers::Identifiers;
use crate::identity::{Position, TypeKey};
use crate::model::Model;
use crate::origin::Origin;
use crate::released::Handover;
use crate::snapshots::SNAPSHOTS_FOLDER;
use crate::store::{INDEX_FOLDER, Index};
use crate::writer::{Cache, DecisionModels, Failure, Ran, Stamp, Writer};
use gapless_agent::fault::{crash_point, mutant};
use gapless_agent::{Waker, private_folder};
use gapless_engine::transaction_service::{WriterParts, write_done, write_refusal};
use gapless_stream::Sequencer;
use gapless_stream::transactions::{Execution, Transactions};
use gapless_wire::FrameHeader;
use gapless_wire::control::{RefusalCode, TimerFired};
use gapless_wire::fields::FieldReader;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tracing::field::Empty;

const ANSWER_SCHEMA: u32 = TypeKey::of("gapless.cqrs.answer").0;

/// Adapts the writer to the engine.
pub(super) struct BusTransactions {
    writer: Writer,
    handover: Arc<Handover>,
    sent_behind: Arc<SentBehind>,
    released_waker: Waker,
    leading: Leading,
    /// Version that the stream has begun since this writer leads.
    new_version: Option<u32>,
    loader: Loader,
    index: Index,
    index_reader: IndexReader,
    counters: CountersOfWriter,
    /// Reported numbers: aggregates, and those of them being loaded.
    aggregates: (usize, usize),
}

/// Progress towards leading.
enum Leading {
    No,
    /// Waits until the identifiers are complete up to this sequence, and after following also for the changes of other
    /// leaders.
    From(u64),
    Yes,
}

impl BusTransactions {
    /// The thread of the loader cannot be started.
    /// There is no thread for the loader.
    pub fn new(
        model: Model,
        identifiers: Identifiers,
        (options, threading): (&CommandHostOptions, Threading),
        (handover, sent_behind): (Arc<Handover>, Arc<SentBehind>),
        index: Index,
        parts: WriterParts<'_>,
    ) -> io::Result<Self> {
        let counters = CountersOfWriter::add_to(parts.counters).map_err(io::Error::other)?;
        let beside = |folder: &str| parts.journal().map(|journal| journal.with_file_name(folder));
        let directory = beside(INDEX_FOLDER);
        if let Some(folder) = &directory {
            make_folder(folder)?;
        }
        let filters = || directory.as_ref().map(|_| index.filters());
        let cache = Cache::new(filters(), options.aggregates_max);
        let decision_models = DecisionModels::new(filters(), options.decision_models_max);
        let (window, has_index) = (parts.window().clone(), directory.is_some());
        let loader = LoaderParts {
            identity: parts.window().identity(),
            directory,
            snapshots: beside(SNAPSHOTS_FOLDER),
            index_entries_max: options.index_entries_max,
            readers: [1, 1].map(|sequence| EventReader::over(parts.reader(sequence), Position::default())),
            aggregates: model.aggregates.all.iter().map(|aggregate| aggregate.another()).collect(),
            decision_models: model.decision_models.all.clone(),
            names: model.names.clone(),
            waker: parts.waker,
        };
        let loader = Loader::start(index.clone(), loader, threading)?;
        let index_reader = loader.index_reader(window, has_index);
        let writer = Writer::new(model, identifiers, cache, decision_models);
        let (released_waker, leading, new_version) = (parts.released_waker, Leading::No, None);
        Ok(Self {
            writer,
            handover,
            sent_behind,
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

    pub fn readers(&self) -> (IndexReader, CountersReader) {
        (self.index_reader.clone(), self.counters.reader())
    }

    #[cold]
    fn take_over(&mut self, last_sequence: u64) -> Result<bool, String> {
        if self.writer.cache_mut().0.len() > 0 {
            let Some(changed) = self.loader.changes_through(last_sequence) else {
                self.loader.wake_in_a_moment();
                return Ok(false);
            };
            let (cache, _) = self.writer.cache_mut();
            match changed {
                Changed::Unnoted => {}
                Changed::Keys(keys) => keys.into_iter().for_each(|key| cache.drop_key(key)),
                Changed::All => drop_elsewhere(cache.clear()),
            }
        } else {
            // The empty cache needs no changes.
            let _ = self.loader.changes_through(0);
        }
        let Some((bytes, version)) = self.handover.take() else {
            self.released_waker.wake();
            return Ok(false);
        };
        let read = self.writer.identifiers_mut().read(&mut FieldReader::new(&bytes));
        read.map_err(|error| error.to_string())?;
        self.writer.become_version(self.new_version.unwrap_or(version));
        self.writer.cache_mut().0.lead_behind(last_sequence);
        self.leading = Leading::Yes;
        Ok(true)
    }

    /// Passes results of the loader to the writer.
    #[inline]
    fn take_made(&mut self) {
        for made in self.loader.made() {
            match made {
                Made::Aggregate(loaded) => {
                    self.counters.count_loaded(loaded.content.is_ok());
                    let (cache, model) = self.writer.cache_mut();
                    cache.loaded(loaded, &model.aggregates);
                }
                Made::Model(loaded) => {
                    let (decision_models, types) = self.writer.decision_models_mut();
                    decision_models.loaded(&types.all, loaded);
                }
            }
        }
    }

    #[inline]
    fn pass_over_the_dead(&mut self) {
        if self.writer.pass_over_the_dead(Instant::now) {
            self.loader.wake_in_a_moment();
        }
    }

    #[cold]
    fn run_traced(&mut self, stamp: &Stamp, payload: &[u8], length_max: usize) -> Ran {
        let Stamp { sequence, session, number, .. } = *stamp;
        let span =
            tracing::trace_span!(target: TRACED, "command", sequence, session, number, outcome = Empty).entered();
        let ran = handling::within(|| self.writer.run(stamp, payload, length_max));
        if !span.is_disabled() {
            span.record("outcome", self.writer.outcome(ran));
        }
        ran
    }

    fn ask_for_loads(&mut self) {
        let loads = self.writer.cache_mut().0.loads();
        if !loads.is_empty() {
            self.loader.load(loads.drain(..).map(Asked::Aggregate));
        }
        let loads = self.writer.decision_models_mut().0.loads();
        if !loads.is_empty() {
            self.loader.load(loads.drain(..).map(Asked::Model));
        }
    }
}

/// Reports an unusable folder at the start: commands to cold aggregates would wait for it.
fn make_folder(folder: &Path) -> io::Result<()> {
    let made = private_folder::create(folder);
    made.map_err(|error| {
        io::Error::new(error.kind(), format!("the index of the events, {}: {error}", folder.display()))
    })
}

/// Drops aggregates on another thread: millions take longer than a leader may be silent.
fn drop_elsewhere(aggregates: impl Send + 'static) {
    let dropping = std::thread::Builder::new().name("gapless-drop".to_owned()).spawn(move || drop(aggregates));
    if let Err(error) = dropping {
        tracing::warn!("there was no thread to drop aggregates, which has taken time: {error}");
    }
}

impl Transactions for BusTransactions {
    fn lead(&mut self, _term: u64, last_sequence: u64) {
        let (decision_models, types) = self.writer.decision_models_mut();
        if types.has_any() {
            decision_models.begin_behind(last_sequence);
        }
        self.new_version = None;
        self.handover.want(last_sequence);
        self.leading = Leading::From(last_sequence);
    }

    fn follow(&mut self, _last_sequence: u64) {
        self.handover.withdraw();
        self.sent_behind.withdraw();
        self.leading = Leading::No;
        let indexed = self.loader.note_changes();
        if mutant("keep_cut_overlay") {
            return;
        }
        self.writer.cache_mut().0.drop_behind(indexed);
        self.writer.decision_models_mut().0.clear();
    }

    #[inline]
    fn poll(&mut self, _last_sequence: u64) -> bool {
        self.loader.turn();
        match self.leading {
            Leading::Yes => {
                self.take_made();
                self.pass_over_the_dead();
                let (cache, _) = self.writer.cache_mut();
                let aggregates = (cache.len(), cache.loading());
                if aggregates != self.aggregates {
                    self.aggregates = aggregates;
                    self.counters.note_aggregates(aggregates.0, aggregates.1);
                }
                true
            }
            Leading::No => false,
            Leading::From(last_sequence) => self.take_over(last_sequence).unwrap_or_else(|reason| {
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
    ) -> Execution {
        let stamp = Stamp {
            sequence: header.sequence,
            time_ns: header.timestamp_ns,
            session: header.session,
            number: header.session_seq,
        };
        // Room for the other parts of a transaction.
        let length_max = length_max.saturating_sub(64);
        let indexed = self.index.last_sequence();
        self.writer.decision_models_mut().0.make_room(indexed);
        let (cache, _) = self.writer.cache_mut();
        cache.make_room(indexed);
        cache.begin(header.session, header.session_seq);
        let ran = match is_traced() {
            false => handling::within(|| self.writer.run(&stamp, payload, length_max)),
            true => self.run_traced(&stamp, payload, length_max),
        };
        crash_point("command_decided");
        self.counters.count(ran, self.writer.answered_as());
        handling::settle(&self.sent_behind, || {
            let envelope = Envelope::read(payload).ok()?;
            let origin = Origin { session: stamp.session, number: stamp.number, metadata: envelope.metadata };
            (ran == Ran::Answered && self.writer.has_accepted()).then_some((stamp.sequence, origin))
        });
        match ran {
            Ran::Answered => write_done(out, ANSWER_SCHEMA, self.writer.answer(), self.writer.changes()),
            Ran::Failed(failure) => {
                let code = match failure {
                    Failure::Unknown => RefusalCode::Unhandled,
                    Failure::Malformed => RefusalCode::Malformed,
                    Failure::Panicked => RefusalCode::HandlerPanicked,
                    Failure::Inadmissible => RefusalCode::Rejected,
                };
                write_refusal(out, code, self.writer.text(), true);
                // An aggregate whose *apply* has panicked is loaded again.
                self.ask_for_loads();
            }
            Ran::Later => {
                // Ahead of later commands of its session, even if it waits only for a decision model.
                self.writer.cache_mut().0.arrive();
                let (decision_models, _) = self.writer.decision_models_mut();
                decision_models.hold(header.session);
                if !decision_models.wait(header.session) {
                    self.writer.cache_mut().0.wait();
                }
                self.ask_for_loads();
                return Execution::Later;
            }
        }
        self.writer.decision_models_mut().0.end(header.session);
        let (cache, _) = self.writer.cache_mut();
        cache.end();
        if !cache.snapshots().is_empty() {
            self.loader.keep_states(cache.snapshots());
        }
        Execution::Done
    }

    fn dropped(&mut self, header: &FrameHeader, payload: &[u8]) {
        if header.fragment.index == 0 {
            let number = header.session_seq + u64::from(header.fragment.count) - 1;
            self.writer.cache_mut().0.begin(header.session, number);
            self.writer.stand_in_line(payload);
            self.ask_for_loads();
        }
    }

    fn gone(&mut self, session: u64) {
        self.writer.decision_models_mut().0.end(session);
        self.writer.cache_mut().0.gone(session);
    }

    fn ready(&mut self) -> Option<u64> {
        let ready = self.writer.cache_mut().0.ready().pop();
        ready.or_else(|| self.writer.decision_models_mut().0.ready().pop())
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
