//! [`DecisionModels`]: states of decision models in memory, each folded from all events of its filter up to the
//! writer's tail.
//!
//! ```text
//!  not there ──no events──▶ made ────────────────────────────┐
//!      │                                                     ▼
//!      └──may have events──▶ Loading, with events decided ───▶ State, changed by each event that is decided; or Quarantined
//!                            meanwhile
//! ```
//! Any state can be evicted at any time: a load goes up to the tail.

use super::cache::{LoadFailure, NotInMemory};
use super::unindexed::Unindexed;
use crate::aggregate::ErasedState;
use crate::decision_model::ErasedDecisionModel;
use crate::event_filter::EventFilter;
use crate::identity::Position;
use crate::store::{IndexKey, KeyFilters, first_keys_of, keys_of};
use crate::transaction::{RecordedEvent, RecordedEvents};
use gapless_wire::fields::FieldError;
use rustc_hash::FxHashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub(crate) type ModelTypes = [Arc<dyn ErasedDecisionModel>];

pub(crate) struct ModelLoad {
    /// Index of its type.
    pub model: usize,
    pub id: Box<[u8]>,
    /// First event to fold.
    pub from: Position,
    /// Sequence of the last event to fold.
    pub through: u64,
    /// A result with another ticket is outdated.
    ticket: u64,
}

pub(crate) struct LoadedModel {
    pub load: ModelLoad,
    pub content: Result<ErasedState, LoadFailure>,
}

/// Most bytes of transactions kept for states that are being loaded. Beyond, the loads start again.
const PENDING_BYTES_MAX: usize = 16 << 20;
const EXAMINED_MAX: usize = 64;

pub(crate) struct DecisionModels {
    entries: Vec<ModelEntry>,
    free: Vec<usize>,
    by_id: FxHashMap<usize, FxHashMap<Box<[u8]>, usize>>,
    entries_by_key: FxHashMap<IndexKey, Vec<usize>>,
    filters: Option<KeyFilters>,
    /// Keys that the index may lack.
    unindexed: Unindexed,
    states_max: usize,
    hand: usize,
    loads: Vec<ModelLoad>,
    loading: usize,
    next_ticket: u64,
    pending_changes: Vec<(u64, Box<[u8]>)>,
    pending_bytes: usize,
    last_missed: Option<usize>,
    ready: Vec<u64>,
    /// Read by the running handler, with its own events applied.
    read_states: Vec<ReadState>,
    lookups: Vec<usize>,
    /// States looked up by waiting commands, by session. They stay until the commands are decided, whatever the limit.
    held: FxHashMap<u64, Vec<usize>>,
}

struct ModelEntry {
    model: usize,
    id: Box<[u8]>,
    filter: EventFilter,
    keys: Vec<IndexKey>,
    from: Position,
    content: ModelContent,
    is_used: bool,
    /// Number of waiting sessions that hold it.
    holds: u32,
}

enum ModelContent {
    State(ErasedState),
    Quarantined(LoadFailure),
    Loading { ticket: u64, sessions: Vec<u64> },
    Vacant,
}

struct ReadState {
    entry: usize,
    events: usize,
    before: Option<ErasedState>,
}

impl DecisionModels {
    /// At most `states_max` besides those held; without `filters` nothing is ever evicted.
    pub fn new(filters: Option<KeyFilters>, states_max: usize) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            by_id: FxHashMap::default(),
            entries_by_key: FxHashMap::default(),
            states_max: if filters.is_some() { states_max } else { usize::MAX },
            filters,
            unindexed: Unindexed::default(),
            hand: 0,
            loads: Vec::new(),
            loading: 0,
            next_ticket: 0,
            pending_changes: Vec::new(),
            pending_bytes: 0,
            last_missed: None,
            ready: Vec::new(),
            read_states: Vec::new(),
            lookups: Vec::new(),
            held: FxHashMap::default(),
        }
    }

    /// Earlier events may be deleted; 0: none.
    pub fn deleted_before(&self) -> u64 {
        self.filters.as_ref().map_or(0, KeyFilters::deleted_before)
    }

    /// Whether [`DecisionModels::apply_decided`] is needed.
    #[inline]
    pub const fn is_active(&self) -> bool {
        self.unindexed.is_active()
    }

    /// Drops all states; later events will be reported.
    pub fn begin_after(&mut self, sequence: u64) {
        self.clear();
        self.unindexed.begin_after(sequence);
    }

    /// Drops all states.
    pub fn clear(&mut self) {
        let (filters, states_max, next_ticket) = (self.filters.take(), self.states_max, self.next_ticket);
        *self = Self { states_max, next_ticket, ..Self::new(filters, states_max) };
    }

    /// State of all events from `from` up to `tail`.
    pub fn find(
        &mut self,
        types: &ModelTypes,
        (model, id): (usize, &[u8]),
        from: Position,
        tail: u64,
    ) -> Result<usize, NotInMemory> {
        if !self.is_active() {
            self.unindexed.begin_after(tail);
        }
        if let Some(entry) = self.by_id.get(&model).and_then(|by_id| by_id.get(id)).copied() {
            let found = &mut self.entries[entry];
            found.is_used = true;
            if from >= found.from {
                self.lookups.push(entry);
                return match &found.content {
                    ModelContent::State(_) => Ok(entry),
                    ModelContent::Quarantined(LoadFailure { reason, is_transient }) => {
                        let (missing, is_transient) = (NotInMemory::Quarantined(reason.clone()), *is_transient);
                        if is_transient {
                            self.remove(entry);
                        }
                        Err(missing)
                    }
                    ModelContent::Loading { .. } | ModelContent::Vacant => {
                        self.last_missed = Some(entry);
                        Err(NotInMemory::Loading)
                    }
                };
            }
            // The entry has fewer events than are asked for now.
            if let ModelContent::Loading { sessions, .. } = &mut found.content {
                self.ready.append(sessions);
            }
            self.remove(entry);
        }
        self.create(types, (model, id), from, tail)
    }

    #[cold]
    fn create(
        &mut self,
        types: &ModelTypes,
        (model, id): (usize, &[u8]),
        from: Position,
        tail: u64,
    ) -> Result<usize, NotInMemory> {
        let (state, filter) = types[model].create(id).ok_or(NotInMemory::NoIdentifier)?;
        let keys: Vec<_> = first_keys_of(&filter).collect();
        let is_empty = from.sequence > tail || !self.may_have(&keys);
        let content = if is_empty { ModelContent::State(state) } else { self.load(model, id, from, tail) };
        let entry = ModelEntry { model, id: id.into(), filter, keys, from, content, is_used: true, holds: 0 };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.by_id.entry(model).or_default().insert(id.into(), at);
        for key in &self.entries[at].keys {
            self.entries_by_key.entry(*key).or_default().push(at);
        }
        self.lookups.push(at);
        if is_empty {
            return Ok(at);
        }
        self.last_missed = Some(at);
        Err(NotInMemory::Loading)
    }

    fn may_have(&mut self, keys: &[IndexKey]) -> bool {
        let unindexed = &self.unindexed;
        match &mut self.filters {
            None => !unindexed.is_whole() || keys.iter().any(|key| unindexed.has(*key)),
            Some(filters) => {
                let indexed = filters.last_sequence();
                !unindexed.covers(indexed)
                    || keys.iter().any(|key| unindexed.has(*key) || filters.may_have(*key, indexed))
            }
        }
    }

    fn load(&mut self, model: usize, id: &[u8], from: Position, through: u64) -> ModelContent {
        let ticket = self.next_ticket;
        (self.next_ticket, self.loading) = (ticket + 1, self.loading + 1);
        self.loads.push(ModelLoad { model, id: id.into(), from, through, ticket });
        ModelContent::Loading { ticket, sessions: Vec::new() }
    }

    pub fn state(&self, entry: usize) -> &ErasedState {
        match &self.entries[entry].content {
            ModelContent::State(state) => state,
            _ => unreachable!("it was found"),
        }
    }

    /// Applies the handler's events of `transaction` to a state that it reads.
    ///
    /// # Errors
    /// An event cannot be applied.
    pub fn apply_own_events(
        &mut self,
        types: &ModelTypes,
        entry: usize,
        transaction: Result<RecordedEvents<'_>, FieldError>,
    ) -> Result<(), String> {
        let at = self.read_states.iter().position(|read_state| read_state.entry == entry).unwrap_or_else(|| {
            self.read_states.push(ReadState { entry, events: 0, before: None });
            self.read_states.len() - 1
        });
        let (read_state, entry) = (&mut self.read_states[at], &mut self.entries[entry]);
        let mut events = transaction.map_err(|error| error.to_string())?;
        let mut count = 0;
        while let Some(event) = events.next_event().map_err(|error| error.to_string())? {
            count += 1;
            if count <= read_state.events || !entry.filter.has(&event) {
                continue;
            }
            let ModelContent::State(state) = &mut entry.content else { unreachable!("it was found") };
            read_state.before.get_or_insert_with(|| types[entry.model].copy(state));
            types[entry.model].apply(state, &event).map_err(|error| error.to_string())?;
        }
        read_state.events = count;
        Ok(())
    }

    /// Drops the handler's events.
    pub fn roll_back(&mut self) {
        for ReadState { entry, before, .. } in self.read_states.drain(..) {
            if let Some(before) = before {
                self.entries[entry].content = ModelContent::State(before);
            }
        }
    }

    /// Applies a decided transaction.
    ///
    /// # Panics
    /// If the writer's own bytes do not decode.
    #[cold]
    pub fn apply_decided(&mut self, types: &ModelTypes, sequence: u64, changes: &[u8]) {
        let mut events = RecordedEvents::read(sequence, changes).expect("the writer has written them");
        let mut changed: Vec<usize> = Vec::new();
        let (mut is_pending, mut ordinal) = (false, 0);
        while let Some(event) = events.next_event().expect("the writer has written them") {
            changed.clear();
            for key in keys_of(&event) {
                self.unindexed.add(key, sequence);
                changed.extend(self.entries_by_key.get(&key).into_iter().flatten());
            }
            changed.sort_unstable();
            changed.dedup();
            for at in changed.iter().copied() {
                let is_applied =
                    self.read_states.iter().any(|read_state| read_state.entry == at && ordinal < read_state.events);
                let entry = &mut self.entries[at];
                match &mut entry.content {
                    ModelContent::State(state) if !is_applied && entry.filter.has(&event) => {
                        if let Err(reason) = apply_caught(&*types[entry.model], state, &event) {
                            entry.content = ModelContent::Quarantined(LoadFailure { reason, is_transient: false });
                        }
                    }
                    ModelContent::Loading { .. } => is_pending |= entry.filter.has(&event),
                    _ => {}
                }
            }
            ordinal += 1;
        }
        self.read_states.clear();
        if is_pending {
            self.pending_changes.push((sequence, changes.into()));
            self.pending_bytes += changes.len();
            if self.pending_bytes > PENDING_BYTES_MAX {
                self.reload(sequence);
            }
        }
    }

    /// Starts all loads again, up to `through`: too many events were decided meanwhile to keep them.
    fn reload(&mut self, through: u64) {
        self.pending_changes.clear();
        (self.pending_bytes, self.loading) = (0, 0);
        for at in 0..self.entries.len() {
            if let ModelContent::Loading { sessions, .. } = &mut self.entries[at].content {
                let waiting = std::mem::take(sessions);
                let ModelEntry { model, from, .. } = self.entries[at];
                let id = self.entries[at].id.clone();
                let mut content = self.load(model, &id, from, through);
                if let ModelContent::Loading { sessions, .. } = &mut content {
                    *sessions = waiting;
                }
                self.entries[at].content = content;
            }
        }
    }

    /// Holds the states that a waiting command has looked up.
    #[cold]
    pub fn hold_states(&mut self, session: u64) {
        self.release(session);
        let mut held = std::mem::take(&mut self.lookups);
        held.sort_unstable();
        held.dedup();
        held.retain(|entry| !matches!(self.entries[*entry].content, ModelContent::Vacant));
        held.iter().for_each(|entry| self.entries[*entry].holds += 1);
        if !held.is_empty() {
            self.held.insert(session, held);
        }
    }

    /// Releases a command's states.
    #[inline]
    pub fn release_states(&mut self, session: u64) {
        if !self.held.is_empty() {
            self.release(session);
        }
    }

    #[cold]
    fn release(&mut self, session: u64) {
        for entry in self.held.remove(&session).into_iter().flatten() {
            self.entries[entry].holds -= 1;
        }
    }

    /// The session waits for the last state found cold; `false` without one.
    pub fn wait(&mut self, session: u64) -> bool {
        let Some(entry) = self.last_missed.take() else { return false };
        if let ModelContent::Loading { sessions, .. } = &mut self.entries[entry].content
            && !sessions.contains(&session)
        {
            sessions.push(session);
        }
        true
    }

    #[cold]
    pub fn is_awaited_by(&self, session: u64) -> bool {
        let held = self.held.get(&session).into_iter().flatten();
        held.map(|entry| &self.entries[*entry].content)
            .any(|content| matches!(content, ModelContent::Loading { sessions, .. } if sessions.contains(&session)))
    }

    /// Loads added since the last call.
    pub const fn loads(&mut self) -> &mut Vec<ModelLoad> {
        &mut self.loads
    }

    /// Sessions whose states have been loaded since the last call.
    pub const fn ready_sessions(&mut self) -> &mut Vec<u64> {
        &mut self.ready
    }

    /// Stores a loaded state.
    pub fn store_loaded(&mut self, types: &ModelTypes, LoadedModel { load, content }: LoadedModel) {
        let Some(at) = self.by_id.get(&load.model).and_then(|by_id| by_id.get(&load.id)).copied() else { return };
        let entry = &mut self.entries[at];
        let ModelContent::Loading { ticket, sessions } = &mut entry.content else { return };
        if *ticket != load.ticket {
            return;
        }
        self.ready.append(sessions);
        let behind = self.pending_changes.iter().filter(|(sequence, _)| *sequence > load.through);
        let broken = |reason: String| LoadFailure { reason, is_transient: false };
        let content = content.and_then(|mut state| {
            for (sequence, changes) in behind {
                let mut events = RecordedEvents::read(*sequence, changes).map_err(|error| broken(error.to_string()))?;
                while let Some(event) = events.next_event().map_err(|error| broken(error.to_string()))? {
                    if entry.filter.has(&event) {
                        apply_caught(&*types[entry.model], &mut state, &event).map_err(broken)?;
                    }
                }
            }
            Ok(state)
        });
        entry.content = content.map_or_else(ModelContent::Quarantined, ModelContent::State);
        self.end_load();
    }

    fn end_load(&mut self) {
        self.loading -= 1;
        if self.loading == 0 {
            self.pending_changes.clear();
            self.pending_bytes = 0;
        }
    }

    /// Evicts unused states beyond the limit. Call between two commands.
    #[inline]
    pub fn evict_excess(&mut self, indexed: u64) {
        if self.is_active() {
            self.last_missed = None;
            self.lookups.clear();
            self.unindexed.forget(indexed, self.filters.is_some());
            if self.entries.len() - self.free.len() > self.states_max {
                self.evict();
            }
        }
    }

    #[cold]
    fn evict(&mut self) {
        for _ in 0..EXAMINED_MAX {
            self.hand = if self.hand + 1 < self.entries.len() { self.hand + 1 } else { 0 };
            let entry = &mut self.entries[self.hand];
            let is_there = !matches!(entry.content, ModelContent::Vacant | ModelContent::Loading { .. });
            let may_go = is_there && entry.holds == 0;
            if may_go && !std::mem::replace(&mut entry.is_used, false) {
                self.remove(self.hand);
                if self.entries.len() - self.free.len() <= self.states_max {
                    return;
                }
            }
        }
    }

    fn remove(&mut self, at: usize) {
        let content = std::mem::replace(&mut self.entries[at].content, ModelContent::Vacant);
        if matches!(content, ModelContent::Loading { .. }) {
            self.end_load();
        }
        if std::mem::take(&mut self.entries[at].holds) > 0 {
            self.held.values_mut().for_each(|held| held.retain(|entry| *entry != at));
        }
        let entry = &mut self.entries[at];
        let (id, keys) = (std::mem::take(&mut entry.id), std::mem::take(&mut entry.keys));
        if let Some(by_id) = self.by_id.get_mut(&entry.model) {
            by_id.remove(&id);
        }
        for key in keys {
            if let Some(entries_by_key) = self.entries_by_key.get_mut(&key) {
                entries_by_key.retain(|other| *other != at);
                if entries_by_key.is_empty() {
                    self.entries_by_key.remove(&key);
                }
            }
        }
        self.free.push(at);
    }
}

fn apply_caught(
    model: &dyn ErasedDecisionModel,
    state: &mut ErasedState,
    event: &RecordedEvent<'_>,
) -> Result<(), String> {
    let applied = catch_unwind(AssertUnwindSafe(|| model.apply(state, event)));
    let reason = match applied {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it makes it panic".to_owned(),
    };
    Err(format!("{} and event {}: {reason}", model.name(), event.position))
}
