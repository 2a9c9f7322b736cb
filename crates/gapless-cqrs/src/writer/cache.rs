//! [`AggregateCache`]: the aggregates in memory.
//!
//! ```text
//!  not there ──no events──▶ made ──────────────┐
//!      │                                       ▼
//!      └──may have events──▶ Loading ──▶ State, or Quarantined
//!                              ▲               │
//!          apply has panicked ─┘               └──not used, and indexed──▶ not there
//! ```

use super::wait_queues::{WaitQueue, WaitQueues};
use crate::aggregate::{ErasedAggregate, ErasedState};
use crate::identity::TypeKey;
use crate::model::AggregateTypes;
use crate::short_bytes::ShortBytes;
use crate::store::{IndexKey, KeyFilters};
use gapless_agent::fault::mutant;
use rustc_hash::FxHashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// Why an aggregate has no state in memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotInMemory {
    /// Being loaded, or commands that have waited for that come first.
    Loading,
    /// The identifier does not decode for its type.
    NoIdentifier,
    /// The load failed, for this reason.
    Quarantined(String),
}

#[derive(Debug)]
pub(crate) struct AggregateLoad {
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
pub(crate) struct LoadedAggregate {
    pub load: AggregateLoad,
    pub content: Result<(ErasedState, u64, u64), LoadFailure>,
}

#[derive(Clone, Debug)]
pub(crate) struct LoadFailure {
    pub reason: String,
    /// The disk has failed: a later attempt may succeed.
    pub is_transient: bool,
}

/// A state that is to be written to a file once its last event is released.
pub(crate) struct DueSnapshot {
    /// Index of its type.
    pub index: usize,
    pub id: Box<[u8]>,
    pub state: ErasedState,
    pub version: u64,
    pub last_sequence: u64,
    /// Time of the frame at `last_sequence`.
    pub last_time_ns: u64,
}

/// Index of an aggregate in the cache, valid until the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheSlot(u32);

/// End of a chain of entries.
const NONE: u32 = u32::MAX;
/// Most states that wait to be written to files.
const SNAPSHOTS_MAX: usize = 256;
/// Entries examined for eviction by one call.
const EXAMINED_MAX: usize = 64;

/// The aggregates in memory, by key, with clock eviction.
pub(crate) struct AggregateCache {
    entries: Vec<CacheEntry>,
    free: Vec<u32>,
    /// First entry of each key.
    first: FxHashMap<IndexKey, u32>,
    /// Tells which aggregates have events. Without it, an aggregate that is not in memory has none.
    filters: Option<KeyFilters>,
    /// Limit above which entries are evicted.
    aggregates_max: usize,
    /// Next entry to be examined for eviction.
    hand: usize,
    /// Events up to this sequence may be of aggregates that are not in memory.
    cold_through: u64,
    /// Loads that were not requested yet.
    loads: Vec<AggregateLoad>,
    /// Entries that the current command found and that failed to load because of the disk.
    transient_failures: Vec<CacheSlot>,
    snapshots: Vec<DueSnapshot>,
    /// The last aggregate that was found cold.
    last_missed: Option<CacheSlot>,
    loading: usize,
    queues: WaitQueues,
    /// Session and number of the command being decided.
    session: u64,
    number: u64,
    round: u64,
}

/// Identifiers are compared for each command; short ones, the usual case, are stored in the entry itself.
type EntryId = ShortBytes<22>;

struct CacheEntry {
    key: IndexKey,
    aggregate: TypeKey,
    id: EntryId,
    content: CacheContent,
    version: u64,
    /// Sequence of the last event.
    last_sequence: u64,
    /// Used since the eviction hand passed last.
    is_used: bool,
    /// Next entry of the same key.
    next: u32,
}

enum CacheContent {
    State(ErasedState),
    Quarantined(LoadFailure),
    /// Being loaded; these commands wait for it.
    Loading(WaitQueue),
    Vacant,
}

impl AggregateCache {
    /// An empty cache for that many aggregates. Without `filters` nothing is ever evicted.
    pub fn new(filters: Option<KeyFilters>, aggregates_max: usize) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            first: FxHashMap::default(),
            aggregates_max: if filters.is_some() { aggregates_max } else { usize::MAX },
            filters,
            hand: 0,
            cold_through: 0,
            loads: Vec::new(),
            transient_failures: Vec::new(),
            snapshots: Vec::new(),
            last_missed: None,
            loading: 0,
            queues: WaitQueues::default(),
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
        if !self.queues.is_empty() {
            self.queues.remove_decided(self.session, self.number);
        }
        if !self.transient_failures.is_empty() {
            self.evict_transient_failures();
        }
    }

    /// Evicts entries whose load failed because of the disk, so that the next command tries again. Keeps those that
    /// commands wait for.
    #[cold]
    fn evict_transient_failures(&mut self) {
        for CacheSlot(slot) in std::mem::take(&mut self.transient_failures) {
            let is_transient_failure = matches!(
                self.entries[slot as usize].content,
                CacheContent::Quarantined(LoadFailure { is_transient: true, .. })
            );
            if is_transient_failure && !self.queues.has(slot) {
                // Makes sure that its events are loaded again, even where the filter does not have them yet.
                let entry = &mut self.entries[slot as usize];
                self.cold_through = self.cold_through.max(entry.last_sequence);
                self.remove(slot);
            }
        }
    }

    /// Sessions whose turn has begun since the last call, their aggregates being loaded.
    #[inline]
    pub const fn ready_sessions(&mut self) -> &mut Vec<u64> {
        self.queues.ready_sessions()
    }

    /// Whether any commands wait, so that [`AggregateCache::expire_waiters`] is needed.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Ends the turns of sessions that do not come. `awaits_model`: whether a session waits for a decision model.
    #[cold]
    pub fn expire_waiters(&mut self, now: Instant, awaits_model: impl Fn(u64) -> bool) {
        let loading = |slot: u32| match self.entries.get(slot as usize).map(|entry| &entry.content) {
            Some(CacheContent::Loading(queue)) => Some(queue),
            _ => None,
        };
        self.queues.expire(now, loading, awaits_model);
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
    pub fn find(&mut self, aggregates: &AggregateTypes, index: usize, id: &[u8]) -> Result<CacheSlot, NotInMemory> {
        let aggregate = aggregates.all[index].key();
        let key = IndexKey::of_aggregate(aggregate, id);
        let mut slot = self.first.get(&key).copied().unwrap_or(NONE);
        while let Some(entry) = self.entries.get_mut(slot as usize) {
            if entry.aggregate == aggregate && *entry.id == *id {
                entry.is_used = true;
                if !self.queues.is_empty() && self.queues.has_earlier(slot, self.session, self.number) {
                    self.last_missed = Some(CacheSlot(slot));
                    return Err(NotInMemory::Loading);
                }
                return match &entry.content {
                    CacheContent::State(_) => Ok(CacheSlot(slot)),
                    CacheContent::Quarantined(LoadFailure { reason, is_transient }) => {
                        if *is_transient {
                            self.transient_failures.push(CacheSlot(slot));
                        }
                        Err(NotInMemory::Quarantined(reason.clone()))
                    }
                    CacheContent::Loading(_) | CacheContent::Vacant => {
                        self.last_missed = Some(CacheSlot(slot));
                        Err(NotInMemory::Loading)
                    }
                };
            }
            slot = entry.next;
        }
        self.create(&*aggregates.all[index], (index, aggregate, key), id)
    }

    #[cold]
    fn create(
        &mut self,
        erased: &dyn ErasedAggregate,
        (index, aggregate, key): (usize, TypeKey, IndexKey),
        id: &[u8],
    ) -> Result<CacheSlot, NotInMemory> {
        let state = erased.create(id).ok_or(NotInMemory::NoIdentifier)?;
        let through = self.cold_through;
        if self.filters.as_mut().is_some_and(|filters| filters.may_have(key, through)) {
            let slot = self.put(aggregate, key, id, CacheContent::Loading(WaitQueue::default()));
            self.loading += 1;
            self.loads.push(AggregateLoad { key, index, id: id.into(), through, round: self.round });
            self.last_missed = Some(slot);
            return Err(NotInMemory::Loading);
        }
        Ok(self.put(aggregate, key, id, CacheContent::State(state)))
    }

    fn put(&mut self, aggregate: TypeKey, key: IndexKey, id: &[u8], content: CacheContent) -> CacheSlot {
        let next = self.first.get(&key).copied().unwrap_or(NONE);
        let entry = CacheEntry {
            key,
            aggregate,
            id: EntryId::new(id),
            content,
            version: 0,
            last_sequence: 0,
            is_used: true,
            next,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).expect("so many aggregates have no room in memory")
            }
        };
        self.first.insert(key, slot);
        CacheSlot(slot)
    }

    /// Makes the command wait for the aggregate that was found cold last.
    #[cold]
    pub fn wait(&mut self) {
        if let Some(slot) = self.last_missed.take() {
            self.wait_for(slot);
        }
    }

    fn wait_for(&mut self, CacheSlot(slot): CacheSlot) {
        match &mut self.entries[slot as usize].content {
            CacheContent::Loading(queue) => self.queues.await_load(slot, queue, self.session, self.number),
            _ => self.queues.join(slot, self.session, self.number),
        }
    }

    /// Keeps a command's place in the aggregate's queue although another one of its session waits.
    #[cold]
    pub fn keep_queue_position(&mut self, aggregates: &AggregateTypes, index: usize, id: &[u8]) {
        match self.find(aggregates, index, id) {
            Ok(slot) => self.wait_for(slot),
            Err(NotInMemory::Loading) => self.wait(),
            // The error is returned to the command once it is run. If the aggregate is evicted before, the command
            // keeps its place.
            Err(NotInMemory::NoIdentifier | NotInMemory::Quarantined(_)) => {}
        }
    }

    /// Notes the arrival of a command that is not decided now. Queues that it joins later place it by this arrival.
    #[cold]
    pub fn record_arrival(&mut self) {
        if mutant("forget_session_order") {
            return;
        }
        self.queues.record_arrival(self.session, self.number);
    }

    /// Removes a session.
    #[cold]
    pub fn remove_session(&mut self, session: u64) {
        self.queues.remove_session(session);
    }

    /// Loads that were added since the last call.
    #[inline]
    pub const fn loads(&mut self) -> &mut Vec<AggregateLoad> {
        &mut self.loads
    }

    /// Stores a loaded aggregate.
    #[cold]
    pub fn store_loaded(&mut self, LoadedAggregate { load, content }: LoadedAggregate, aggregates: &AggregateTypes) {
        if load.round != self.round {
            return;
        }
        let aggregate = aggregates.all[load.index].key();
        let mut slot = self.first.get(&load.key).copied().unwrap_or(NONE);
        while let Some(entry) = self.entries.get_mut(slot as usize) {
            if entry.aggregate == aggregate && *entry.id == *load.id {
                let CacheContent::Loading(queue) = &mut entry.content else { return };
                let queue = std::mem::take(queue);
                self.loading -= 1;
                match content {
                    Ok((state, version, last_sequence)) => {
                        (entry.version, entry.last_sequence) = (version, last_sequence);
                        entry.content = CacheContent::State(state);
                    }
                    Err(not_loaded) => entry.content = CacheContent::Quarantined(not_loaded),
                }
                return self.queues.begin_turns(slot, queue);
            }
            slot = entry.next;
        }
    }

    /// Evicts aggregates that were not used lately, if there are too many. Those with events after `indexed` stay,
    /// because the index would not find them. Call between two commands.
    #[inline]
    pub fn evict_excess(&mut self, indexed: u64) {
        if self.len() > self.aggregates_max {
            self.evict(indexed);
        }
    }

    #[cold]
    fn evict(&mut self, indexed: u64) {
        for _ in 0..EXAMINED_MAX {
            self.hand = if self.hand + 1 < self.entries.len() { self.hand + 1 } else { 0 };
            let entry = &mut self.entries[self.hand];
            let stays = matches!(entry.content, CacheContent::Vacant | CacheContent::Loading(_))
                || entry.last_sequence > indexed;
            if stays || self.queues.has(self.hand as u32) {
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
    pub fn lead_after(&mut self, sequence: u64) {
        self.cold_through = self.cold_through.max(sequence);
    }

    /// Drops all loads, and aggregates with events after `sequence`.
    #[cold]
    pub fn drop_after(&mut self, sequence: u64) {
        self.round += 1;
        self.loading = 0;
        self.loads.clear();
        self.queues.clear();
        self.last_missed = None;
        for slot in 0..self.entries.len() {
            let entry = &self.entries[slot];
            let is_later = entry.last_sequence > sequence && !matches!(entry.content, CacheContent::Vacant);
            if is_later || matches!(entry.content, CacheContent::Loading(_)) {
                self.remove(slot as u32);
            }
        }
    }

    /// Drops the aggregates with this key.
    pub fn drop_key(&mut self, key: IndexKey) {
        while let Some(slot) = self.first.get(&key).copied() {
            self.remove(slot);
        }
    }

    /// Drops everything. The content is returned, so that the caller can drop it on another thread.
    #[cold]
    pub fn clear(&mut self) -> impl Send + use<> {
        self.round += 1;
        self.loading = 0;
        self.loads.clear();
        self.queues.clear();
        (self.last_missed, self.hand) = (None, 0);
        (std::mem::take(&mut self.entries), std::mem::take(&mut self.first), std::mem::take(&mut self.free))
    }

    /// State of an aggregate. Panics without a state.
    #[inline]
    pub fn state(&self, slot: CacheSlot) -> &ErasedState {
        match &self.entries[slot.0 as usize].content {
            CacheContent::State(state) => state,
            _ => unreachable!("{IS_THERE}"),
        }
    }

    #[inline]
    pub fn state_mut(&mut self, slot: CacheSlot) -> &mut ErasedState {
        match &mut self.entries[slot.0 as usize].content {
            CacheContent::State(state) => state,
            _ => unreachable!("{IS_THERE}"),
        }
    }

    #[inline]
    pub fn version(&self, slot: CacheSlot) -> u64 {
        self.entries[slot.0 as usize].version
    }

    #[inline]
    pub fn identity(&self, slot: CacheSlot) -> (TypeKey, &[u8]) {
        let entry = &self.entries[slot.0 as usize];
        (entry.aggregate, &entry.id)
    }

    /// Adds events, already applied, at `sequence`. Returns the new version.
    #[inline]
    pub fn record_events(&mut self, slot: CacheSlot, events: u64, sequence: u64) -> u64 {
        let entry = &mut self.entries[slot.0 as usize];
        entry.version += events;
        entry.last_sequence = sequence;
        entry.version
    }

    /// Queues a copy of the state to be written to a file.
    #[cold]
    pub fn queue_snapshot(
        &mut self,
        CacheSlot(slot): CacheSlot,
        index: usize,
        aggregates: &AggregateTypes,
        time_ns: u64,
    ) {
        let entry = &self.entries[slot as usize];
        let CacheContent::State(state) = &entry.content else { return };
        let copied = catch_unwind(AssertUnwindSafe(|| aggregates.all[index].copy(state)));
        if let (Ok(state), true) = (copied, self.snapshots.len() < SNAPSHOTS_MAX) {
            let CacheEntry { version, last_sequence, ref id, .. } = *entry;
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
    pub fn invalidate(&mut self, slot: CacheSlot, aggregates: &AggregateTypes) {
        let entry = &mut self.entries[slot.0 as usize];
        let Some(index) = aggregates.find(entry.aggregate) else { return };
        if matches!(entry.content, CacheContent::State(_)) && entry.version > 0 {
            entry.content = CacheContent::Loading(WaitQueue::default());
            self.loading += 1;
            let (key, through) = (entry.key, entry.last_sequence);
            self.loads.push(AggregateLoad { key, index, id: (*entry.id).into(), through, round: self.round });
        }
    }

    /// Removes an aggregate without events.
    #[cold]
    pub fn drop_if_empty(&mut self, slot: CacheSlot) {
        let entry = &self.entries[slot.0 as usize];
        let is_there = matches!(entry.content, CacheContent::State(_) | CacheContent::Quarantined(_));
        if entry.version == 0 && is_there && !self.queues.has(slot.0) {
            self.remove(slot.0);
        }
    }

    fn remove(&mut self, slot: u32) {
        let CacheEntry { key, next, .. } = self.entries[slot as usize];
        match self.first.get_mut(&key) {
            Some(first) if *first == slot && next == NONE => {
                self.first.remove(&key);
            }
            Some(first) if *first == slot => *first = next,
            first => {
                let mut before = first.copied().unwrap_or(NONE);
                while let Some(entry) = self.entries.get_mut(before as usize) {
                    if entry.next == slot {
                        entry.next = next;
                        break;
                    }
                    before = entry.next;
                }
            }
        }
        let entry = &mut self.entries[slot as usize];
        (entry.content, entry.id, entry.version, entry.last_sequence) = (CacheContent::Vacant, EntryId::new(&[]), 0, 0);
        self.free.push(slot);
    }
}

const IS_THERE: &str = "a place that was found has a state until the end of its command";
