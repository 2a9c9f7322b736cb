//! [`Cache`]: the aggregates that are in memory.

use crate::aggregate::State;
use crate::identity::TypeKey;
use crate::model::Aggregates;
use crate::transaction::RecordedEvent;
use rustc_hash::FxHashMap;

/// Why an aggregate is not there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cold {
    /// It is to be folded anew first.
    Spoiled,
    /// The bytes are no identifier of its type.
    NoIdentifier,
    /// It cannot be made of its events, and why.
    Quarantined(String),
}

/// An aggregate's place in the cache, until the next call that removes any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// Behind the last one of a chain.
const NONE: u32 = u32::MAX;

/// The aggregates in memory: all that have events.
#[derive(Default)]
pub(crate) struct Cache {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// The first entry of each hash.
    first: FxHashMap<u64, u32>,
    /// Entries that are to be folded anew.
    spoiled: usize,
}

struct Entry {
    hash: u64,
    aggregate: TypeKey,
    id: Box<[u8]>,
    content: Content,
    /// Its events so far.
    version: u64,
    /// It is being folded anew.
    is_refolding: bool,
    /// The next one of the same hash.
    next: u32,
}

enum Content {
    State(State),
    Quarantined(String),
    /// It is folded anew.
    Spoiled,
    Vacant,
}

impl Cache {
    /// The aggregate of that type and identifier; one without events is made.
    #[inline]
    pub fn find(&mut self, aggregates: &Aggregates, index: usize, id: &[u8]) -> Result<Place, Cold> {
        let aggregate = aggregates.all[index].key();
        let hash = hash_of(aggregate, id);
        let mut place = self.first.get(&hash).copied().unwrap_or(NONE);
        while let Some(entry) = self.entries.get(place as usize) {
            if entry.aggregate == aggregate && *entry.id == *id {
                return match &entry.content {
                    Content::State(_) => Ok(Place(place)),
                    Content::Quarantined(reason) => Err(Cold::Quarantined(reason.clone())),
                    Content::Spoiled | Content::Vacant => Err(Cold::Spoiled),
                };
            }
            place = entry.next;
        }
        self.make(aggregates, index, (aggregate, hash), id)
    }

    #[cold]
    fn make(
        &mut self,
        aggregates: &Aggregates,
        index: usize,
        (aggregate, hash): (TypeKey, u64),
        id: &[u8],
    ) -> Result<Place, Cold> {
        let state = aggregates.all[index].create(id).ok_or(Cold::NoIdentifier)?;
        Ok(self.put(aggregate, hash, id, Content::State(state)))
    }

    fn put(&mut self, aggregate: TypeKey, hash: u64, id: &[u8], content: Content) -> Place {
        let next = self.first.get(&hash).copied().unwrap_or(NONE);
        let entry = Entry { hash, aggregate, id: id.into(), content, version: 0, is_refolding: false, next };
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
        self.first.insert(hash, place);
        Place(place)
    }

    /// Folds an event of the stream into its aggregate, which is made if it is not there; of another type nothing is folded. Events come in
    /// the order of the stream.
    pub fn fold(&mut self, aggregates: &Aggregates, event: &RecordedEvent<'_>) {
        let Some(index) = aggregates.find(event.aggregate) else { return };
        let place = match self.find(aggregates, index, event.id) {
            Ok(place) => place,
            Err(Cold::NoIdentifier) => {
                let reason = format!("{}: its bytes are no identifier of such an aggregate", event.position);
                let hash = hash_of(event.aggregate, event.id);
                self.put(event.aggregate, hash, event.id, Content::Quarantined(reason));
                return;
            }
            Err(Cold::Spoiled | Cold::Quarantined(_)) => return,
        };
        let entry = &mut self.entries[place.0 as usize];
        let Content::State(state) = &mut entry.content else { unreachable!("it was found") };
        let erased = &aggregates.all[index];
        let folded = if erased.event().key == event.event {
            erased.fold(state, event.version, event.payload).map_err(|error| error.to_string())
        } else {
            Err(format!("its type {:#010x} is not that of {}", event.event.0, erased.name()))
        };
        match folded {
            Ok(()) => self.note(place, 1),
            Err(reason) => entry.content = Content::Quarantined(format!("event {}: {reason}", event.position)),
        }
    }

    /// Whether some are to be folded anew.
    pub const fn has_spoiled(&self) -> bool {
        self.spoiled > 0
    }

    /// Forgets everything.
    #[cold]
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Begins to fold anew what is to be: what follows goes to [`Cache::refold`], from the beginning of the stream.
    #[cold]
    pub fn begin_refold(&mut self, aggregates: &Aggregates) {
        for entry in self.entries.iter_mut().filter(|entry| matches!(entry.content, Content::Spoiled)) {
            let made = aggregates.find(entry.aggregate).and_then(|index| aggregates.all[index].create(&entry.id));
            entry.content = Content::State(made.expect("it was made before"));
            (entry.version, entry.is_refolding) = (0, true);
        }
        self.spoiled = 0;
    }

    /// As [`Cache::fold`], for those alone that are folded anew.
    #[cold]
    pub fn refold(&mut self, aggregates: &Aggregates, event: &RecordedEvent<'_>) {
        let is_refolding =
            |entry: &Entry| entry.is_refolding && entry.aggregate == event.aggregate && *entry.id == *event.id;
        if self.entries.iter().any(is_refolding) {
            self.fold(aggregates, event);
        }
    }

    /// Everything is folded.
    #[cold]
    pub fn end_refold(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.is_refolding = false);
    }

    /// What cannot be folded anew, and why.
    #[cold]
    pub fn quarantine_refolding(&mut self, reason: &str) {
        for entry in self.entries.iter_mut().filter(|entry| entry.is_refolding) {
            entry.is_refolding = false;
            entry.content = Content::Quarantined(reason.to_owned());
        }
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

    /// It has got events, which are applied.
    #[inline]
    pub fn note(&mut self, place: Place, events: u64) {
        self.entries[place.0 as usize].version += events;
    }

    /// Its state is none any more: it is to be folded anew before it is used again.
    #[cold]
    pub fn spoil(&mut self, place: Place) {
        let entry = &mut self.entries[place.0 as usize];
        if !matches!(entry.content, Content::Vacant | Content::Spoiled) {
            entry.content = Content::Spoiled;
            self.spoiled += 1;
        }
    }

    /// Removes one that has no events.
    #[cold]
    pub fn drop_if_empty(&mut self, place: Place) {
        let entry = &self.entries[place.0 as usize];
        if entry.version > 0 || matches!(entry.content, Content::Vacant) {
            return;
        }
        self.spoiled -= usize::from(matches!(entry.content, Content::Spoiled));
        self.remove(place.0);
    }

    fn remove(&mut self, place: u32) {
        let Entry { hash, next, .. } = self.entries[place as usize];
        match self.first.get_mut(&hash) {
            Some(first) if *first == place && next == NONE => {
                self.first.remove(&hash);
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
        (entry.content, entry.id) = (Content::Vacant, Box::default());
        self.free.push(place);
    }
}

const IS_THERE: &str = "a place that was found has a state until the end of its command";

/// Of an aggregate in memory; in no file.
#[inline]
fn hash_of(aggregate: TypeKey, id: &[u8]) -> u64 {
    let mut hash = u64::from(aggregate.0) << 8 | id.len() as u64;
    for chunk in id.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = gapless_wire::split_mix::finish(hash ^ u64::from_le_bytes(word));
    }
    hash
}
