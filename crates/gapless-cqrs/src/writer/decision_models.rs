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

use super::cache::{Cold, NotLoaded};
use super::unindexed::Unindexed;
use crate::aggregate::State;
use crate::decision_model::ErasedDecisionModel;
use crate::event_filter::EventFilter;
use crate::identity::Position;
use crate::store::{Filters, IndexKey, first_keys_of, keys_of};
use crate::transaction::{RecordedEvent, RecordedEvents};
use gapless_wire::fields::FieldError;
use rustc_hash::FxHashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub(crate) type Types = [Arc<dyn ErasedDecisionModel>];

pub(crate) struct ModelLoad {
    /// Index of its type.
    pub model: usize,
    pub id: Box<[u8]>,
    /// Position of the first event to fold.
    pub from: Position,
    /// Sequence of the last event to fold.
    pub through: u64,
    /// Ticket of the entry. A result with another ticket is outdated.
    ticket: u64,
}

/// A loaded state, or why it cannot be loaded.
pub(crate) struct LoadedModel {
    pub load: ModelLoad,
    pub content: Result<State, NotLoaded>,
}

/// Most bytes of transactions kept for states that are being loaded. Beyond, the loads start again.
const BEHIND_MAX: usize = 16 << 20;
/// Entries examined for eviction by one call.
const LOOKED_AT: usize = 64;

pub(crate) struct DecisionModels {
    entries: Vec<Entry>,
    free: Vec<usize>,
    /// Entries by type and identifier.
    by_id: FxHashMap<usize, FxHashMap<Box<[u8]>, usize>>,
    /// Entries that an event with this key may change.
    interested: FxHashMap<IndexKey, Vec<usize>>,
    /// Keys in the index.
    filters: Option<Filters>,
    /// Keys that the index may not have yet.
    unindexed: Unindexed,
    /// Limit above which entries are evicted.
    states_max: usize,
    /// Next entry to be examined for eviction.
    hand: usize,
    loads: Vec<ModelLoad>,
    loading: usize,
    next_ticket: u64,
    /// Transactions that change states being loaded, with their sequences, and their length together.
    behind: Vec<(u64, Box<[u8]>)>,
    behind_length: usize,
    /// The last state that was found cold.
    missed: Option<usize>,
    /// Sessions whose states have been loaded.
    ready: Vec<u64>,
    /// States read by the running handler, with its own events applied.
    shown: Vec<Shown>,
    /// States looked up by the current command.
    looked: Vec<usize>,
    /// States looked up by waiting commands, by session. They stay until the commands are decided, whatever the limit.
    held: FxHashMap<u64, Vec<usize>>,
}

struct Entry {
    model: usize,
    id: Box<[u8]>,
    filter: EventFilter,
    keys: Vec<IndexKey>,
    /// Position of the first event that counts.
    from: Position,
    content: Content,
    is_used: bool,
    /// Number of waiting sessions that hold it.
    holds: u32,
}

enum Content {
    State(State),
    Quarantined(NotLoaded),
    /// Being loaded; these sessions wait for it.
    Loading {
        ticket: u64,
        sessions: Vec<u64>,
    },
    Vacant,
}

/// A state that the handler has read, with that many of its own events applied.
struct Shown {
    entry: usize,
    events: usize,
    /// Copy from before the first of these events.
    before: Option<State>,
}

impl DecisionModels {
    /// No states yet. At most `states_max`, besides those that waiting commands hold. Without `filters` nothing is ever
    /// evicted.
    pub fn new(filters: Option<Filters>, states_max: usize) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            by_id: FxHashMap::default(),
            interested: FxHashMap::default(),
            states_max: if filters.is_some() { states_max } else { usize::MAX },
            filters,
            unindexed: Unindexed::default(),
            hand: 0,
            loads: Vec::new(),
            loading: 0,
            next_ticket: 0,
            behind: Vec::new(),
            behind_length: 0,
            missed: None,
            ready: Vec::new(),
            shown: Vec::new(),
            looked: Vec::new(),
            held: FxHashMap::default(),
        }
    }

    /// Events before this sequence are deleted, or may be at any time; 0 if none are.
    pub fn deleted_before(&self) -> u64 {
        self.filters.as_ref().map_or(0, Filters::deleted_before)
    }

    /// Whether decided events have to be reported by [`DecisionModels::decided`].
    #[inline]
    pub const fn is_active(&self) -> bool {
        self.unindexed.is_active()
    }

    /// Drops all states. All events after `sequence` will be reported.
    pub fn begin_behind(&mut self, sequence: u64) {
        self.clear();
        self.unindexed.begin_behind(sequence);
    }

    /// Drops all states.
    pub fn clear(&mut self) {
        let (filters, states_max, next_ticket) = (self.filters.take(), self.states_max, self.next_ticket);
        *self = Self { states_max, next_ticket, ..Self::new(filters, states_max) };
    }

    /// Finds a state, folded from all events from `from` up to `tail`.
    pub fn find(
        &mut self,
        types: &Types,
        (model, id): (usize, &[u8]),
        from: Position,
        tail: u64,
    ) -> Result<usize, Cold> {
        if !self.is_active() {
            self.unindexed.begin_behind(tail);
        }
        if let Some(entry) = self.by_id.get(&model).and_then(|by_id| by_id.get(id)).copied() {
            let found = &mut self.entries[entry];
            found.is_used = true;
            if from >= found.from {
                self.looked.push(entry);
                return match &found.content {
                    Content::State(_) => Ok(entry),
                    Content::Quarantined(NotLoaded { reason, may_pass }) => {
                        let (cold, may_pass) = (Cold::Quarantined(reason.clone()), *may_pass);
                        if may_pass {
                            // The next command tries again.
                            self.remove(entry);
                        }
                        Err(cold)
                    }
                    Content::Loading { .. } | Content::Vacant => {
                        self.missed = Some(entry);
                        Err(Cold::Loading)
                    }
                };
            }
            // The entry has fewer events than are asked for now.
            if let Content::Loading { sessions, .. } = &mut found.content {
                self.ready.append(sessions);
            }
            self.remove(entry);
        }
        self.make(types, (model, id), from, tail)
    }

    #[cold]
    fn make(&mut self, types: &Types, (model, id): (usize, &[u8]), from: Position, tail: u64) -> Result<usize, Cold> {
        let (state, filter) = types[model].create(id).ok_or(Cold::NoIdentifier)?;
        let keys: Vec<_> = first_keys_of(&filter).collect();
        let is_empty = from.sequence > tail || !self.may_have(&keys);
        let content = if is_empty { Content::State(state) } else { self.load(model, id, from, tail) };
        let entry = Entry { model, id: id.into(), filter, keys, from, content, is_used: true, holds: 0 };
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
            self.interested.entry(*key).or_default().push(at);
        }
        self.looked.push(at);
        if is_empty {
            return Ok(at);
        }
        self.missed = Some(at);
        Err(Cold::Loading)
    }

    /// Whether there may be events with one of the keys.
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

    fn load(&mut self, model: usize, id: &[u8], from: Position, through: u64) -> Content {
        let ticket = self.next_ticket;
        (self.next_ticket, self.loading) = (ticket + 1, self.loading + 1);
        self.loads.push(ModelLoad { model, id: id.into(), from, through, ticket });
        Content::Loading { ticket, sessions: Vec::new() }
    }

    pub fn state(&self, entry: usize) -> &State {
        match &self.entries[entry].content {
            Content::State(state) => state,
            _ => unreachable!("it was found"),
        }
    }

    /// Applies the handler's events so far, those of `transaction`, to a state that the handler reads.
    ///
    /// # Errors
    /// An event cannot be applied.
    pub fn show(
        &mut self,
        types: &Types,
        entry: usize,
        transaction: Result<RecordedEvents<'_>, FieldError>,
    ) -> Result<(), String> {
        let at = self.shown.iter().position(|shown| shown.entry == entry).unwrap_or_else(|| {
            self.shown.push(Shown { entry, events: 0, before: None });
            self.shown.len() - 1
        });
        let (shown, entry) = (&mut self.shown[at], &mut self.entries[entry]);
        let mut events = transaction.map_err(|error| error.to_string())?;
        let mut count = 0;
        while let Some(event) = events.next_event().map_err(|error| error.to_string())? {
            count += 1;
            if count <= shown.events || !entry.filter.has(&event) {
                continue;
            }
            let Content::State(state) = &mut entry.content else { unreachable!("it was found") };
            shown.before.get_or_insert_with(|| types[entry.model].copy(state));
            types[entry.model].apply(state, &event).map_err(|error| error.to_string())?;
        }
        shown.events = count;
        Ok(())
    }

    /// Drops the handler's events from all states.
    pub fn undo(&mut self) {
        for Shown { entry, before, .. } in self.shown.drain(..) {
            if let Some(before) = before {
                self.entries[entry].content = Content::State(before);
            }
        }
    }

    /// Applies the events of a decided transaction.
    ///
    /// # Panics
    /// If the writer's own bytes do not decode.
    #[cold]
    pub fn decided(&mut self, types: &Types, sequence: u64, changes: &[u8]) {
        let mut events = RecordedEvents::read(sequence, changes).expect("the writer has written them");
        let mut changed: Vec<usize> = Vec::new();
        let (mut is_behind, mut ordinal) = (false, 0);
        while let Some(event) = events.next_event().expect("the writer has written them") {
            changed.clear();
            for key in keys_of(&event) {
                self.unindexed.add(key, sequence);
                changed.extend(self.interested.get(&key).into_iter().flatten());
            }
            changed.sort_unstable();
            changed.dedup();
            for at in changed.iter().copied() {
                let is_shown = self.shown.iter().any(|shown| shown.entry == at && ordinal < shown.events);
                let entry = &mut self.entries[at];
                match &mut entry.content {
                    Content::State(state) if !is_shown && entry.filter.has(&event) => {
                        if let Err(reason) = applied(&*types[entry.model], state, &event) {
                            entry.content = Content::Quarantined(NotLoaded { reason, may_pass: false });
                        }
                    }
                    Content::Loading { .. } => is_behind |= entry.filter.has(&event),
                    _ => {}
                }
            }
            ordinal += 1;
        }
        self.shown.clear();
        if is_behind {
            self.behind.push((sequence, changes.into()));
            self.behind_length += changes.len();
            if self.behind_length > BEHIND_MAX {
                self.load_anew(sequence);
            }
        }
    }

    /// Starts all loads again, up to `through`, because too many events were decided meanwhile.
    fn load_anew(&mut self, through: u64) {
        self.behind.clear();
        (self.behind_length, self.loading) = (0, 0);
        for at in 0..self.entries.len() {
            if let Content::Loading { sessions, .. } = &mut self.entries[at].content {
                let waiting = std::mem::take(sessions);
                let Entry { model, from, .. } = self.entries[at];
                let id = self.entries[at].id.clone();
                let mut content = self.load(model, &id, from, through);
                if let Content::Loading { sessions, .. } = &mut content {
                    *sessions = waiting;
                }
                self.entries[at].content = content;
            }
        }
    }

    /// Holds the states that a waiting command has looked up.
    #[cold]
    pub fn hold(&mut self, session: u64) {
        self.release(session);
        let mut held = std::mem::take(&mut self.looked);
        held.sort_unstable();
        held.dedup();
        held.retain(|entry| !matches!(self.entries[*entry].content, Content::Vacant));
        held.iter().for_each(|entry| self.entries[*entry].holds += 1);
        if !held.is_empty() {
            self.held.insert(session, held);
        }
    }

    /// Releases the states of a command that waits no more.
    #[inline]
    pub fn end(&mut self, session: u64) {
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

    /// Makes a session wait for the state that was found cold last; `false` without one.
    pub fn wait(&mut self, session: u64) -> bool {
        let Some(entry) = self.missed.take() else { return false };
        if let Content::Loading { sessions, .. } = &mut self.entries[entry].content
            && !sessions.contains(&session)
        {
            sessions.push(session);
        }
        true
    }

    #[cold]
    pub fn awaits(&self, session: u64) -> bool {
        let held = self.held.get(&session).into_iter().flatten();
        held.map(|entry| &self.entries[*entry].content)
            .any(|content| matches!(content, Content::Loading { sessions, .. } if sessions.contains(&session)))
    }

    /// Loads that were added since the last call.
    pub const fn loads(&mut self) -> &mut Vec<ModelLoad> {
        &mut self.loads
    }

    /// Sessions whose states have been loaded since the last call.
    pub const fn ready(&mut self) -> &mut Vec<u64> {
        &mut self.ready
    }

    /// Stores a loaded state.
    pub fn loaded(&mut self, types: &Types, LoadedModel { load, content }: LoadedModel) {
        let Some(at) = self.by_id.get(&load.model).and_then(|by_id| by_id.get(&load.id)).copied() else { return };
        let entry = &mut self.entries[at];
        let Content::Loading { ticket, sessions } = &mut entry.content else { return };
        if *ticket != load.ticket {
            return;
        }
        self.ready.append(sessions);
        let behind = self.behind.iter().filter(|(sequence, _)| *sequence > load.through);
        let broken = |reason: String| NotLoaded { reason, may_pass: false };
        let content = content.and_then(|mut state| {
            for (sequence, changes) in behind {
                let mut events = RecordedEvents::read(*sequence, changes).map_err(|error| broken(error.to_string()))?;
                while let Some(event) = events.next_event().map_err(|error| broken(error.to_string()))? {
                    if entry.filter.has(&event) {
                        applied(&*types[entry.model], &mut state, &event).map_err(broken)?;
                    }
                }
            }
            Ok(state)
        });
        entry.content = content.map_or_else(Content::Quarantined, Content::State);
        self.end_load();
    }

    fn end_load(&mut self) {
        self.loading -= 1;
        if self.loading == 0 {
            self.behind.clear();
            self.behind_length = 0;
        }
    }

    /// Evicts states that were not used lately, if there are too many. Call between two commands.
    #[inline]
    pub fn make_room(&mut self, indexed: u64) {
        if self.is_active() {
            self.missed = None;
            self.looked.clear();
            self.unindexed.forget(indexed, self.filters.is_some());
            if self.entries.len() - self.free.len() > self.states_max {
                self.let_go();
            }
        }
    }

    #[cold]
    fn let_go(&mut self) {
        for _ in 0..LOOKED_AT {
            self.hand = if self.hand + 1 < self.entries.len() { self.hand + 1 } else { 0 };
            let entry = &mut self.entries[self.hand];
            let is_there = !matches!(entry.content, Content::Vacant | Content::Loading { .. });
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
        let content = std::mem::replace(&mut self.entries[at].content, Content::Vacant);
        if matches!(content, Content::Loading { .. }) {
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
            if let Some(interested) = self.interested.get_mut(&key) {
                interested.retain(|other| *other != at);
                if interested.is_empty() {
                    self.interested.remove(&key);
                }
            }
        }
        self.free.push(at);
    }
}

/// Applies an event to a state. An error says why the state is unusable from now on.
fn applied(model: &dyn ErasedDecisionModel, state: &mut State, event: &RecordedEvent<'_>) -> Result<(), String> {
    let applied = catch_unwind(AssertUnwindSafe(|| model.apply(state, event)));
    let reason = match applied {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it makes it panic".to_owned(),
    };
    Err(format!("{} and event {}: {reason}", model.name(), event.position))
}
