//! [`BaseBuilder`]: writes the states of all aggregates with events before a sequence. Each pass folds a range of keys
//! (hashes), and leaves out its upper half while it exceeds the memory.

use super::deletion_error::DeletionError;
use super::state_builder::{LoadError, from_base};
use crate::aggregate::{ErasedAggregate, ErasedState, OldEvent};
use crate::events::{AdvanceResult, EventReader};
use crate::identity::{Position, TypeKey};
use crate::store::{BaseEntries, BaseEntry, BaseFile, BaseWriter, IndexKey};
use crate::transaction::RecordedEvent;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

pub(super) struct BaseBuilder<'a> {
    pub aggregates: &'a [Box<dyn ErasedAggregate>],
    pub old: Option<&'a BaseFile>,
    pub reader: &'a mut EventReader,
    /// Sequence after the last event to fold.
    pub before: u64,
    /// Approximate limit.
    pub aggregates_max: usize,
}

struct FoldedAggregate {
    aggregate: TypeKey,
    id: Box<[u8]>,
    index: usize,
    state: ErasedState,
    version: u64,
    last_sequence: u64,
}

type KeyRange = FxHashMap<IndexKey, Vec<FoldedAggregate>>;

struct OldBase<'a> {
    entries: Option<BaseEntries<'a>>,
    next: Option<BaseEntry>,
}

impl OldBase<'_> {
    fn advance(&mut self) -> Result<Option<BaseEntry>, DeletionError> {
        let next = self.entries.as_mut().map(BaseEntries::next).transpose()?.flatten();
        Ok(std::mem::replace(&mut self.next, next))
    }
}

impl BaseBuilder<'_> {
    /// Writes and syncs the base in a folder; replaces no file.
    ///
    /// # Errors
    /// An aggregate without a state, or with unreadable events; an error of the disk. No file is left then.
    pub fn write(mut self, folder: &Path, stream_id: u128) -> Result<BaseFile, DeletionError> {
        let last_sequence = self.before - 1;
        let time_ns =
            self.reader.time_of(last_sequence)?.ok_or(DeletionError::NotReleased { sequence: last_sequence })?;
        let written = |error| DeletionError::Write { path: folder.to_owned(), error };
        let mut old = OldBase { entries: self.old.map(BaseFile::entries), next: None };
        old.advance()?;
        let mut writer = None;
        let mut from = IndexKey(0);
        loop {
            let (range, until) = self.range(from, writer.is_none())?;
            // Every type is known to keep states only after the first range.
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

    /// Folds the aggregates from key `from` on; returns the start of the next range. The first pass checks all types.
    fn range(&mut self, from: IndexKey, is_first: bool) -> Result<(KeyRange, Option<IndexKey>), DeletionError> {
        let by_type: FxHashMap<_, _> =
            self.aggregates.iter().enumerate().map(|(index, aggregate)| (aggregate.key(), index)).collect();
        self.reader.seek(Position { sequence: self.old.map_or(1, |base| base.before), ordinal: 0 });
        let (mut range, mut count, mut until) = (KeyRange::default(), 0, None);
        let mut without: BTreeMap<TypeKey, FxHashSet<IndexKey>> = BTreeMap::new();
        while self.reader.next_sequence() < self.before {
            match self.reader.advance(usize::MAX)? {
                AdvanceResult::Transaction => {}
                AdvanceResult::Frames => continue,
                // Frames without events may follow the last event.
                AdvanceResult::End if self.reader.next_sequence() >= self.before => break,
                AdvanceResult::End => return Err(DeletionError::NotReleased { sequence: self.reader.next_sequence() }),
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
                let Some(index) = index.filter(|index| self.aggregates[*index].snapshot_format().is_some()) else {
                    without.entry(event.aggregate).or_default().insert(key);
                    continue;
                };
                // With an aggregate without snapshots the deletion will be refused, so the others need no fold. Keys
                // outside the range have their own pass.
                if !without.is_empty() || key < from || until.is_some_and(|until| key >= until) {
                    continue;
                }
                count += usize::from(fold(&*self.aggregates[index], index, self.old, &mut range, key, &event)?);
            }
            if count > self.aggregates_max.max(1) {
                (count, until) = drop_upper_half(&mut range, until);
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

    fn entries_of(&self, range: KeyRange) -> Result<Vec<BaseEntry>, DeletionError> {
        let mut entries = Vec::new();
        for (key, folded) in range {
            for FoldedAggregate { aggregate, id, index, state, version, last_sequence } in folded {
                let erased = &*self.aggregates[index];
                let files = erased.snapshot_format().expect("it was looked at");
                let mut bytes = Vec::new();
                let reason = match catch_unwind(AssertUnwindSafe(|| (files.encode)(&state, &mut bytes))) {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(error.to_string()),
                    Err(_) => Some("it panics".to_owned()),
                };
                if let Some(reason) = reason {
                    return Err(unusable_aggregate(erased, &id, format!("its state cannot be encoded: {reason}")));
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

fn fold(
    erased: &dyn ErasedAggregate,
    index: usize,
    old: Option<&BaseFile>,
    range: &mut KeyRange,
    key: IndexKey,
    event: &RecordedEvent<'_>,
) -> Result<bool, DeletionError> {
    let same = range.entry(key).or_default();
    let place = same.iter().position(|folded| folded.aggregate == event.aggregate && *folded.id == *event.id);
    let at = place.unwrap_or(same.len());
    if place.is_none() {
        let base_state = match old.map(|base| from_base(base, erased, event.id)).transpose() {
            Ok(found) => found.flatten(),
            Err(LoadError::Never(reason) | LoadError::Stream(reason) | LoadError::Shortage(reason)) => {
                return Err(unusable_aggregate(erased, event.id, reason));
            }
            Err(LoadError::Index(error)) => return Err(unusable_aggregate(erased, event.id, error.to_string())),
        };
        let (state, version, last_sequence) = match base_state {
            Some((state, snapshot)) => (state, snapshot.version, snapshot.last_sequence),
            None => {
                let state = erased.create(event.id);
                let none =
                    || unusable_aggregate(erased, event.id, "its bytes are no identifier of its type".to_owned());
                (state.ok_or_else(none)?, 0, 0)
            }
        };
        same.push(FoldedAggregate {
            aggregate: event.aggregate,
            id: event.id.into(),
            index,
            state,
            version,
            last_sequence,
        });
    }
    let folded = &mut same[at];
    let old_event = OldEvent { event: event.event, version: event.version, payload: event.payload };
    match catch_unwind(AssertUnwindSafe(|| erased.fold(&mut folded.state, &old_event))) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            return Err(unusable_aggregate(erased, event.id, format!("event {}: {error}", event.position)));
        }
        Err(_) => return Err(unusable_aggregate(erased, event.id, format!("event {} makes it panic", event.position))),
    }
    folded.version += 1;
    folded.last_sequence = event.position.sequence;
    Ok(place.is_none())
}

#[cold]
fn unusable_aggregate(erased: &dyn ErasedAggregate, id: &[u8], reason: String) -> DeletionError {
    DeletionError::Aggregate { name: erased.name(), id: id.to_vec(), reason }
}

/// Returns the number of remaining aggregates, and the start of the next range.
#[cold]
fn drop_upper_half(range: &mut KeyRange, until: Option<IndexKey>) -> (usize, Option<IndexKey>) {
    let mut keys: Vec<_> = range.keys().copied().collect();
    let middle = keys.len() / 2;
    let (_, middle, _) = keys.select_nth_unstable(middle);
    let middle = *middle;
    // Aggregates with the same hash stay together.
    if keys.iter().all(|key| *key >= middle) {
        return (0, until);
    }
    range.retain(|key, _| *key < middle);
    (range.values().map(Vec::len).sum(), Some(middle))
}
