//! [`Loader`]: the thread that follows what is released with the index, and makes aggregates and decision models that are not in memory of their
//! events. The writer asks it and is woken; it never waits for it.

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

/// The index may be so far behind what is released, unless an aggregate is asked for.
const PAUSE: Duration = Duration::from_millis(20);
/// The same while something is asked for that is not released yet.
const PAUSE_AWAITED: Duration = Duration::from_micros(200);
/// There is nothing to follow.
const PAUSE_WITHOUT_INDEX: Duration = Duration::from_millis(200);
/// Nothing was made for so long: the segments of the journal are let go, which would take room when they are deleted.
const IDLE: Duration = Duration::from_secs(1);
/// At the end the index follows so long what is released and not in it.
const FOLLOWED_AT_END: Duration = Duration::from_millis(200);
/// Progress is logged this often.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// States that wait to be kept in files, at most.
const STATES_MAX: usize = 1024;
/// Aggregates that others have changed are noted up to so many.
const CHANGED_MAX: usize = 1 << 20;

/// What the loader reads with.
pub(super) struct LoaderParts {
    /// Of the stream.
    pub identity: StreamIdentity,
    /// Where the index is; `None` of a stream without a journal, which has none.
    pub directory: Option<PathBuf>,
    /// See [`CommandHostOptions`](super::CommandHostOptions).
    pub index_entries_max: usize,
    /// Where states of aggregates are kept; `None` of a stream without a journal.
    pub snapshots: Option<PathBuf>,
    /// Two readers of the stream.
    pub readers: [EventReader; 2],
    /// As the writer has them, in their order.
    pub aggregates: Vec<Box<dyn ErasedAggregate>>,
    pub decision_models: Vec<Arc<dyn ErasedDecisionModel>>,
    /// For what is told of an event.
    pub names: TypeNames,
    /// Wakes the writer.
    pub waker: Waker,
}

/// The writer's end of it. The thread ends when this is dropped.
pub(super) struct Loader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Without a thread of its own.
    in_turns: Option<Box<Loading>>,
}

struct Shared {
    index: Index,
    state: Mutex<Exchange>,
    wanted: Condvar,
    /// A turn has ended that somebody has waited for.
    turned: Condvar,
    has_made: AtomicBool,
    /// The writer has something to do in a moment, and may be asleep.
    is_to_wake: AtomicBool,
    /// Aggregates that have got events, since the writer follows.
    changed: Mutex<Noted>,
}

/// What is to be made of its events.
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

/// What was made, or cannot be.
pub(super) enum Made {
    Aggregate(Loaded),
    Model(LoadedModel),
}

#[derive(Default)]
struct Exchange {
    asked: Vec<Asked>,
    made: Vec<Made>,
    /// States that are to be kept in files.
    states: Vec<DueSnapshot>,
    /// What was decided may be cut: no state of it is kept.
    is_deposed: bool,
    /// Somebody waits for the index.
    is_hurried: bool,
    /// Somebody has found a file of the index that cannot be used.
    is_damaged: bool,
    is_over: bool,
}

/// Finds events for any thread, as far as they are released.
#[derive(Clone)]
pub(super) struct IndexReader {
    shared: Arc<Shared>,
    window: Window,
    has_index: bool,
}

/// Whoever reads by the index waits so long until it has what is released.
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

/// What has changed while another leads, up to a sequence number.
#[derive(Default)]
struct Noted {
    changed: Changed,
    through: u64,
}

/// What has changed while another leads.
#[derive(Default)]
pub(super) enum Changed {
    /// Nobody wants to know.
    #[default]
    Unnoted,
    /// Keys of all that have.
    Keys(FxHashSet<IndexKey>),
    /// More than are noted.
    All,
}

impl Loader {
    /// Starts the thread, if it is to have one.
    ///
    /// # Errors
    /// There is none to be had.
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

    /// Does what is to be done, if it has no thread of its own.
    #[inline]
    pub fn turn(&mut self) {
        if let Some(loading) = &mut self.in_turns {
            loading.turns();
        }
    }

    /// Finds events.
    pub fn index_reader(&self, window: Window, has_index: bool) -> IndexReader {
        IndexReader { shared: Arc::clone(&self.shared), window, has_index }
    }

    /// Asks for these.
    #[cold]
    pub fn load(&self, asked: impl Iterator<Item = Asked>) {
        self.shared.lock().asked.extend(asked);
        self.shared.wanted.notify_one();
    }

    /// Keeps these in files when they are released, or some of them; nothing is left in `states`.
    #[cold]
    pub fn keep_states(&self, states: &mut Vec<DueSnapshot>) {
        let mut state = self.shared.lock();
        let room = STATES_MAX.saturating_sub(state.states.len()).min(states.len());
        state.states.extend(states.drain(..room));
        // Of these there will be another.
        states.clear();
    }

    /// Those that have been made since.
    #[inline]
    pub fn made(&self) -> Vec<Made> {
        // Relaxed: what is there is behind the lock, and one that is missed is seen in the next turn, for which the loader wakes.
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

    /// Wakes the writer in a moment.
    pub fn wake_in_a_moment(&self) {
        self.shared.is_to_wake.store(true, Ordering::Relaxed);
    }

    /// Another leads from now on: what changes is noted, from behind the sequence that this returns.
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

    /// What has changed since then, if everything up to that sequence is noted.
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
    /// Everything up to that sequence is indexed, these keys among it, of which nothing is left. The lock is held for a moment only: a writer that
    /// begins to lead, or ends, waits for it.
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

/// What the thread owns.
struct Loading {
    shared: Arc<Shared>,
    parts: LoaderParts,
    threading: Threading,
    builder: Option<IndexBuilder>,
    /// Asked for, and not made yet.
    asked: Vec<Asked>,
    /// Of the events of the last part that was indexed.
    followed_keys: Vec<IndexKey>,
    /// To be kept in files.
    states: Vec<DueSnapshot>,
    snapshots: Option<Snapshots>,
    progress_at: Instant,
    /// When something was made last, if the journal may still be open for it.
    made_at: Option<Instant>,
    /// An index file cannot be used: all of the index is to be made anew.
    is_damaged: bool,
    /// What is asked for was not made in this turn, because this process or its machine lacks something.
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

    /// Everything that is to be done now.
    #[cold]
    fn turns(&mut self) {
        let has_news = self.take_asked();
        if has_news || !self.failure.is_pausing() {
            while self.attempt() == Some(true) {}
        }
    }

    /// A turn. Whether there is more to be done now; `None` if it has failed.
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

    /// Takes what the writer has asked for since. Whether that is something.
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

    /// Indexes a part of what is released, and makes what can be made. Whether there is more to be done.
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
        // What is indexed can be made, also where something behind it cannot be read.
        self.make_due(last_sequence);
        self.keep_due(last_sequence);
        let is_more = match followed {
            // What is deleted has gone while all was made anew: what stays is enough.
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

    /// The index has what is released, if that is not far away, and all of it is on disk.
    #[cold]
    fn close_index(&mut self) {
        let Some(mut builder) = self.builder.take() else { return };
        let [follower, _] = &mut self.parts.readers;
        let until = Instant::now() + FOLLOWED_AT_END;
        while Instant::now() < until && matches!(builder.follow(follower, |_| ()), Ok(true)) {}
        builder.close();
    }

    /// Makes what is asked for up to there.
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
            // One before it may have found that the index is to be made anew, or that something is lacking.
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

    /// Keeps states in files whose events are all released.
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

    /// Makes one; it is asked for further while the index is made anew, and while something is lacking.
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

    /// What is made of events, or why it cannot be; `None` while the index is made anew, and while something is lacking.
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
