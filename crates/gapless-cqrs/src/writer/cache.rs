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

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotInMemory {
    /// Being loaded, or commands that waited for the load come first.
    Loading,
    NoIdentifier,
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
    /// Results of an earlier round are ignored.
    round: u64,
}

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

/// Valid until the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheSlot(u32);

const NONE: u32 = u32::MAX;
const SNAPSHOTS_MAX: usize = 256;
const EXAMINED_MAX: usize = 64;

/// The aggregates in memory, by key, with clock eviction.
pub(crate) struct AggregateCache {
    entries: Vec<CacheEntry>,
    free: Vec<u32>,
    first: FxHashMap<IndexKey, u32>,
    /// Tells which aggregates have events. Without it, an aggregate that is not in memory has none.
    filters: Option<KeyFilters>,
    aggregates_max: usize,
    hand: usize,
    /// Events up to this sequence may be of aggregates that are not in memory.
    cold_through: u64,
    loads: Vec<AggregateLoad>,
    transient_failures: Vec<CacheSlot>,
    snapshots: Vec<DueSnapshot>,
    last_missed: Option<CacheSlot>,
    loading: usize,
    queues: WaitQueues,
    /// Session and number of the command being decided.
    session: u64,
    number: u64,
    round: u64,
}

/// Compared for each command, so short ones, the usual case, are inline.
type EntryId = ShortBytes<22>;

struct CacheEntry {
    key: IndexKey,
    aggregate: TypeKey,
    id: EntryId,
    content: CacheContent,
    version: u64,
    last_sequence: u64,
    /// Used since the eviction hand passed last.
    is_used: bool,
    next: u32,
}

enum CacheContent {
    State(ErasedState),
    Quarantined(LoadFailure),
    Loading(WaitQueue),
    Vacant,
}

impl AggregateCache {
    /// An empty cache; without `filters` nothing is ever evicted.
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

    /// Ends the command.
    #[inline]
    pub fn end(&mut self) {
        if !self.queues.is_empty() {
            self.queues.remove_decided(self.session, self.number);
        }
        if !self.transient_failures.is_empty() {
            self.evict_transient_failures();
        }
    }

    /// The next command tries again. Entries that commands wait for stay.
    #[cold]
    fn evict_transient_failures(&mut self) {
        for CacheSlot(slot) in std::mem::take(&mut self.transient_failures) {
            let is_transient_failure = matches!(
                self.entries[slot as usize].content,
                CacheContent::Quarantined(LoadFailure { is_transient: true, .. })
            );
            if is_transient_failure && !self.queues.has(slot) {
                // The aggregate's events are loaded again, even where the filter lacks them.
                let entry = &mut self.entries[slot as usize];
                self.cold_through = self.cold_through.max(entry.last_sequence);
                self.remove(slot);
            }
        }
    }

    /// Sessions whose turn has begun since the last call.
    #[inline]
    pub const fn ready_sessions(&mut self) -> &mut Vec<u64> {
        self.queues.ready_sessions()
    }

    /// Whether [`AggregateCache::expire_waiters`] is needed.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Ends the turns of absent sessions; `awaits_model`: whether a session waits for a decision model.
    #[cold]
    pub fn expire_waiters(&mut self, now: Instant, awaits_model: impl Fn(u64) -> bool) {
        let loading = |slot: u32| match self.entries.get(slot as usize).map(|entry| &entry.content) {
            Some(CacheContent::Loading(queue)) => Some(queue),
            _ => None,
        };
        self.queues.expire(now, loading, awaits_model);
    }

    /// Loads in flight.
    #[inline]
    pub const fn loading(&self) -> usize {
        self.loading
    }

    /// In memory or being loaded.
    #[inline]
    pub const fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Finds an aggregate, or creates one without events.
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

    /// The command waits for the last aggregate found cold.
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

    /// Keeps the command's place although another one of its session waits.
    #[cold]
    pub fn keep_queue_position(&mut self, aggregates: &AggregateTypes, index: usize, id: &[u8]) {
        match self.find(aggregates, index, id) {
            Ok(slot) => self.wait_for(slot),
            Err(NotInMemory::Loading) => self.wait(),
            // The command gets the error once it is run.
            Err(NotInMemory::NoIdentifier | NotInMemory::Quarantined(_)) => {}
        }
    }

    /// Places a command that is not decided now in queues that it joins later.
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

    /// Loads added since the last call.
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

    /// Evicts unused aggregates beyond the limit. Those with events after `indexed` stay: the index would not find
    /// them. Call between two commands.
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

    /// Aggregates with events up to `sequence` may not be in memory.
    pub fn lead_after(&mut self, sequence: u64) {
        self.cold_through = self.cold_through.max(sequence);
    }

    /// Drops all loads, and aggregates with later events.
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

    /// Returns the content, to be dropped on another thread.
    #[cold]
    pub fn clear(&mut self) -> impl Send + use<> {
        self.round += 1;
        self.loading = 0;
        self.loads.clear();
        self.queues.clear();
        (self.last_missed, self.hand) = (None, 0);
        (std::mem::take(&mut self.entries), std::mem::take(&mut self.first), std::mem::take(&mut self.free))
    }

    /// State of a loaded aggregate; panics without.
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

    /// Adds events, already applied, at `sequence`; returns the new version.
    #[inline]
    pub fn record_events(&mut self, slot: CacheSlot, events: u64, sequence: u64) -> u64 {
        let entry = &mut self.entries[slot.0 as usize];
        entry.version += events;
        entry.last_sequence = sequence;
        entry.version
    }

    /// Queues a copy of the state.
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

    /// Due states since the last call.
    #[inline]
    pub const fn snapshots(&mut self) -> &mut Vec<DueSnapshot> {
        &mut self.snapshots
    }

    /// Discards a state left undefined by a panic, to be loaded again.
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
