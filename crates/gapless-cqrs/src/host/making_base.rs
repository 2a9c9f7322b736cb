//! [`MakingBase`]: the states of all aggregates that have events before a sequence, written into one file: those of the base before that, and what
//! has happened since.
//!
//! The stream is read once for so many aggregates as may be in memory, by ranges of their keys, which are hashes: each reading makes those of the next
//! range, and leaves out the upper half of it where there are too many.

use super::deletion_error::DeletionError;
use super::folding::{LoadError, of_base};
use crate::aggregate::{ErasedAggregate, OldEvent, State};
use crate::events::{Advanced, EventReader};
use crate::identity::{Position, TypeKey};
use crate::store::{Base, BaseEntries, BaseEntry, BaseWriter, IndexKey};
use crate::transaction::RecordedEvent;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// See the head of the file.
pub(super) struct MakingBase<'a> {
    pub aggregates: &'a [Box<dyn ErasedAggregate>],
    pub old: Option<&'a Base>,
    pub reader: &'a mut EventReader,
    /// All events before this sequence count.
    pub before: u64,
    /// States in memory at most, about.
    pub aggregates_max: usize,
}

/// An aggregate that has events behind the old base.
struct Folded {
    aggregate: TypeKey,
    id: Box<[u8]>,
    /// Of its type.
    index: usize,
    state: State,
    version: u64,
    last_sequence: u64,
}

/// The aggregates of a range of keys.
type Range = FxHashMap<IndexKey, Vec<Folded>>;

/// The entries of the old base, and the one that is next.
struct Old<'a> {
    entries: Option<BaseEntries<'a>>,
    next: Option<BaseEntry>,
}

impl Old<'_> {
    fn advance(&mut self) -> Result<Option<BaseEntry>, DeletionError> {
        let next = self.entries.as_mut().map(BaseEntries::next).transpose()?.flatten();
        Ok(std::mem::replace(&mut self.next, next))
    }
}

impl MakingBase<'_> {
    /// Writes it in that folder, on the device, in the place of none.
    ///
    /// # Errors
    /// An aggregate without a state, or whose events cannot be read; the disk. Nothing of it is there then.
    pub fn write(mut self, folder: &Path, stream_id: u128) -> Result<Base, DeletionError> {
        let last_sequence = self.before - 1;
        let time_ns =
            self.reader.time_of(last_sequence)?.ok_or(DeletionError::NotReleased { sequence: last_sequence })?;
        let written = |error| DeletionError::Write { path: folder.to_owned(), error };
        let mut old = Old { entries: self.old.map(Base::entries), next: None };
        old.advance()?;
        let mut writer = None;
        let mut from = IndexKey(0);
        loop {
            let (range, until) = self.range(from, writer.is_none())?;
            // Only now it is known that every type keeps states.
            let writer = match &mut writer {
                Some(writer) => writer,
                none => none.insert(BaseWriter::begin(folder, stream_id, self.before, time_ns).map_err(written)?),
            };
            for entry in self.entries_of(range)? {
                while old.next.as_ref().is_some_and(|next| next.order() < entry.order()) {
                    put(writer, old.advance()?.as_ref(), folder)?;
                }
                if old.next.as_ref().is_some_and(|next| next.order() == entry.order()) {
                    old.advance()?;
                }
                put(writer, Some(&entry), folder)?;
            }
            let Some(until) = until else { break };
            from = until;
        }
        let mut writer = writer.expect("a range was read");
        while let Some(entry) = old.advance()? {
            put(&mut writer, Some(&entry), folder)?;
        }
        writer.finish().map_err(written)
    }

    /// Makes the aggregates from that key on, and says where the next range begins, if there is one. The first look is at all types, too.
    fn range(&mut self, from: IndexKey, is_first: bool) -> Result<(Range, Option<IndexKey>), DeletionError> {
        let by_type: FxHashMap<_, _> =
            self.aggregates.iter().enumerate().map(|(index, aggregate)| (aggregate.key(), index)).collect();
        self.reader.seek(Position { sequence: self.old.map_or(1, |base| base.before), ordinal: 0 });
        let (mut range, mut count, mut until) = (Range::default(), 0, None);
        let mut without: BTreeMap<TypeKey, FxHashSet<IndexKey>> = BTreeMap::new();
        while self.reader.next_sequence() < self.before {
            match self.reader.advance(usize::MAX)? {
                Advanced::Transaction => {}
                Advanced::Frames => continue,
                // Behind the last event there may be frames without any.
                Advanced::End if self.reader.next_sequence() >= self.before => break,
                Advanced::End => return Err(DeletionError::NotReleased { sequence: self.reader.next_sequence() }),
            }
            if self.reader.found_sequence() >= self.before {
                break;
            }
            let mut transaction = self.reader.transaction()?;
            while let Some(event) = transaction.next_event()? {
                if event.aggregate == TypeKey::NONE {
                    continue;
                }
                let key = IndexKey::of_aggregate(event.aggregate, event.id);
                let index = by_type.get(&event.aggregate).copied();
                let Some(index) = index.filter(|index| self.aggregates[*index].state_files().is_some()) else {
                    without.entry(event.aggregate).or_default().insert(key);
                    continue;
                };
                // There will be a refusal, and the others need not be made.
                if !without.is_empty() || key < from || until.is_some_and(|until| key >= until) {
                    continue;
                }
                count += usize::from(fold(&*self.aggregates[index], index, self.old, &mut range, key, &event)?);
            }
            if count > self.aggregates_max.max(1) {
                (count, until) = leave_out(&mut range, until);
            }
        }
        if is_first && !without.is_empty() {
            return Err(self.without_states(&without));
        }
        Ok((range, until))
    }

    #[cold]
    fn without_states(&self, without: &BTreeMap<TypeKey, FxHashSet<IndexKey>>) -> DeletionError {
        let name = |key: TypeKey| match self.aggregates.iter().find(|aggregate| aggregate.key() == key) {
            Some(aggregate) => aggregate.name().to_owned(),
            None => format!("{:#010x}, which the model does not have", key.0),
        };
        let types = without.iter().map(|(key, keys)| (name(*key), keys.len() as u64));
        DeletionError::WithoutStates { types: types.collect() }
    }

    /// The entries of a range, in their order.
    fn entries_of(&self, range: Range) -> Result<Vec<BaseEntry>, DeletionError> {
        let mut entries = Vec::new();
        for (key, folded) in range {
            for Folded { aggregate, id, index, state, version, last_sequence } in folded {
                let erased = &*self.aggregates[index];
                let files = erased.state_files().expect("it was looked at");
                let mut bytes = Vec::new();
                let reason = match catch_unwind(AssertUnwindSafe(|| (files.encode)(&state, &mut bytes))) {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(error.to_string()),
                    Err(_) => Some("it panics".to_owned()),
                };
                if let Some(reason) = reason {
                    return Err(not_made(erased, &id, format!("its state cannot be encoded: {reason}")));
                }
                entries.push(BaseEntry {
                    key,
                    aggregate,
                    id,
                    state_version: files.version,
                    state_layout: files.layout,
                    version,
                    last_sequence,
                    state: bytes,
                });
            }
        }
        entries.sort_unstable_by(|a, b| a.order().cmp(&b.order()));
        Ok(entries)
    }
}

fn put(writer: &mut BaseWriter, entry: Option<&BaseEntry>, folder: &Path) -> Result<(), DeletionError> {
    let put = entry.map_or(Ok(()), |entry| writer.put(entry));
    put.map_err(|error| DeletionError::Write { path: folder.to_owned(), error })
}

/// Changes an aggregate of the range by an event. Whether it was not there before.
fn fold(
    erased: &dyn ErasedAggregate,
    index: usize,
    old: Option<&Base>,
    range: &mut Range,
    key: IndexKey,
    event: &RecordedEvent<'_>,
) -> Result<bool, DeletionError> {
    let same = range.entry(key).or_default();
    let place = same.iter().position(|folded| folded.aggregate == event.aggregate && *folded.id == *event.id);
    let at = place.unwrap_or(same.len());
    if place.is_none() {
        let made = match old.map(|base| of_base(base, erased, event.id)).transpose() {
            Ok(found) => found.flatten(),
            Err(LoadError::Never(reason) | LoadError::Stream(reason) | LoadError::Shortage(reason)) => {
                return Err(not_made(erased, event.id, reason));
            }
            Err(LoadError::Index(error)) => return Err(not_made(erased, event.id, error.to_string())),
        };
        let (state, version, last_sequence) = match made {
            Some((state, snapshot)) => (state, snapshot.version, snapshot.last_sequence),
            None => {
                let state = erased.create(event.id);
                let none = || not_made(erased, event.id, "its bytes are no identifier of its type".to_owned());
                (state.ok_or_else(none)?, 0, 0)
            }
        };
        same.push(Folded { aggregate: event.aggregate, id: event.id.into(), index, state, version, last_sequence });
    }
    let folded = &mut same[at];
    let old_event = OldEvent { event: event.event, version: event.version, payload: event.payload };
    match catch_unwind(AssertUnwindSafe(|| erased.fold(&mut folded.state, &old_event))) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(not_made(erased, event.id, format!("event {}: {error}", event.position))),
        Err(_) => return Err(not_made(erased, event.id, format!("event {} makes it panic", event.position))),
    }
    folded.version += 1;
    folded.last_sequence = event.position.sequence;
    Ok(place.is_none())
}

#[cold]
fn not_made(erased: &dyn ErasedAggregate, id: &[u8], reason: String) -> DeletionError {
    DeletionError::Aggregate { name: erased.name(), id: id.to_vec(), reason }
}

/// Leaves out the upper half of a range: how many there are left, and where the next range begins.
#[cold]
fn leave_out(range: &mut Range, until: Option<IndexKey>) -> (usize, Option<IndexKey>) {
    let mut keys: Vec<_> = range.keys().copied().collect();
    let middle = keys.len() / 2;
    let (_, middle, _) = keys.select_nth_unstable(middle);
    let middle = *middle;
    // Aggregates with one hash are not parted.
    if keys.iter().all(|key| *key >= middle) {
        return (0, until);
    }
    range.retain(|key, _| *key < middle);
    (range.values().map(Vec::len).sum(), Some(middle))
}
