//! [`Loader`]: the thread that keeps the index up to date with released events, and loads aggregates and decision
//! models that are not in memory. The writer sends it requests and is woken by results; it never waits for the loader.

use super::Threading;
use super::folding::{Folding, LoadError};
use super::loading_failure::{LoadingFailure, PAUSE_AFTER_FAILURE};
use crate::aggregate::ErasedAggregate;
use crate::decision_model::ErasedDecisionModel;
use crate::events::{EventReader, ReadError};
use crate::found_events::Positions;
use crate::identity::Position;
use crate::names::TypeNames;
use crate::snapshots::Snapshots;
use crate::store::{Index, IndexBuilder, IndexKey};
use crate::writer::{DueSnapshot, Load, Loaded, LoadedModel, ModelLoad, NotLoaded};
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

/// Longest lag of the index, unless an aggregate is requested.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest lag of the index while a request needs it.
const PAUSE_AWAITED: Duration = Duration::from_micros(200);
/// Pause without an index.
const PAUSE_WITHOUT_INDEX: Duration = Duration::from_millis(200);
/// Idle time after which the loader closes journal segments. Open ones would take room after their deletion.
const IDLE: Duration = Duration::from_secs(1);
/// Longest time for which the index catches up at the end.
const FOLLOWED_AT_END: Duration = Duration::from_millis(200);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
const STATES_MAX: usize = 1024;
/// Most changed keys that are noted while another member leads.
const CHANGED_MAX: usize = 1 << 20;

pub(super) struct LoaderParts {
    /// Identity of the stream.
    pub identity: StreamIdentity,
    /// Directory of the index; `None` for a stream without a journal, which has none.
    pub directory: Option<PathBuf>,
    /// See [`CommandHostOptions`](super::CommandHostOptions).
    pub index_entries_max: usize,
    /// Directory of snapshot files; `None` for a stream without a journal.
    pub snapshots: Option<PathBuf>,
    /// Two readers of the stream: one for the index, one for loads.
    pub readers: [EventReader; 2],
    /// In the order of the writer.
    pub aggregates: Vec<Box<dyn ErasedAggregate>>,
    pub decision_models: Vec<Arc<dyn ErasedDecisionModel>>,
    /// For error texts.
    pub names: TypeNames,
    /// Wakes the writer.
    pub waker: Waker,
}

/// The writer's end of the loader. Dropping it ends the thread.
pub(super) struct Loader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Set if the loader has no thread of its own.
    in_turns: Option<Box<Loading>>,
}

struct Shared {
    index: Index,
    state: Mutex<Exchange>,
    wanted: Condvar,
    /// Signals the end of a turn that a reader has waited for.
    turned: Condvar,
    has_made: AtomicBool,
    /// The writer has work soon, and may be asleep.
    is_to_wake: AtomicBool,
    /// Aggregates that got events while another member leads.
    changed: Mutex<Noted>,
}

pub(super) enum Asked {
    Aggregate(Load),
    Model(ModelLoad),
}

impl Asked {
    const fn through(&self) -> u64 {
        match self {
            Self::Aggregate(load) => load.through,
            Self::Model(load) => load.through,
        }
    }
}

pub(super) enum Made {
    Aggregate(Loaded),
    Model(LoadedModel),
}

#[derive(Default)]
struct Exchange {
    asked: Vec<Asked>,
    made: Vec<Made>,
    states: Vec<DueSnapshot>,
    /// Decided events may be truncated, so states are dropped.
    is_deposed: bool,
    /// A reader waits for the index.
    is_hurried: bool,
    /// A reader has found a damaged file of the index.
    is_damaged: bool,
    is_over: bool,
}

/// Finds released events, on any thread.
#[derive(Clone)]
pub(super) struct IndexReader {
    shared: Arc<Shared>,
    window: Window,
    has_index: bool,
}

/// Longest time for which a reader waits until the index has all released events.
const INDEX_AWAITED: Duration = Duration::from_secs(5);

impl Positions for IndexReader {
    fn through(&self) -> Result<u64, ReadError> {
        if !self.has_index {
            return Err(ReadError::NoIndex);
        }
        let (released, until) = (self.window.released_sequence(), Instant::now() + INDEX_AWAITED);
        while self.shared.index.last_sequence() < released {
            let mut state = self.shared.lock();
            state.is_hurried = true;
            self.shared.wanted.notify_one();
            drop(self.shared.turned.wait_timeout(state, PAUSE));
            let indexed = self.shared.index.last_sequence();
            if indexed < released && (Instant::now() >= until || self.shared.lock().is_over) {
                return Err(ReadError::IndexBehind { indexed, released });
            }
        }
        Ok(self.shared.index.last_sequence())
    }

    fn find(&self, key: IndexKey, from: Position, limit: usize) -> Result<Vec<Position>, ReadError> {
        let found = self.shared.index.find(key, from, limit);
        if found.is_err() {
            self.shared.lock().is_damaged = true;
            self.shared.wanted.notify_one();
        }
        Ok(found?)
    }

    fn deleted_before(&self) -> u64 {
        self.shared.index.deleted_before()
    }

    fn times_made(&self) -> u64 {
        self.shared.index.times_made()
    }
}

#[derive(Default)]
struct Noted {
    changed: Changed,
    through: u64,
}

/// Keys changed while another member leads.
#[derive(Default)]
pub(super) enum Changed {
    /// Not noted.
    #[default]
    Unnoted,
    /// Keys of all changes.
    Keys(FxHashSet<IndexKey>),
    /// Too many changes were made to note them.
    All,
}

impl Loader {
    /// Starts the thread, unless loads happen in the turns of the writer.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(index: Index, parts: LoaderParts, threading: Threading) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            index,
            state: Mutex::default(),
            wanted: Condvar::new(),
            turned: Condvar::new(),
            has_made: AtomicBool::new(false),
            is_to_wake: AtomicBool::new(false),
            changed: Mutex::default(),
        });
        let mut loading = Loading::new(Arc::clone(&shared), parts, threading);
        if threading == Threading::InTurns {
            return Ok(Self { shared, thread: None, in_turns: Some(Box::new(loading)) });
        }
        let thread = std::thread::Builder::new().name("gapless-load".to_owned());
        let thread = thread.spawn(move || loading.run())?;
        Ok(Self { shared, thread: Some(thread), in_turns: None })
    }

    /// Does the pending work, if the loader has no thread of its own.
    #[inline]
    pub fn turn(&mut self) {
        if let Some(loading) = &mut self.in_turns {
            loading.turns();
        }
    }

    pub fn index_reader(&self, window: Window, has_index: bool) -> IndexReader {
        IndexReader { shared: Arc::clone(&self.shared), window, has_index }
    }

    /// Requests loads.
    #[cold]
    pub fn load(&self, asked: impl Iterator<Item = Asked>) {
        self.shared.lock().asked.extend(asked);
        self.shared.wanted.notify_one();
    }

    /// Writes states to files once they are released. Drains `states`; those beyond the limit are dropped.
    #[cold]
    pub fn keep_states(&self, states: &mut Vec<DueSnapshot>) {
        let mut state = self.shared.lock();
        let room = STATES_MAX.saturating_sub(state.states.len()).min(states.len());
        state.states.extend(states.drain(..room));
        // Later snapshots will replace dropped ones.
        states.clear();
    }

    /// Results since the last call.
    #[inline]
    pub fn made(&self) -> Vec<Made> {
        // Relaxed: the lock guards the data. A missed flag is seen in the next turn, for which the loader wakes the
        // writer.
        match self.shared.has_made.load(Ordering::Relaxed) {
            true => self.take_made(),
            false => Vec::new(),
        }
    }

    #[cold]
    fn take_made(&self) -> Vec<Made> {
        let mut state = self.shared.lock();
        self.shared.has_made.store(false, Ordering::Relaxed);
        std::mem::take(&mut state.made)
    }

    /// Wakes the writer soon.
    pub fn wake_in_a_moment(&self) {
        self.shared.is_to_wake.store(true, Ordering::Relaxed);
    }

    /// Begins to note changes, because another member leads. Returns the sequence after which they are noted.
    pub fn note_changes(&self) -> u64 {
        {
            let mut state = self.shared.lock();
            state.states.clear();
            state.is_deposed = true;
        }
        let mut noted = self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner);
        noted.changed = Changed::Keys(FxHashSet::default());
        noted.through
    }

    /// Takes the changes noted since, if they are complete up to `sequence`.
    pub fn changes_through(&self, sequence: u64) -> Option<Changed> {
        let mut noted = self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.through < sequence {
            self.shared.wanted.notify_one();
            return None;
        }
        Some(std::mem::take(&mut noted.changed))
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.wanted.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that loads aggregates has panicked");
        }
    }
}

impl Shared {
    /// Notes that everything up to `through` is indexed, with these keys, and empties `keys`. Holds the lock only
    /// briefly: a writer that begins to lead, or ends, waits for it.
    fn note(&self, keys: &mut Vec<IndexKey>, through: u64) {
        let mut noted = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        noted.through = through;
        if let Changed::Keys(changed) = &mut noted.changed {
            changed.extend(keys.iter());
            if changed.len() > CHANGED_MAX {
                noted.changed = Changed::All;
            }
        }
        drop(noted);
        keys.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Loading {
    shared: Arc<Shared>,
    parts: LoaderParts,
    threading: Threading,
    builder: Option<IndexBuilder>,
    /// Requests in progress.
    asked: Vec<Asked>,
    /// Keys of the events in the last part that was indexed.
    followed_keys: Vec<IndexKey>,
    states: Vec<DueSnapshot>,
    snapshots: Option<Snapshots>,
    progress_at: Instant,
    /// Time of the last load, while the journal may still be open for it.
    made_at: Option<Instant>,
    /// An index file is damaged: the index has to be rebuilt.
    is_damaged: bool,
    /// Loads failed in this turn because this process or its machine lacks resources.
    shortage: Option<String>,
    failure: LoadingFailure,
}

impl Loading {
    fn new(shared: Arc<Shared>, parts: LoaderParts, threading: Threading) -> Self {
        let snapshots = parts.snapshots.clone().map(|directory| Snapshots::new(directory, parts.identity));
        let (asked, states, progress_at) = (Vec::new(), Vec::new(), Instant::now());
        let (builder, made_at, followed_keys) = (None, None, Vec::new());
        let (is_damaged, shortage, failure) = (false, None, LoadingFailure::none());
        Self {
            shared,
            parts,
            threading,
            builder,
            asked,
            followed_keys,
            states,
            snapshots,
            progress_at,
            made_at,
            is_damaged,
            shortage,
            failure,
        }
    }

    #[cold]
    fn turns(&mut self) {
        let has_news = self.take_asked();
        if has_news || !self.failure.is_pausing() {
            while self.attempt() == Some(true) {}
        }
    }

    /// Runs a turn. Returns whether there is more to do; `None` if it failed.
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

    /// Takes the writer's requests. Returns whether there are any.
    fn take_asked(&mut self) -> bool {
        let mut state = self.shared.lock();
        let has_asked = !state.asked.is_empty();
        self.asked.append(&mut state.asked);
        if std::mem::take(&mut state.is_deposed) {
            self.states.clear();
        }
        self.states.append(&mut state.states);
        self.is_damaged |= std::mem::take(&mut state.is_damaged);
        has_asked
    }

    fn run(&mut self) {
        loop {
            if self.shared.is_to_wake.swap(false, Ordering::Relaxed) {
                self.parts.waker.wake();
            }
            let pause = match self.attempt() {
                Some(true) => Duration::ZERO,
                Some(false) if self.parts.directory.is_none() && self.asked.is_empty() => PAUSE_WITHOUT_INDEX,
                Some(false) if !self.asked.is_empty() => PAUSE_AWAITED,
                Some(false) => PAUSE,
                None => PAUSE_AFTER_FAILURE,
            };
            let shared = Arc::clone(&self.shared);
            let mut state = shared.lock();
            if std::mem::take(&mut state.is_hurried) {
                shared.turned.notify_all();
            } else if state.asked.is_empty() && !state.is_over && !pause.is_zero() {
                let waited = shared.wanted.wait_timeout(state, pause);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.is_over {
                drop(state);
                return self.close_index();
            }
            drop(state);
            self.take_asked();
        }
    }

    /// Indexes a part of the released events, and does the loads that are possible. Returns whether there is more to
    /// do.
    fn turn(&mut self) -> Result<bool, Box<dyn std::error::Error>> {
        let Some(directory) = self.parts.directory.clone() else {
            let released = self.parts.readers[0].released_sequence();
            self.make_due(released);
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
            builder.make_anew(follower)?;
            self.is_damaged = false;
        }
        let mut followed_keys = std::mem::take(&mut self.followed_keys);
        let followed = builder.follow(follower, |key| followed_keys.push(key));
        let last_sequence = self.shared.index.last_sequence();
        self.shared.note(&mut followed_keys, last_sequence);
        self.followed_keys = followed_keys;
        // Indexed events can be loaded, even if later ones cannot be read.
        self.make_due(last_sequence);
        self.keep_due(last_sequence);
        let is_more = match followed {
            // Events were deleted during the rebuild: the remaining ones are enough.
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

    /// Catches up with the released events if they are not far, and writes all of the index to disk.
    #[cold]
    fn close_index(&mut self) {
        let Some(mut builder) = self.builder.take() else { return };
        let [follower, _] = &mut self.parts.readers;
        let until = Instant::now() + FOLLOWED_AT_END;
        while Instant::now() < until && matches!(builder.follow(follower, |_| ()), Ok(true)) {}
        builder.close();
    }

    /// Does the requested loads up to `through`.
    fn make_due(&mut self, through: u64) {
        self.shortage = None;
        let due: Vec<_> = self.asked.extract_if(.., |asked| asked.through() <= through).collect();
        if !due.is_empty() {
            self.made_at = Some(Instant::now());
        } else if self.made_at.take_if(|made_at| made_at.elapsed() > IDLE).is_some() {
            let [_, reader] = &mut self.parts.readers;
            reader.let_journal_go();
        }
        for asked in due {
            // An earlier load may have found a damaged index, or a shortage.
            let can_make = !self.is_damaged && self.shortage.is_none();
            match if can_make { self.make(asked) } else { Err(asked) } {
                Err(asked) => self.asked.push(asked),
                Ok(made) => {
                    crash_point("aggregate_loaded");
                    self.shared.lock().made.push(made);
                    // Relaxed: see `Loader::made`.
                    self.shared.has_made.store(true, Ordering::Relaxed);
                    self.parts.waker.wake();
                }
            }
        }
    }

    /// Writes states to files once all their events are released.
    fn keep_due(&mut self, through: u64) {
        if self.states.is_empty() {
            return;
        }
        let due: Vec<_> = self.states.extract_if(.., |state| state.last_sequence <= through).collect();
        due.iter().for_each(|state| self.folding().keep(state));
    }

    fn folding(&mut self) -> Folding<'_> {
        let LoaderParts { readers: [_, reader], aggregates, decision_models, names, directory, .. } = &mut self.parts;
        let index = directory.as_ref().map(|_| &self.shared.index);
        Folding { index, reader, aggregates, decision_models, names, snapshots: self.snapshots.as_ref() }
    }

    /// Does one load. Returns the request if it has to wait for a rebuild or for resources.
    fn make(&mut self, asked: Asked) -> Result<Made, Asked> {
        crash_point("aggregate_loading");
        match asked {
            Asked::Aggregate(load) => match self.folded(|folding| folding.aggregate(&load)) {
                Some(content) => Ok(Made::Aggregate(Loaded { load, content })),
                None => Err(Asked::Aggregate(load)),
            },
            Asked::Model(load) => match self.folded(|folding| folding.decision_model(&load)) {
                Some(content) => Ok(Made::Model(LoadedModel { load, content })),
                None => Err(Asked::Model(load)),
            },
        }
    }

    /// Result of a fold; `None` if it has to wait for a rebuild or for resources.
    fn folded<T>(
        &mut self,
        fold: impl FnOnce(&mut Folding<'_>) -> Result<T, LoadError>,
    ) -> Option<Result<T, NotLoaded>> {
        let never = |reason| Some(Err(NotLoaded { reason, may_pass: false }));
        let mut folding = self.folding();
        match catch_unwind(AssertUnwindSafe(|| fold(&mut folding))) {
            Ok(Ok(made)) => Some(Ok(made)),
            Ok(Err(LoadError::Never(reason))) => never(reason),
            Ok(Err(LoadError::Stream(reason))) => {
                tracing::warn!("the events of what is asked for cannot be read: {reason}");
                Some(Err(NotLoaded { reason, may_pass: true }))
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
