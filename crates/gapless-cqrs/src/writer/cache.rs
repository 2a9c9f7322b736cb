//! [`Cache`]: the aggregates in memory.
//!
//! ```text
//!  not there ──no events──▶ made ──────────────┐
//!      │                                       ▼
//!      └──may have events──▶ Loading ──▶ State, or Quarantined
//!                              ▲               │
//!          apply has panicked ─┘               └──not used, and indexed──▶ not there
//! ```

use super::lines::{Line, Lines};
use crate::aggregate::{ErasedAggregate, State};
use crate::identity::TypeKey;
use crate::model::Aggregates;
use crate::short_bytes::ShortBytes;
use crate::store::{Filters, IndexKey};
use gapless_agent::fault::mutant;
use rustc_hash::FxHashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// Why an aggregate has no state in memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cold {
    /// Being loaded, or commands that have waited for that come first.
    Loading,
    /// The identifier does not decode for its type.
    NoIdentifier,
    /// The load failed, for this reason.
    Quarantined(String),
}

#[derive(Debug)]
pub(crate) struct Load {
    pub key: IndexKey,
    /// Index of its type.
    pub index: usize,
    pub id: Box<[u8]>,
    /// Sequence of the last event to fold.
    pub through: u64,
    /// Round of the cache. Results of an earlier round are ignored.
    round: u64,
}

/// A loaded aggregate: its state, its version and the sequence of its last event; or why it cannot be loaded.
pub(crate) struct Loaded {
    pub load: Load,
    pub content: Result<(State, u64, u64), NotLoaded>,
}

#[derive(Clone, Debug)]
pub(crate) struct NotLoaded {
    pub reason: String,
    /// The disk has failed: a later attempt may succeed.
    pub may_pass: bool,
}

/// A state that is to be written to a file once its last event is released.
pub(crate) struct DueSnapshot {
    /// Index of its type.
    pub index: usize,
    pub id: Box<[u8]>,
    pub state: State,
    pub version: u64,
    pub last_sequence: u64,
    /// Time of the frame at `last_sequence`.
    pub last_time_ns: u64,
}

/// Index of an aggregate in the cache, valid until the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// End of a chain of entries.
const NONE: u32 = u32::MAX;
/// Most states that wait to be written to files.
const SNAPSHOTS_MAX: usize = 256;
/// Entries examined for eviction by one call.
const LOOKED_AT: usize = 64;

/// The aggregates in memory, by key, with clock eviction.
pub(crate) struct Cache {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// First entry of each key.
    first: FxHashMap<IndexKey, u32>,
    /// Tells which aggregates have events. Without it, an aggregate that is not in memory has none.
    filters: Option<Filters>,
    /// Limit above which entries are evicted.
    aggregates_max: usize,
    /// Next entry to be examined for eviction.
    hand: usize,
    /// Events up to this sequence may be of aggregates that are not in memory.
    cold_through: u64,
    /// Loads that were not requested yet.
    loads: Vec<Load>,
    /// Entries that the current command found and that failed to load because of the disk.
    passing: Vec<Place>,
    snapshots: Vec<DueSnapshot>,
    /// The last aggregate that was found cold.
    missed: Option<Place>,
    loading: usize,
    lines: Lines,
    /// Session and number of the command being decided.
    session: u64,
    number: u64,
    round: u64,
}

/// Identifiers are compared for each command; short ones, the usual case, are stored in the entry itself.
type EntryId = ShortBytes<22>;

struct Entry {
    key: IndexKey,
    aggregate: TypeKey,
    id: EntryId,
    content: Content,
    version: u64,
    /// Sequence of the last event.
    last_sequence: u64,
    /// Used since the eviction hand passed last.
    is_used: bool,
    /// Next entry of the same key.
    next: u32,
}

enum Content {
    State(State),
    Quarantined(NotLoaded),
    /// Being loaded; these commands wait for it.
    Loading(Line),
    Vacant,
}

impl Cache {
    /// An empty cache for that many aggregates. Without `filters` nothing is ever evicted.
    pub fn new(filters: Option<Filters>, aggregates_max: usize) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            first: FxHashMap::default(),
            aggregates_max: if filters.is_some() { aggregates_max } else { usize::MAX },
            filters,
            hand: 0,
            cold_through: 0,
            loads: Vec::new(),
            passing: Vec::new(),
            snapshots: Vec::new(),
            missed: None,
            loading: 0,
            lines: Lines::default(),
            session: 0,
            number: 0,
            round: 0,
        }
    }

    /// Begins a command.
    #[inline]
    pub fn begin(&mut self, session: u64, number: u64) {
        (self.session, self.number) = (session, number);
    }

    /// Ends the command: it is decided.
    #[inline]
    pub fn end(&mut self) {
        if !self.lines.is_empty() {
            self.lines.decided(self.session, self.number);
        }
        if !self.passing.is_empty() {
            self.try_again();
        }
    }

    /// Evicts entries whose load failed because of the disk, so that the next command tries again. Keeps those that
    /// commands wait for.
    #[cold]
    fn try_again(&mut self) {
        for Place(place) in std::mem::take(&mut self.passing) {
            let is_passing =
                matches!(self.entries[place as usize].content, Content::Quarantined(NotLoaded { may_pass: true, .. }));
            if is_passing && !self.lines.has(place) {
                // Makes sure that its events are loaded again, even where the filter does not have them yet.
                let entry = &mut self.entries[place as usize];
                self.cold_through = self.cold_through.max(entry.last_sequence);
                self.remove(place);
            }
        }
    }

    /// Sessions whose turn has begun since the last call, their aggregates being loaded.
    #[inline]
    pub const fn ready(&mut self) -> &mut Vec<u64> {
        self.lines.ready()
    }

    /// Whether any commands wait, so that [`Cache::expire_lines`] is needed.
    #[inline]
    pub fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Ends the turns of sessions that do not come. `awaits_model`: whether a session waits for a decision model.
    #[cold]
    pub fn expire_lines(&mut self, now: Instant, awaits_model: impl Fn(u64) -> bool) {
        let loading = |place: u32| match self.entries.get(place as usize).map(|entry| &entry.content) {
            Some(Content::Loading(line)) => Some(line),
            _ => None,
        };
        self.lines.expire(now, loading, awaits_model);
    }

    /// Number of loads in flight.
    #[inline]
    pub const fn loading(&self) -> usize {
        self.loading
    }

    /// Number of aggregates in memory or being loaded.
    #[inline]
    pub const fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Finds an aggregate; creates one that has no events.
    #[inline]
    pub fn find(&mut self, aggregates: &Aggregates, index: usize, id: &[u8]) -> Result<Place, Cold> {
        let aggregate = aggregates.all[index].key();
        let key = IndexKey::of_aggregate(aggregate, id);
        let mut place = self.first.get(&key).copied().unwrap_or(NONE);
        while let Some(entry) = self.entries.get_mut(place as usize) {
            if entry.aggregate == aggregate && *entry.id == *id {
                entry.is_used = true;
                if !self.lines.is_empty() && self.lines.has_before(place, self.session, self.number) {
                    self.missed = Some(Place(place));
                    return Err(Cold::Loading);
                }
                return match &entry.content {
                    Content::State(_) => Ok(Place(place)),
                    Content::Quarantined(NotLoaded { reason, may_pass }) => {
                        if *may_pass {
                            self.passing.push(Place(place));
                        }
                        Err(Cold::Quarantined(reason.clone()))
                    }
                    Content::Loading(_) | Content::Vacant => {
                        self.missed = Some(Place(place));
                        Err(Cold::Loading)
                    }
                };
            }
            place = entry.next;
        }
        self.make(&*aggregates.all[index], (index, aggregate, key), id)
    }

    #[cold]
    fn make(
        &mut self,
        erased: &dyn ErasedAggregate,
        (index, aggregate, key): (usize, TypeKey, IndexKey),
        id: &[u8],
    ) -> Result<Place, Cold> {
        let state = erased.create(id).ok_or(Cold::NoIdentifier)?;
        let through = self.cold_through;
        if self.filters.as_mut().is_some_and(|filters| filters.may_have(key, through)) {
            let place = self.put(aggregate, key, id, Content::Loading(Line::default()));
            self.loading += 1;
            self.loads.push(Load { key, index, id: id.into(), through, round: self.round });
            self.missed = Some(place);
            return Err(Cold::Loading);
        }
        Ok(self.put(aggregate, key, id, Content::State(state)))
    }

    fn put(&mut self, aggregate: TypeKey, key: IndexKey, id: &[u8], content: Content) -> Place {
        let next = self.first.get(&key).copied().unwrap_or(NONE);
        let entry =
            Entry { key, aggregate, id: EntryId::new(id), content, version: 0, last_sequence: 0, is_used: true, next };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).expect("so many aggregates have no room in memory")
            }
        };
        self.first.insert(key, place);
        Place(place)
    }

    /// Makes the command wait for the aggregate that was found cold last.
    #[cold]
    pub fn wait(&mut self) {
        if let Some(place) = self.missed.take() {
            self.wait_for(place);
        }
    }

    fn wait_for(&mut self, Place(place): Place) {
        match &mut self.entries[place as usize].content {
            Content::Loading(line) => self.lines.await_load(place, line, self.session, self.number),
            _ => self.lines.join(place, self.session, self.number),
        }
    }

    /// Keeps a command's place in the aggregate's line although another one of its session waits.
    #[cold]
    pub fn stand_in_line(&mut self, aggregates: &Aggregates, index: usize, id: &[u8]) {
        match self.find(aggregates, index, id) {
            Ok(place) => self.wait_for(place),
            Err(Cold::Loading) => self.wait(),
            // The error is returned to the command once it is run. If the aggregate is evicted before, the command
            // keeps its place.
            Err(Cold::NoIdentifier | Cold::Quarantined(_)) => {}
        }
    }

    /// Notes the arrival of a command that is not decided now. Lines that it joins later place it by this arrival.
    #[cold]
    pub fn arrive(&mut self) {
        if mutant("forget_session_order") {
            return;
        }
        self.lines.arrive(self.session, self.number);
    }

    /// Removes a session.
    #[cold]
    pub fn gone(&mut self, session: u64) {
        self.lines.gone(session);
    }

    /// Loads that were added since the last call.
    #[inline]
    pub const fn loads(&mut self) -> &mut Vec<Load> {
        &mut self.loads
    }

    /// Stores a loaded aggregate.
    #[cold]
    pub fn loaded(&mut self, Loaded { load, content }: Loaded, aggregates: &Aggregates) {
        if load.round != self.round {
            return;
        }
        let aggregate = aggregates.all[load.index].key();
        let mut place = self.first.get(&load.key).copied().unwrap_or(NONE);
        while let Some(entry) = self.entries.get_mut(place as usize) {
            if entry.aggregate == aggregate && *entry.id == *load.id {
                let Content::Loading(line) = &mut entry.content else { return };
                let line = std::mem::take(line);
                self.loading -= 1;
                match content {
                    Ok((state, version, last_sequence)) => {
                        (entry.version, entry.last_sequence) = (version, last_sequence);
                        entry.content = Content::State(state);
                    }
                    Err(not_loaded) => entry.content = Content::Quarantined(not_loaded),
                }
                return self.lines.begin(place, line);
            }
            place = entry.next;
        }
    }

    /// Evicts aggregates that were not used lately, if there are too many. Those with events after `indexed` stay,
    /// because the index would not find them. Call between two commands.
    #[inline]
    pub fn make_room(&mut self, indexed: u64) {
        if self.len() > self.aggregates_max {
            self.let_go(indexed);
        }
    }

    #[cold]
    fn let_go(&mut self, indexed: u64) {
        for _ in 0..LOOKED_AT {
            self.hand = if self.hand + 1 < self.entries.len() { self.hand + 1 } else { 0 };
            let entry = &mut self.entries[self.hand];
            let stays = matches!(entry.content, Content::Vacant | Content::Loading(_)) || entry.last_sequence > indexed;
            if stays || self.lines.has(self.hand as u32) {
                continue;
            }
            if !std::mem::replace(&mut entry.is_used, false) {
                self.cold_through = self.cold_through.max(entry.last_sequence);
                self.remove(self.hand as u32);
                if self.len() <= self.aggregates_max {
                    return;
                }
            }
        }
    }

    /// Notes that aggregates may have events up to `sequence` that are not in memory.
    pub fn lead_behind(&mut self, sequence: u64) {
        self.cold_through = self.cold_through.max(sequence);
    }

    /// Drops all loads, and aggregates with events after `sequence`.
    #[cold]
    pub fn drop_behind(&mut self, sequence: u64) {
        self.round += 1;
        self.loading = 0;
        self.loads.clear();
        self.lines.clear();
        self.missed = None;
        for place in 0..self.entries.len() {
            let entry = &self.entries[place];
            let is_behind = entry.last_sequence > sequence && !matches!(entry.content, Content::Vacant);
            if is_behind || matches!(entry.content, Content::Loading(_)) {
                self.remove(place as u32);
            }
        }
    }

    /// Drops the aggregates with this key.
    pub fn drop_key(&mut self, key: IndexKey) {
        while let Some(place) = self.first.get(&key).copied() {
            self.remove(place);
        }
    }

    /// Drops everything. The content is returned, so that the caller can drop it on another thread.
    #[cold]
    pub fn clear(&mut self) -> impl Send + use<> {
        self.round += 1;
        self.loading = 0;
        self.loads.clear();
        self.lines.clear();
        (self.missed, self.hand) = (None, 0);
        (std::mem::take(&mut self.entries), std::mem::take(&mut self.first), std::mem::take(&mut self.free))
    }

    /// State of an aggregate. Panics without a state.
    #[inline]
    pub fn state(&self, place: Place) -> &State {
        match &self.entries[place.0 as usize].content {
            Content::State(state) => state,
            _ => unreachable!("{IS_THERE}"),
        }
    }

    #[inline]
    pub fn state_mut(&mut self, place: Place) -> &mut State {
        match &mut self.entries[place.0 as usize].content {
            Content::State(state) => state,
            _ => unreachable!("{IS_THERE}"),
        }
    }

    #[inline]
    pub fn version(&self, place: Place) -> u64 {
        self.entries[place.0 as usize].version
    }

    #[inline]
    pub fn name(&self, place: Place) -> (TypeKey, &[u8]) {
        let entry = &self.entries[place.0 as usize];
        (entry.aggregate, &entry.id)
    }

    /// Adds events, already applied, at `sequence`. Returns the new version.
    #[inline]
    pub fn note(&mut self, place: Place, events: u64, sequence: u64) -> u64 {
        let entry = &mut self.entries[place.0 as usize];
        entry.version += events;
        entry.last_sequence = sequence;
        entry.version
    }

    /// Queues a copy of the state to be written to a file.
    #[cold]
    pub fn snapshot(&mut self, Place(place): Place, index: usize, aggregates: &Aggregates, time_ns: u64) {
        let entry = &self.entries[place as usize];
        let Content::State(state) = &entry.content else { return };
        let copied = catch_unwind(AssertUnwindSafe(|| aggregates.all[index].copy(state)));
        if let (Ok(state), true) = (copied, self.snapshots.len() < SNAPSHOTS_MAX) {
            let Entry { version, last_sequence, ref id, .. } = *entry;
            let id = (**id).into();
            self.snapshots.push(DueSnapshot { index, id, state, version, last_sequence, last_time_ns: time_ns });
        }
    }

    /// States that are to be written to files since the last call.
    #[inline]
    pub const fn snapshots(&mut self) -> &mut Vec<DueSnapshot> {
        &mut self.snapshots
    }

    /// Discards an aggregate's state, which a panic has left undefined. It is loaded again before its next use.
    #[cold]
    pub fn spoil(&mut self, place: Place, aggregates: &Aggregates) {
        let entry = &mut self.entries[place.0 as usize];
        let Some(index) = aggregates.find(entry.aggregate) else { return };
        if matches!(entry.content, Content::State(_)) && entry.version > 0 {
            entry.content = Content::Loading(Line::default());
            self.loading += 1;
            let (key, through) = (entry.key, entry.last_sequence);
            self.loads.push(Load { key, index, id: (*entry.id).into(), through, round: self.round });
        }
    }

    /// Removes an aggregate without events.
    #[cold]
    pub fn drop_if_empty(&mut self, place: Place) {
        let entry = &self.entries[place.0 as usize];
        let is_there = matches!(entry.content, Content::State(_) | Content::Quarantined(_));
        if entry.version == 0 && is_there && !self.lines.has(place.0) {
            self.remove(place.0);
        }
    }

    fn remove(&mut self, place: u32) {
        let Entry { key, next, .. } = self.entries[place as usize];
        match self.first.get_mut(&key) {
            Some(first) if *first == place && next == NONE => {
                self.first.remove(&key);
            }
            Some(first) if *first == place => *first = next,
            first => {
                let mut before = first.copied().unwrap_or(NONE);
                while let Some(entry) = self.entries.get_mut(before as usize) {
                    if entry.next == place {
                        entry.next = next;
                        break;
                    }
                    before = entry.next;
                }
            }
        }
        let entry = &mut self.entries[place as usize];
        (entry.content, entry.id, entry.version, entry.last_sequence) = (Content::Vacant, EntryId::new(&[]), 0, 0);
        self.free.push(place);
    }
}

const IS_THERE: &str = "a place that was found has a state until the end of its command";
