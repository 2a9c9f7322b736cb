//! [`Cache`]: the aggregates that are in memory.
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

/// Why an aggregate is not there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cold {
    /// It is being made of its events, or others have waited for that and come first.
    Loading,
    /// The bytes are no identifier of its type.
    NoIdentifier,
    /// It cannot be made of its events, and why.
    Quarantined(String),
}

/// An aggregate that is to be made of its events.
#[derive(Debug)]
pub(crate) struct Load {
    pub key: IndexKey,
    /// Of its type.
    pub index: usize,
    pub id: Box<[u8]>,
    /// All events up to here count.
    pub through: u64,
    /// Answers to what was asked before the cache was cleared are of no use.
    round: u64,
}

/// One that was made: its state, how many events it has had, and the sequence of the last; or why it cannot be.
pub(crate) struct Loaded {
    pub load: Load,
    pub content: Result<(State, u64, u64), NotLoaded>,
}

/// Why something cannot be made of its events.
#[derive(Clone, Debug)]
pub(crate) struct NotLoaded {
    pub reason: String,
    /// It is the disk: the next one who asks may have more luck.
    pub may_pass: bool,
}

/// A state that is to be kept in a file when its last event is released.
pub(crate) struct DueSnapshot {
    /// Of its type.
    pub index: usize,
    pub id: Box<[u8]>,
    pub state: State,
    pub version: u64,
    pub last_sequence: u64,
    /// Of that frame.
    pub last_time_ns: u64,
}

/// An aggregate's place in the cache, until the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// Behind the last one of a chain.
const NONE: u32 = u32::MAX;
/// States that wait to be kept in files, at most.
const SNAPSHOTS_MAX: usize = 256;
/// Aggregates that are looked at for one that may go.
const LOOKED_AT: usize = 64;

/// The aggregates in memory.
pub(crate) struct Cache {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// The first entry of each key.
    first: FxHashMap<IndexKey, u32>,
    /// Which aggregates have events; without it, those that are not here have none.
    filters: Option<Filters>,
    /// More than so many are let go.
    aggregates_max: usize,
    /// The next to be looked at for that.
    hand: usize,
    /// Events up to here may be of aggregates that are not here.
    cold_through: u64,
    /// What is to be asked for.
    loads: Vec<Load>,
    /// Found by the command that is decided, and not to be made by the disk's fault.
    passing: Vec<Place>,
    /// States that are to be kept in files.
    snapshots: Vec<DueSnapshot>,
    /// The aggregate that was missed last.
    missed: Option<Place>,
    /// How many are asked for.
    loading: usize,
    lines: Lines,
    /// Whose command is decided, and which.
    session: u64,
    number: u64,
    round: u64,
}

/// A short identifier, as most are, lies in the entry itself: it is compared for each command.
type EntryId = ShortBytes<22>;

struct Entry {
    key: IndexKey,
    aggregate: TypeKey,
    id: EntryId,
    content: Content,
    /// Its events so far.
    version: u64,
    /// The sequence of the last.
    last_sequence: u64,
    /// It was used since it was looked at.
    is_used: bool,
    /// The next one of the same key.
    next: u32,
}

enum Content {
    State(State),
    Quarantined(NotLoaded),
    /// It is asked for; these wait for it.
    Loading(Line),
    Vacant,
}

impl Cache {
    /// An empty one, for so many aggregates; without `filters` nothing is ever let go.
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

    /// The command of that session with that number is the next to be decided.
    #[inline]
    pub fn begin(&mut self, session: u64, number: u64) {
        (self.session, self.number) = (session, number);
    }

    /// It is decided.
    #[inline]
    pub fn end(&mut self) {
        if !self.lines.is_empty() {
            self.lines.decided(self.session, self.number);
        }
        if !self.passing.is_empty() {
            self.try_again();
        }
    }

    /// What could not be made of its events by the disk's fault is tried again for the next one who asks, if nobody else waits for it.
    #[cold]
    fn try_again(&mut self) {
        for Place(place) in std::mem::take(&mut self.passing) {
            let is_passing =
                matches!(self.entries[place as usize].content, Content::Quarantined(NotLoaded { may_pass: true, .. }));
            if is_passing && !self.lines.has(place) {
                // It is asked for where it may have events.
                let entry = &mut self.entries[place as usize];
                self.cold_through = self.cold_through.max(entry.last_sequence);
                self.remove(place);
            }
        }
    }

    /// Sessions whose aggregates have been made and whose turn it is, since the last call.
    #[inline]
    pub const fn ready(&mut self) -> &mut Vec<u64> {
        self.lines.ready()
    }

    /// Whether sessions have waited, and may have to be passed over.
    #[inline]
    pub fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Passes over sessions that do not come though it is their turn. `awaits_model` says which of them cannot, because of a decision model.
    #[cold]
    pub fn expire_lines(&mut self, now: Instant, awaits_model: impl Fn(u64) -> bool) {
        let loading = |place: u32| match self.entries.get(place as usize).map(|entry| &entry.content) {
            Some(Content::Loading(line)) => Some(line),
            _ => None,
        };
        self.lines.expire(now, loading, awaits_model);
    }

    /// How many are being made of their events.
    #[inline]
    pub const fn loading(&self) -> usize {
        self.loading
    }

    /// How many are in memory, or are being made.
    #[inline]
    pub const fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// The aggregate of that type and identifier; one without events is made.
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

    /// The command waits for the aggregate that was missed last.
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

    /// A command of this aggregate is not decided now, because another one of its session waits: it keeps its place before those that come later.
    #[cold]
    pub fn stand_in_line(&mut self, aggregates: &Aggregates, index: usize, id: &[u8]) {
        match self.find(aggregates, index, id) {
            Ok(place) => self.wait_for(place),
            Err(Cold::Loading) => self.wait(),
            // It will be told, unless the aggregate is let go before: then it waits, in the place that it has.
            Err(Cold::NoIdentifier | Cold::Quarantined(_)) => {}
        }
    }

    /// The command is not decided now, whatever it waits for: in each line that it joins later it stands where it would have from now on.
    #[cold]
    pub fn arrive(&mut self) {
        if mutant("forget_session_order") {
            return;
        }
        self.lines.arrive(self.session, self.number);
    }

    /// A session does not come any more.
    #[cold]
    pub fn gone(&mut self, session: u64) {
        self.lines.gone(session);
    }

    /// What is to be asked for since the last call.
    #[inline]
    pub const fn loads(&mut self) -> &mut Vec<Load> {
        &mut self.loads
    }

    /// Takes in an aggregate that was asked for.
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

    /// Lets aggregates go that were not used for long, if there are more than have room. Those with events behind `indexed`, which nobody would
    /// find, stay. To be called between two commands.
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

    /// From now on aggregates may have events up to that sequence that are not here.
    pub fn lead_behind(&mut self, sequence: u64) {
        self.cold_through = self.cold_through.max(sequence);
    }

    /// Lets go what is asked for, and what has got an event behind that sequence.
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

    /// Lets go what has this key.
    pub fn drop_key(&mut self, key: IndexKey) {
        while let Some(place) = self.first.get(&key).copied() {
            self.remove(place);
        }
    }

    /// Lets everything go. It comes back, for who has time to drop it.
    #[cold]
    pub fn clear(&mut self) -> impl Send + use<> {
        self.round += 1;
        self.loading = 0;
        self.loads.clear();
        self.lines.clear();
        (self.missed, self.hand) = (None, 0);
        (std::mem::take(&mut self.entries), std::mem::take(&mut self.first), std::mem::take(&mut self.free))
    }

    /// An aggregate's state, which is there.
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

    /// Its type and identifier.
    #[inline]
    pub fn name(&self, place: Place) -> (TypeKey, &[u8]) {
        let entry = &self.entries[place.0 as usize];
        (entry.aggregate, &entry.id)
    }

    /// It has got events at that sequence, which are applied. How many it has had.
    #[inline]
    pub fn note(&mut self, place: Place, events: u64, sequence: u64) -> u64 {
        let entry = &mut self.entries[place.0 as usize];
        entry.version += events;
        entry.last_sequence = sequence;
        entry.version
    }

    /// Its state is to be kept in a file.
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

    /// What is to be kept in files since the last call.
    #[inline]
    pub const fn snapshots(&mut self) -> &mut Vec<DueSnapshot> {
        &mut self.snapshots
    }

    /// Its state is none any more: it is made anew before it is used again.
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

    /// Removes one that has no events.
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
