//! `StateBuilder`: builds aggregates and decision models from their events.

use crate::aggregate::{ErasedAggregate, ErasedState, OldEvent, SnapshotFormat};
use crate::decision_model::ErasedDecisionModel;
use crate::error::IndexFileError;
use crate::event_filter::EventFilter;
use crate::events::{EventReader, ReadError};
use crate::identity::Position;
use crate::names::TypeNames;
use crate::snapshots::{Snapshot, SnapshotFiles};
use crate::store::{BaseEntry, BaseFile, EventIndex, FilterSearch};
use crate::transaction::RecordedEvent;
use crate::writer::{AggregateLoad, DueSnapshot, ModelLoad};
use gapless_agent::shortage::is_shortage;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

pub(super) struct StateBuilder<'a> {
    /// `None` without a journal: the whole stream is read.
    pub index: Option<&'a EventIndex>,
    pub reader: &'a mut EventReader,
    pub aggregates: &'a [Box<dyn ErasedAggregate>],
    pub decision_models: &'a [Arc<dyn ErasedDecisionModel>],
    pub names: &'a TypeNames,
    pub snapshots: Option<&'a SnapshotFiles>,
}

pub(super) enum LoadError {
    /// Damaged index: tried again after its rebuild.
    Index(IndexFileError),
    Stream(String),
    Shortage(String),
    Never(String),
}

impl StateBuilder<'_> {
    /// State, version and last sequence.
    pub fn build_aggregate(&mut self, load: &AggregateLoad) -> Result<(ErasedState, u64, u64), LoadError> {
        loop {
            let before = self.deleted_before();
            match self.fold_events(load) {
                Err(LoadError::Stream(_)) if self.deleted_before() > before => {}
                made => return made,
            }
        }
    }

    fn deleted_before(&self) -> u64 {
        self.index.map_or(0, EventIndex::deleted_before)
    }

    fn fold_events(&mut self, load: &AggregateLoad) -> Result<(ErasedState, u64, u64), LoadError> {
        let begun = Instant::now();
        let aggregate = &*self.aggregates[load.index];
        let state = aggregate.create(&load.id);
        let state = state.ok_or_else(|| LoadError::Never("its bytes are no identifier of its type".to_owned()))?;
        let base = self.index.and_then(EventIndex::base);
        let first = base.as_ref().map_or(0, |base| base.before);
        let mut from_snapshot = self.read_snapshot(aggregate, &load.id, first);
        if let (None, Some(base)) = (&from_snapshot, &base) {
            from_snapshot = from_base(base, aggregate, &load.id)?;
        }
        let version_before = from_snapshot.as_ref().map_or(0, |(_, snapshot)| snapshot.version);
        let (mut state, mut made) = from_snapshot.unwrap_or_else(|| (state, Snapshot::default()));
        let from = Position { sequence: first.max(made.last_sequence + 1), ordinal: 0 };
        let filter = EventFilter::of_aggregate(aggregate.key(), &*load.id);
        let through = self.index.map_or(u64::MAX, EventIndex::last_sequence);
        self.for_each_event(&filter, from, through, |event, time_ns| {
            let old = OldEvent { event: event.event, version: event.version, payload: event.payload };
            aggregate.fold(&mut state, &old).map_err(|error| error.to_string())?;
            made.version += 1;
            (made.last_sequence, made.last_time_ns) = (event.position.sequence, time_ns);
            Ok(())
        })?;
        if let Some(SnapshotFormat { policy, .. }) = aggregate.snapshot_format() {
            let more = made.version - version_before;
            if more > 0 && (policy.events > 0 && more >= policy.events.into() || begun.elapsed() >= policy.load_time) {
                self.write_file(aggregate, &load.id, &state, made.clone());
            }
        }
        Ok((state, made.version, made.last_sequence))
    }

    /// `None` unless the stream has the snapshot's last event, at or after `first`.
    fn read_snapshot(
        &mut self,
        aggregate: &dyn ErasedAggregate,
        id: &[u8],
        first: u64,
    ) -> Option<(ErasedState, Snapshot)> {
        let (snapshots, files) = (self.snapshots?, aggregate.snapshot_format()?);
        let key = files.of_aggregate(aggregate.key(), id);
        let mut read = || {
            let Some(snapshot) = snapshots.read(key)?.filter(|snapshot| snapshot.last_sequence >= first) else {
                return Ok(None);
            };
            let time_ns = self.reader.time_of(snapshot.last_sequence).map_err(|error| error.to_string())?;
            if time_ns != Some(snapshot.last_time_ns) {
                return Err(format!("a snapshot of {} is of another history of the stream", aggregate.name()));
            }
            let decoded = catch_unwind(AssertUnwindSafe(|| (files.decode)(files.version, &snapshot.state)));
            match decoded {
                Ok(Ok(state)) => Ok(Some((state, snapshot))),
                Ok(Err(error)) => Err(format!("a snapshot of {} cannot be read: {error}", aggregate.name())),
                Err(_) => Err(format!("a snapshot of {} makes it panic", aggregate.name())),
            }
        };
        read().unwrap_or_else(|reason: String| {
            tracing::warn!("{reason}; the aggregate is made of its events");
            None
        })
    }

    /// Writes a state whose last event is released.
    pub fn write_snapshot(&mut self, due: &DueSnapshot) {
        let &DueSnapshot { version, last_sequence, last_time_ns, .. } = due;
        // Events of a deposed leader may have been truncated.
        if self.reader.time_of(last_sequence).is_ok_and(|time_ns| time_ns == Some(last_time_ns)) {
            let snapshot = Snapshot { version, last_sequence, last_time_ns, state: Vec::new() };
            self.write_file(&*self.aggregates[due.index], &due.id, &due.state, snapshot);
        }
    }

    fn write_file(&self, aggregate: &dyn ErasedAggregate, id: &[u8], state: &ErasedState, mut snapshot: Snapshot) {
        let (Some(snapshots), Some(files)) = (self.snapshots, aggregate.snapshot_format()) else { return };
        snapshot.state.clear();
        let key = files.of_aggregate(aggregate.key(), id);
        let written = match catch_unwind(AssertUnwindSafe(|| (files.encode)(state, &mut snapshot.state))) {
            Ok(Ok(())) => snapshots.write(key, &snapshot).map_err(|error| error.to_string()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it panics".to_owned()),
        };
        if let Err(reason) = written {
            tracing::warn!("a snapshot of {} was not written: {reason}", aggregate.name());
        }
    }

    /// State of a decision model.
    pub fn build_decision_model(&mut self, load: &ModelLoad) -> Result<ErasedState, LoadError> {
        let model = &*self.decision_models[load.model];
        let first = self.deleted_before();
        if load.from.sequence < first {
            let from = load.from.sequence;
            let name = model.name();
            // Deleted since the request; one for later events may succeed.
            return Err(LoadError::Stream(format!(
                "{name} needs events from {from} on, and those before {first} are deleted"
            )));
        }
        let created = model.create(&load.id);
        let created = created.ok_or_else(|| LoadError::Never("its bytes are no identifier of its type".to_owned()));
        let (mut state, filter) = created?;
        self.for_each_event(&filter, load.from, load.through, |event, _| {
            model.apply(&mut state, event).map_err(|error| format!("{}: {error}", model.name()))
        })?;
        Ok(state)
    }

    fn for_each_event(
        &mut self,
        filter: &EventFilter,
        mut from: Position,
        through: u64,
        mut fold: impl FnMut(&RecordedEvent<'_>, u64) -> Result<(), String>,
    ) -> Result<(), LoadError> {
        let unreadable = |error: ReadError| match error {
            ReadError::Transaction { .. } => LoadError::Never(error.to_string()),
            other if is_shortage(&other) => LoadError::Shortage(other.to_string()),
            other => LoadError::Stream(other.to_string()),
        };
        let mut has_begun = false;
        let mut search = self.index.map(|index| (index, FilterSearch::new(filter)));
        if search.is_none() {
            self.reader.seek(from);
        }
        loop {
            if let Some((index, search)) = &mut search {
                let found = search.next(from, through, |key, from, limit| index.find(key, from, limit));
                let Some(position) = found.map_err(LoadError::Index)? else { return Ok(()) };
                if !std::mem::replace(&mut has_begun, true) || self.reader.next_sequence() != position.sequence {
                    self.reader.seek(position);
                }
            }
            let Some(mut transaction) = self.reader.next_transaction().map_err(unreadable)? else { return Ok(()) };
            let (sequence, time_ns) = (transaction.sequence, transaction.time_ns);
            if sequence > through {
                return Ok(());
            }
            while let Some(event) = transaction.next_event().map_err(unreadable)? {
                if event.position >= from && filter.has(&event) {
                    fold(&event, time_ns).map_err(|reason| {
                        let (position, name) = (event.position, self.names.message_name(event.event));
                        LoadError::Never(format!("event {position}, {name} v{}: {reason}", event.version))
                    })?;
                }
            }
            from = Position { sequence: sequence + 1, ordinal: 0 };
        }
    }
}

/// `None` if none of the aggregate's events are deleted.
pub(super) fn from_base(
    base: &BaseFile,
    aggregate: &dyn ErasedAggregate,
    id: &[u8],
) -> Result<Option<(ErasedState, Snapshot)>, LoadError> {
    let found = base.find(aggregate.key(), id).map_err(|error| LoadError::Stream(error.to_string()))?;
    let Some(entry) = found else { return Ok(None) };
    let (name, path, version) = (aggregate.name(), base.path.display(), entry.state_version);
    let never = |reason: &str| {
        LoadError::Never(format!("its events before {} are deleted, and its state in {path} {reason}", base.before))
    };
    let Some(files) = aggregate.snapshot_format() else {
        return Err(never(&format!("cannot be read: the model keeps no snapshots of {name} any more")));
    };
    if version == files.version && entry.state_layout != files.layout {
        return Err(never(&format!(
            "has another layout than version {version} of its type has now: what has changed is a version of its own"
        )));
    }
    match catch_unwind(AssertUnwindSafe(|| (files.decode)(version, &entry.state))) {
        Ok(Ok(state)) => {
            let BaseEntry { version, last_sequence, .. } = entry;
            Ok(Some((state, Snapshot { version, last_sequence, ..Snapshot::default() })))
        }
        Ok(Err(error)) => Err(never(&format!("is of version {version} of its type, which cannot be read: {error}"))),
        Err(_) => Err(never("makes it panic")),
    }
}
