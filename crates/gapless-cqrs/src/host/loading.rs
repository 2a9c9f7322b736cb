//! [`Loader`]: the thread that follows what is released with the index, and makes aggregates that are not in memory of their events. The writer asks
//! it and is woken; it never waits for it.

use crate::aggregate::{ErasedAggregate, OldEvent, State};
use crate::error::IndexFileError;
use crate::events::{EventReader, ReadError};
use crate::found_events::Positions;
use crate::identity::Position;
use crate::store::{Index, IndexBuilder, IndexKey};
use crate::transaction::RecordedEvent;
use crate::writer::{Load, Loaded};
use gapless_agent::Waker;
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
/// There is nothing to follow.
const PAUSE_WITHOUT_INDEX: Duration = Duration::from_millis(200);
/// After a disk or a stream has failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// Progress is logged this often.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Positions that are looked up at a time.
const POSITIONS: usize = 4096;
/// Aggregates that others have changed are noted up to so many.
const CHANGED_MAX: usize = 1 << 20;

/// What the loader reads with.
pub(super) struct LoaderParts {
    /// Of the stream.
    pub identity: StreamIdentity,
    /// Where the index is; `None` of a stream without a journal, which has none.
    pub directory: Option<PathBuf>,
    /// Two readers of the stream.
    pub readers: [EventReader; 2],
    /// As the writer has them, in their order.
    pub aggregates: Vec<Box<dyn ErasedAggregate>>,
    /// Wakes the writer.
    pub waker: Waker,
}

/// The writer's end of it. The thread ends when this is dropped.
pub(super) struct Loader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    index: Index,
    state: Mutex<Exchange>,
    wanted: Condvar,
    /// A turn has ended that somebody has waited for.
    turned: Condvar,
    has_loaded: AtomicBool,
    /// The writer has something to do in a moment, and may be asleep.
    is_to_wake: AtomicBool,
    /// Aggregates that have got events, since the writer follows.
    changed: Mutex<Changed>,
}

#[derive(Default)]
struct Exchange {
    loads: Vec<Load>,
    loaded: Vec<Loaded>,
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
    fn find(&self, key: IndexKey, from: Position, limit: usize) -> Result<Vec<Position>, ReadError> {
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
        let found = self.shared.index.find(key, from, limit);
        if found.is_err() {
            self.shared.lock().is_damaged = true;
            self.shared.wanted.notify_one();
        }
        Ok(found?)
    }
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
    /// Starts the thread.
    ///
    /// # Errors
    /// There is none to be had.
    pub fn start(index: Index, parts: LoaderParts) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            index,
            state: Mutex::default(),
            wanted: Condvar::new(),
            turned: Condvar::new(),
            has_loaded: AtomicBool::new(false),
            is_to_wake: AtomicBool::new(false),
            changed: Mutex::default(),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("gapless-load".to_owned());
        let thread = thread.spawn(move || Loading::new(theirs, parts).run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Finds events.
    pub fn index_reader(&self, window: Window, has_index: bool) -> IndexReader {
        IndexReader { shared: Arc::clone(&self.shared), window, has_index }
    }

    /// Asks for aggregates; nothing is left in `loads`.
    #[cold]
    pub fn load(&self, loads: &mut Vec<Load>) {
        self.shared.lock().loads.append(loads);
        self.shared.wanted.notify_one();
    }

    /// Those that have been made since.
    #[inline]
    pub fn loaded(&self) -> Vec<Loaded> {
        // Relaxed: what is there is behind the lock, and one that is missed is seen in the next turn, for which the loader wakes.
        match self.shared.has_loaded.load(Ordering::Relaxed) {
            true => self.take_loaded(),
            false => Vec::new(),
        }
    }

    #[cold]
    fn take_loaded(&self) -> Vec<Loaded> {
        let mut state = self.shared.lock();
        self.shared.has_loaded.store(false, Ordering::Relaxed);
        std::mem::take(&mut state.loaded)
    }

    /// Wakes the writer in a moment.
    pub fn wake_in_a_moment(&self) {
        self.shared.is_to_wake.store(true, Ordering::Relaxed);
    }

    /// Another leads from now on: what changes is noted, from behind the sequence that this returns.
    pub fn note_changes(&self) -> u64 {
        let mut changed = self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner);
        *changed = Changed::Keys(FxHashSet::default());
        self.shared.index.last_sequence()
    }

    /// What has changed since then, if everything up to that sequence is noted.
    pub fn changes_through(&self, sequence: u64) -> Option<Changed> {
        let mut changed = self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if self.shared.index.last_sequence() < sequence {
            self.shared.wanted.notify_one();
            return None;
        }
        Some(std::mem::take(&mut changed))
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
    fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the thread owns.
struct Loading {
    shared: Arc<Shared>,
    parts: LoaderParts,
    builder: Option<IndexBuilder>,
    /// Asked for, and not made yet.
    loads: Vec<Load>,
    progress_at: Instant,
    /// The last failure that was logged.
    failure: String,
}

/// Why an aggregate is not made now.
enum LoadError {
    /// An index file: all are made anew, and then it is tried again.
    Index(IndexFileError),
    /// It never can be, and why.
    Aggregate(String),
}

impl Loading {
    fn new(shared: Arc<Shared>, parts: LoaderParts) -> Self {
        Self { shared, parts, builder: None, loads: Vec::new(), progress_at: Instant::now(), failure: String::new() }
    }

    fn run(&mut self) {
        loop {
            if self.shared.is_to_wake.swap(false, Ordering::Relaxed) {
                self.parts.waker.wake();
            }
            let pause = match self.turn() {
                Ok(true) => Duration::ZERO,
                Ok(false) if self.parts.directory.is_none() => PAUSE_WITHOUT_INDEX,
                Ok(false) => PAUSE,
                Err(error) => {
                    let failure = error.to_string();
                    if failure != self.failure {
                        tracing::error!("aggregates that are not in memory wait: {failure}");
                        self.failure = failure;
                    }
                    PAUSE_AFTER_FAILURE
                }
            };
            let shared = Arc::clone(&self.shared);
            let mut state = shared.lock();
            if std::mem::take(&mut state.is_hurried) {
                shared.turned.notify_all();
            } else if state.loads.is_empty() && !state.is_over && !pause.is_zero() {
                let waited = shared.wanted.wait_timeout(state, pause);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.is_over {
                return;
            }
            self.loads.append(&mut state.loads);
            if std::mem::take(&mut state.is_damaged) {
                drop(state);
                self.make_anew();
            }
        }
    }

    /// Indexes a part of what is released, and makes what can be made. Whether there is more to be done.
    fn turn(&mut self) -> Result<bool, Box<dyn std::error::Error>> {
        let Some(directory) = self.parts.directory.clone() else {
            let released = self.parts.readers[0].released_sequence();
            let due: Vec<_> = self.loads.extract_if(.., |load| load.through <= released).collect();
            due.into_iter().for_each(|load| self.make(load));
            return Ok(false);
        };
        let [follower, _] = &mut self.parts.readers;
        let builder = match &mut self.builder {
            Some(builder) => builder,
            none => {
                let index = self.shared.index.clone();
                none.insert(IndexBuilder::open(index, directory, self.parts.identity, follower)?)
            }
        };
        let mut changed = self.shared.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_over_limit = false;
        let followed = builder.follow(follower, |key| {
            if let Changed::Keys(keys) = &mut *changed {
                keys.insert(key);
                is_over_limit |= keys.len() > CHANGED_MAX;
            }
        });
        if is_over_limit {
            *changed = Changed::All;
        }
        drop(changed);
        let is_more = followed?;
        let last_sequence = self.shared.index.last_sequence();
        if is_more && self.progress_at.elapsed() >= PROGRESS_INTERVAL {
            self.progress_at = Instant::now();
            let released = self.parts.readers[0].released_sequence();
            if released - last_sequence > 1_000_000 {
                tracing::info!("the index of the events is at {last_sequence} of {released}");
            }
        }
        let is_due = |load: &mut Load| load.through <= last_sequence;
        let due: Vec<_> = self.loads.extract_if(.., is_due).collect();
        due.into_iter().for_each(|load| self.make(load));
        Ok(is_more)
    }

    /// Makes all of the index anew.
    #[cold]
    fn make_anew(&mut self) {
        tracing::warn!("all of the index of the events is made anew");
        let [follower, _] = &mut self.parts.readers;
        if let Some(builder) = &mut self.builder
            && let Err(error) = builder.make_anew(follower)
        {
            tracing::error!("an index file cannot be removed: {error}");
        }
    }

    /// Makes an aggregate of its events.
    fn make(&mut self, load: Load) {
        let made = catch_unwind(AssertUnwindSafe(|| self.fold(&load)));
        let content = match made {
            Ok(Ok(made)) => Ok(made),
            Ok(Err(LoadError::Aggregate(reason))) => Err(reason),
            Ok(Err(LoadError::Index(error))) => {
                tracing::error!("{error}");
                self.make_anew();
                return self.loads.push(load);
            }
            Err(_) => Err("an event makes it panic".to_owned()),
        };
        self.shared.lock().loaded.push(Loaded { load, content });
        // Relaxed: see `Loader::loaded`.
        self.shared.has_loaded.store(true, Ordering::Relaxed);
        self.parts.waker.wake();
    }

    /// Its state, how many events it has had, and the sequence of the last.
    fn fold(&mut self, load: &Load) -> Result<(State, u64, u64), LoadError> {
        let aggregate = &*self.parts.aggregates[load.index];
        let state = aggregate.create(&load.id);
        let state = state.ok_or_else(|| LoadError::Aggregate("its bytes are no identifier of its type".to_owned()))?;
        let mut fold = Fold { aggregate, load, state, version: 0, last_sequence: 0 };
        let [_, reader] = &mut self.parts.readers;
        if self.parts.directory.is_none() {
            reader.seek(Position::default());
            while fold.next(reader)? {}
            return Ok((fold.state, fold.version, fold.last_sequence));
        }
        let mut from = Position::default();
        loop {
            let found = self.shared.index.find(load.key, from, POSITIONS).map_err(LoadError::Index)?;
            let mut read_through = from.sequence.saturating_sub(1);
            for position in found.iter().filter(|position| position.sequence <= self.shared.index.last_sequence()) {
                // Of one transaction all are folded at once.
                if position.sequence <= read_through {
                    continue;
                }
                if reader.next_sequence() != position.sequence {
                    reader.seek(Position { sequence: position.sequence, ordinal: 0 });
                }
                fold.next(reader)?;
                read_through = position.sequence;
            }
            if found.len() < POSITIONS {
                return Ok((fold.state, fold.version, fold.last_sequence));
            }
            from = Position { sequence: read_through + 1, ordinal: 0 };
        }
    }
}

/// An aggregate that is being made.
struct Fold<'a> {
    aggregate: &'a dyn ErasedAggregate,
    load: &'a Load,
    state: State,
    version: u64,
    last_sequence: u64,
}

impl Fold<'_> {
    /// Folds the aggregate's events of the next transaction; false where there is none.
    fn next(&mut self, reader: &mut EventReader) -> Result<bool, LoadError> {
        let unreadable = |error: ReadError| LoadError::Aggregate(error.to_string());
        let Some(mut transaction) = reader.next_transaction().map_err(unreadable)? else { return Ok(false) };
        while let Some(event) = transaction.next_event().map_err(unreadable)? {
            if event.aggregate == self.aggregate.key() && *event.id == *self.load.id {
                self.event(&event)?;
            }
        }
        Ok(true)
    }

    fn event(&mut self, event: &RecordedEvent<'_>) -> Result<(), LoadError> {
        let of_event = |reason: String| LoadError::Aggregate(format!("event {}: {reason}", event.position));
        let old = OldEvent { event: event.event, version: event.version, payload: event.payload };
        let folded = self.aggregate.fold(&mut self.state, &old);
        folded.map_err(|error| of_event(error.to_string()))?;
        (self.version, self.last_sequence) = (self.version + 1, event.position.sequence);
        Ok(())
    }
}
