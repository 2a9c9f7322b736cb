//! [`Loader`]: the thread that indexes released events, and loads aggregates and decision models. The writer never
//! waits for it.

use super::Threading;
use super::loading_failure::{LoadingFailure, PAUSE_AFTER_FAILURE};
use super::state_builder::{LoadError, StateBuilder};
use crate::aggregate::ErasedAggregate;
use crate::decision_model::ErasedDecisionModel;
use crate::events::{EventReader, ReadError};
use crate::found_events::PositionSource;
use crate::identity::Position;
use crate::names::TypeNames;
use crate::snapshots::SnapshotFiles;
use crate::store::{EventIndex, IndexBuilder, IndexKey};
use crate::writer::{AggregateLoad, DueSnapshot, LoadFailure, LoadedAggregate, LoadedModel, ModelLoad};
use gapless_agent::Waker;
use gapless_agent::fault::crash_point;
use gapless_log::{StreamIdentity, Window};
use rustc_hash::FxHashSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TURN_INTERVAL: Duration = Duration::from_millis(20);
const TURN_INTERVAL_WITH_REQUESTS: Duration = Duration::from_micros(200);
const TURN_INTERVAL_WITHOUT_INDEX: Duration = Duration::from_millis(200);
/// Idle time after which open segments are closed: they would take room after their deletion.
const READER_IDLE_MAX: Duration = Duration::from_secs(1);
const CATCH_UP_TIME_AT_CLOSE: Duration = Duration::from_millis(200);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
const STATES_MAX: usize = 1024;
const CHANGED_MAX: usize = 1 << 20;

pub(super) struct LoaderParts {
    /// Identity of the stream.
    pub identity: StreamIdentity,
    /// Index directory; `None` without a journal.
    pub directory: Option<PathBuf>,
    /// See [`AggregateOptions`](super::AggregateOptions).
    pub index_entries_max: usize,
    /// Snapshot directory; `None` without a journal.
    pub snapshots: Option<PathBuf>,
    /// One for the index, one for loads.
    pub readers: [EventReader; 2],
    /// In the order of the writer.
    pub aggregates: Vec<Box<dyn ErasedAggregate>>,
    pub decision_models: Vec<Arc<dyn ErasedDecisionModel>>,
    /// For error texts.
    pub names: TypeNames,
    /// Wakes the writer.
    pub waker: Waker,
}

/// The writer's end of the loader; dropping it ends the thread.
pub(super) struct Loader {
    shared: Arc<LoaderState>,
    thread: Option<JoinHandle<()>>,
    in_turns: Option<Box<LoadWorker>>,
}

struct LoaderState {
    index: EventIndex,
    state: Mutex<LoaderExchange>,
    work_added: Condvar,
    turn_ended: Condvar,
    has_results: AtomicBool,
    is_wake_due: AtomicBool,
    change_log: Mutex<ChangeLog>,
}

pub(super) enum LoadRequest {
    Aggregate(AggregateLoad),
    Model(ModelLoad),
}

impl LoadRequest {
    const fn through(&self) -> u64 {
        match self {
            Self::Aggregate(load) => load.through,
            Self::Model(load) => load.through,
        }
    }
}

pub(super) enum LoadResult {
    Aggregate(LoadedAggregate),
    Model(LoadedModel),
}

#[derive(Default)]
struct LoaderExchange {
    requests: Vec<LoadRequest>,
    results: Vec<LoadResult>,
    states: Vec<DueSnapshot>,
    is_deposed: bool,
    is_index_awaited: bool,
    is_damaged: bool,
    is_closing: bool,
}

#[derive(Clone)]
pub(super) struct IndexReader {
    shared: Arc<LoaderState>,
    window: Window,
    has_index: bool,
}

const INDEX_WAIT_MAX: Duration = Duration::from_secs(5);

impl PositionSource for IndexReader {
    fn through(&self) -> Result<u64, ReadError> {
        if !self.has_index {
            return Err(ReadError::NoIndex);
        }
        let (released, until) = (self.window.released_sequence(), Instant::now() + INDEX_WAIT_MAX);
        while self.shared.index.last_sequence() < released {
            let mut state = self.shared.lock();
            state.is_index_awaited = true;
            self.shared.work_added.notify_one();
            drop(self.shared.turn_ended.wait_timeout(state, TURN_INTERVAL));
            let indexed = self.shared.index.last_sequence();
            if indexed < released && (Instant::now() >= until || self.shared.lock().is_closing) {
                return Err(ReadError::IndexBehind { indexed, released });
            }
        }
        Ok(self.shared.index.last_sequence())
    }

    fn find(&self, key: IndexKey, from: Position, limit: usize) -> Result<Vec<Position>, ReadError> {
        let found = self.shared.index.find(key, from, limit);
        if found.is_err() {
            self.shared.lock().is_damaged = true;
            self.shared.work_added.notify_one();
        }
        Ok(found?)
    }

    fn deleted_before(&self) -> u64 {
        self.shared.index.deleted_before()
    }

    fn rebuilds(&self) -> u64 {
        self.shared.index.rebuilds()
    }
}

#[derive(Default)]
struct ChangeLog {
    keys: ChangedKeys,
    through: u64,
}

#[derive(Default)]
pub(super) enum ChangedKeys {
    #[default]
    NotRecorded,
    Keys(FxHashSet<IndexKey>),
    All,
}

impl Loader {
    /// Starts the thread, unless loads happen in the writer's turns.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(index: EventIndex, parts: LoaderParts, threading: Threading) -> io::Result<Self> {
        let shared = Arc::new(LoaderState {
            index,
            state: Mutex::default(),
            work_added: Condvar::new(),
            turn_ended: Condvar::new(),
            has_results: AtomicBool::new(false),
            is_wake_due: AtomicBool::new(false),
            change_log: Mutex::default(),
        });
        let mut loading = LoadWorker::new(Arc::clone(&shared), parts, threading);
        if threading == Threading::InTurns {
            return Ok(Self { shared, thread: None, in_turns: Some(Box::new(loading)) });
        }
        let thread = std::thread::Builder::new().name("gapless-load".to_owned());
        let thread = thread.spawn(move || loading.run())?;
        Ok(Self { shared, thread: Some(thread), in_turns: None })
    }

    /// Does pending work, without a thread.
    #[inline]
    pub fn turn(&mut self) {
        if let Some(loading) = &mut self.in_turns {
            loading.run_turns();
        }
    }

    pub fn index_reader(&self, window: Window, has_index: bool) -> IndexReader {
        IndexReader { shared: Arc::clone(&self.shared), window, has_index }
    }

    /// Requests loads.
    #[cold]
    pub fn load(&self, requests: impl Iterator<Item = LoadRequest>) {
        self.shared.lock().requests.extend(requests);
        self.shared.work_added.notify_one();
    }

    /// Queues states, to be written once released; drops those beyond the limit.
    #[cold]
    pub fn write_snapshots(&self, states: &mut Vec<DueSnapshot>) {
        let mut state = self.shared.lock();
        let room = STATES_MAX.saturating_sub(state.states.len()).min(states.len());
        state.states.extend(states.drain(..room));
        // Later snapshots replace the dropped ones.
        states.clear();
    }

    /// Results since the last call.
    #[inline]
    pub fn results(&self) -> Vec<LoadResult> {
        // Relaxed: the lock guards the data, and a missed flag is seen in the next turn, for which the loader wakes the
        // writer.
        match self.shared.has_results.load(Ordering::Relaxed) {
            true => self.take_results(),
            false => Vec::new(),
        }
    }

    #[cold]
    fn take_results(&self) -> Vec<LoadResult> {
        let mut state = self.shared.lock();
        self.shared.has_results.store(false, Ordering::Relaxed);
        std::mem::take(&mut state.results)
    }

    /// Wakes the writer soon.
    pub fn wake_writer_soon(&self) {
        self.shared.is_wake_due.store(true, Ordering::Relaxed);
    }

    /// Begins to note changes while another member leads; returns the sequence after which they are noted.
    pub fn record_changes(&self) -> u64 {
        {
            let mut state = self.shared.lock();
            state.states.clear();
            state.is_deposed = true;
        }
        let mut log = self.shared.change_log.lock().unwrap_or_else(PoisonError::into_inner);
        log.keys = ChangedKeys::Keys(FxHashSet::default());
        log.through
    }

    /// Takes the noted changes, if complete up to `sequence`.
    pub fn changes_through(&self, sequence: u64) -> Option<ChangedKeys> {
        let mut log = self.shared.change_log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.through < sequence {
            self.shared.work_added.notify_one();
            return None;
        }
        Some(std::mem::take(&mut log.keys))
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.shared.lock().is_closing = true;
        self.shared.work_added.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that loads aggregates has panicked");
        }
    }
}

impl LoaderState {
    /// Notes that everything up to `through` is indexed, and empties `keys`. Holds the lock only briefly: a writer that
    /// begins to lead waits for it.
    fn record(&self, keys: &mut Vec<IndexKey>, through: u64) {
        let mut log = self.change_log.lock().unwrap_or_else(PoisonError::into_inner);
        log.through = through;
        if let ChangedKeys::Keys(changed) = &mut log.keys {
            changed.extend(keys.iter());
            if changed.len() > CHANGED_MAX {
                log.keys = ChangedKeys::All;
            }
        }
        drop(log);
        keys.clear();
    }

    fn lock(&self) -> MutexGuard<'_, LoaderExchange> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct LoadWorker {
    shared: Arc<LoaderState>,
    parts: LoaderParts,
    threading: Threading,
    builder: Option<IndexBuilder>,
    requests: Vec<LoadRequest>,
    followed_keys: Vec<IndexKey>,
    states: Vec<DueSnapshot>,
    snapshots: Option<SnapshotFiles>,
    progress_at: Instant,
    loaded_at: Option<Instant>,
    is_damaged: bool,
    shortage: Option<String>,
    failure: LoadingFailure,
}

impl LoadWorker {
    fn new(shared: Arc<LoaderState>, parts: LoaderParts, threading: Threading) -> Self {
        let snapshots = parts.snapshots.clone().map(|directory| SnapshotFiles::new(directory, parts.identity));
        let (requests, states, progress_at) = (Vec::new(), Vec::new(), Instant::now());
        let (builder, loaded_at, followed_keys) = (None, None, Vec::new());
        let (is_damaged, shortage, failure) = (false, None, LoadingFailure::none());
        Self {
            shared,
            parts,
            threading,
            builder,
            requests,
            followed_keys,
            states,
            snapshots,
            progress_at,
            loaded_at,
            is_damaged,
            shortage,
            failure,
        }
    }

    #[cold]
    fn run_turns(&mut self) {
        let has_news = self.take_requests();
        if has_news || !self.failure.is_pausing() {
            while self.attempt() == Some(true) {}
        }
    }

    /// Returns whether there is more to do; `None` if the turn failed.
    fn attempt(&mut self) -> Option<bool> {
        match self.turn() {
            Ok(is_more) => {
                self.failure.end();
                Some(is_more)
            }
            Err(error) => {
                self.failure.begin(&error);
                None
            }
        }
    }

    fn take_requests(&mut self) -> bool {
        let mut state = self.shared.lock();
        let has_requests = !state.requests.is_empty();
        self.requests.append(&mut state.requests);
        if std::mem::take(&mut state.is_deposed) {
            self.states.clear();
        }
        self.states.append(&mut state.states);
        self.is_damaged |= std::mem::take(&mut state.is_damaged);
        has_requests
    }

    fn run(&mut self) {
        loop {
            if self.shared.is_wake_due.swap(false, Ordering::Relaxed) {
                self.parts.waker.wake();
            }
            let pause = match self.attempt() {
                Some(true) => Duration::ZERO,
                Some(false) if self.parts.directory.is_none() && self.requests.is_empty() => {
                    TURN_INTERVAL_WITHOUT_INDEX
                }
                Some(false) if !self.requests.is_empty() => TURN_INTERVAL_WITH_REQUESTS,
                Some(false) => TURN_INTERVAL,
                None => PAUSE_AFTER_FAILURE,
            };
            let shared = Arc::clone(&self.shared);
            let mut state = shared.lock();
            if std::mem::take(&mut state.is_index_awaited) {
                shared.turn_ended.notify_all();
            } else if state.requests.is_empty() && !state.is_closing && !pause.is_zero() {
                let waited = shared.work_added.wait_timeout(state, pause);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.is_closing {
                drop(state);
                return self.close_index();
            }
            drop(state);
            self.take_requests();
        }
    }

    /// Returns whether there is more to do.
    fn turn(&mut self) -> Result<bool, Box<dyn std::error::Error>> {
        let Some(directory) = self.parts.directory.clone() else {
            let released = self.parts.readers[0].released_sequence();
            self.run_due_loads(released);
            return self.shortage.take().map_or(Ok(false), |reason| Err(reason.into()));
        };
        let [follower, _] = &mut self.parts.readers;
        let builder = match &mut self.builder {
            Some(builder) => builder,
            none => {
                let index = self.shared.index.clone();
                let entries_max = self.parts.index_entries_max;
                let mut builder = IndexBuilder::open(index, directory, self.parts.identity, follower, entries_max)?;
                if self.threading == Threading::InTurns {
                    builder.merge_in_turns();
                }
                none.insert(builder)
            }
        };
        if self.is_damaged {
            builder.rebuild(follower)?;
            self.is_damaged = false;
        }
        let mut followed_keys = std::mem::take(&mut self.followed_keys);
        let followed = builder.follow(follower, |key| followed_keys.push(key));
        let last_sequence = self.shared.index.last_sequence();
        self.shared.record(&mut followed_keys, last_sequence);
        self.followed_keys = followed_keys;
        // Indexed events can be loaded, even if later ones cannot be read.
        self.run_due_loads(last_sequence);
        self.write_due_snapshots(last_sequence);
        let is_more = match followed {
            // Events were deleted before they were indexed: the remaining ones are enough, so a rebuild begins.
            Err(ReadError::Deleted { .. }) => {
                self.is_damaged = true;
                true
            }
            followed => followed?,
        };
        if let Some(reason) = self.shortage.take() {
            return Err(reason.into());
        }
        if is_more && self.progress_at.elapsed() >= PROGRESS_INTERVAL {
            self.progress_at = Instant::now();
            let released = self.parts.readers[0].released_sequence();
            if released - last_sequence > 1_000_000 {
                tracing::info!("the index of the events is at {last_sequence} of {released}");
            }
        }
        Ok(is_more)
    }

    /// Writes the whole index to disk; catches up first for at most 200 ms.
    #[cold]
    fn close_index(&mut self) {
        let Some(mut builder) = self.builder.take() else { return };
        let [follower, _] = &mut self.parts.readers;
        let until = Instant::now() + CATCH_UP_TIME_AT_CLOSE;
        while Instant::now() < until && matches!(builder.follow(follower, |_| ()), Ok(true)) {}
        builder.close();
    }

    fn run_due_loads(&mut self, through: u64) {
        self.shortage = None;
        let due: Vec<_> = self.requests.extract_if(.., |request| request.through() <= through).collect();
        if !due.is_empty() {
            self.loaded_at = Some(Instant::now());
        } else if self.loaded_at.take_if(|loaded_at| loaded_at.elapsed() > READER_IDLE_MAX).is_some() {
            let [_, reader] = &mut self.parts.readers;
            reader.close_journal();
        }
        for request in due {
            let can_load = !self.is_damaged && self.shortage.is_none();
            match if can_load { self.load(request) } else { Err(request) } {
                Err(request) => self.requests.push(request),
                Ok(result) => {
                    crash_point("aggregate_loaded");
                    self.shared.lock().results.push(result);
                    // Relaxed: see `Loader::results`.
                    self.shared.has_results.store(true, Ordering::Relaxed);
                    self.parts.waker.wake();
                }
            }
        }
    }

    fn write_due_snapshots(&mut self, through: u64) {
        if self.states.is_empty() {
            return;
        }
        let due: Vec<_> = self.states.extract_if(.., |state| state.last_sequence <= through).collect();
        due.iter().for_each(|state| self.state_builder().write_snapshot(state));
    }

    fn state_builder(&mut self) -> StateBuilder<'_> {
        let LoaderParts { readers: [_, reader], aggregates, decision_models, names, directory, .. } = &mut self.parts;
        let index = directory.as_ref().map(|_| &self.shared.index);
        StateBuilder { index, reader, aggregates, decision_models, names, snapshots: self.snapshots.as_ref() }
    }

    /// Returns the request if it has to wait for a rebuild or for resources.
    fn load(&mut self, request: LoadRequest) -> Result<LoadResult, LoadRequest> {
        crash_point("aggregate_loading");
        match request {
            LoadRequest::Aggregate(load) => match self.fold_caught(|builder| builder.build_aggregate(&load)) {
                Some(content) => Ok(LoadResult::Aggregate(LoadedAggregate { load, content })),
                None => Err(LoadRequest::Aggregate(load)),
            },
            LoadRequest::Model(load) => match self.fold_caught(|builder| builder.build_decision_model(&load)) {
                Some(content) => Ok(LoadResult::Model(LoadedModel { load, content })),
                None => Err(LoadRequest::Model(load)),
            },
        }
    }

    /// `None` if it has to wait for a rebuild or for resources.
    fn fold_caught<T>(
        &mut self,
        fold: impl FnOnce(&mut StateBuilder<'_>) -> Result<T, LoadError>,
    ) -> Option<Result<T, LoadFailure>> {
        let never = |reason| Some(Err(LoadFailure { reason, is_transient: false }));
        let mut state_builder = self.state_builder();
        match catch_unwind(AssertUnwindSafe(|| fold(&mut state_builder))) {
            Ok(Ok(content)) => Some(Ok(content)),
            Ok(Err(LoadError::Never(reason))) => never(reason),
            Ok(Err(LoadError::Stream(reason))) => {
                tracing::warn!("the events of what is asked for cannot be read: {reason}");
                Some(Err(LoadFailure { reason, is_transient: true }))
            }
            Ok(Err(LoadError::Index(error))) => {
                tracing::error!("{error}");
                self.is_damaged = true;
                None
            }
            Ok(Err(LoadError::Shortage(reason))) => {
                self.shortage = Some(reason);
                None
            }
            Err(_) => never("an event makes it panic".to_owned()),
        }
    }
}
