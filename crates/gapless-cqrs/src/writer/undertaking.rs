//! [`Undertaking`]: the unit of work of one command on the cache.
//!
//! Events change no state before all of them are decided and encoded, except for aggregates that the same handler looks
//! at: of these a copy from before is kept.

use super::cache::{Cache, Cold, Place};
use super::decision_models::DecisionModels;
use crate::aggregate::{Circumstances, Commanded, MessageType, NotDecided, State, write_tag};
use crate::handler::{Interrupted, Named, Unexecuted, Workspace};
use crate::identity::{Position, TypeKey};
use crate::model::{Aggregates, DecisionModelTypes};
use crate::transaction::{CommandIdentity, EventHead, RecordedEvents, write_count, write_event, write_head};
use gapless_message::MessageError;
use rustc_hash::FxHashSet;
use std::any::{Any, TypeId};
use std::ops::Range;

#[derive(Default)]
pub(super) struct Undertaking {
    changes: Vec<u8>,
    /// Most bytes of events and answer together.
    length_max: usize,
    /// Length of the events without an aggregate, bytes.
    recorded_length: usize,
    /// Bytes of `changes` before the first event.
    head_length: usize,
    has_identity: bool,
    steps: Vec<Step>,
    /// Events without an aggregate.
    records: Vec<Record>,
    /// Types that may hold events of this command.
    touched: Vec<usize>,
    /// Copies of changed aggregates from before.
    before: Vec<(Place, State)>,
}

struct Step {
    place: Place,
    aggregate: usize,
    /// Their indexes in the aggregate's type.
    events: Range<usize>,
    is_applied: bool,
    /// A copy from before is in [`Undertaking::before`].
    is_kept: bool,
}

struct Record {
    event: MessageType,
    tags: Vec<u8>,
    payload: Vec<u8>,
    /// Number of steps before it.
    steps_before: usize,
}

impl Undertaking {
    /// Encoded events; empty without any.
    pub fn changes(&self) -> &[u8] {
        &self.changes
    }

    #[inline]
    pub fn clear(&mut self, aggregates: &mut Aggregates) {
        self.touched.drain(..).for_each(|aggregate| aggregates.all[aggregate].clear());
        self.steps.clear();
        self.records.clear();
        self.before.clear();
        self.changes.clear();
        self.has_identity = false;
        self.recorded_length = 0;
    }

    /// Begins a transaction of at most `length_max` bytes.
    #[inline]
    pub fn begin(&mut self, identity: Option<CommandIdentity>, metadata: &[u8], length_max: usize) {
        self.has_identity = identity.is_some();
        self.length_max = length_max;
        write_head(&mut self.changes, identity, metadata);
        self.head_length = self.changes.len();
    }

    /// Registers the type of the next decision, which may panic.
    #[inline]
    pub fn touch(&mut self, aggregate: usize, aggregates: &mut Aggregates) {
        if !self.touched.contains(&aggregate) {
            self.touched.push(aggregate);
            aggregates.all[aggregate].limit(self.length_max);
        }
    }

    #[inline]
    pub fn add(&mut self, place: Place, aggregate: usize, events: Range<usize>) {
        self.steps.push(Step { place, aggregate, events, is_applied: false, is_kept: false });
    }

    /// Ends a transaction without events: only the identifier, if there is one, stays.
    pub fn seal(&mut self) {
        if !self.has_identity {
            self.changes.clear();
        }
    }

    /// Encodes all events, and returns their number.
    #[inline]
    pub fn encode(&mut self, cache: &Cache, aggregates: &Aggregates) -> Result<u16, String> {
        self.changes.truncate(self.head_length);
        let mut count = self.records.len();
        let mut records = self.records.iter().peekable();
        for (index, step) in self.steps.iter().enumerate() {
            while let Some(record) = records.next_if(|record| record.steps_before <= index) {
                record.write(&mut self.changes);
            }
            let erased = &aggregates.all[step.aggregate];
            let (event, (aggregate, id)) = (erased.event(), cache.name(step.place));
            for index in step.events.clone() {
                let head =
                    EventHead { event: event.key, version: event.version, aggregate, id, tags: erased.tags(index) };
                write_event(&mut self.changes, &head, |out| erased.write(index, out))
                    .map_err(|error| error.to_string())?;
                if self.changes.len() - self.head_length > self.length_max {
                    return Err(too_long(&mut self.changes, self.head_length, self.length_max));
                }
                count += 1;
            }
        }
        records.for_each(|record| record.write(&mut self.changes));
        let count =
            u16::try_from(count).map_err(|_| format!("{count} events; a transaction has at most {}", u16::MAX))?;
        write_count(&mut self.changes, count);
        Ok(count)
    }

    /// Applies the events that are not applied yet.
    #[inline]
    pub fn apply(&mut self, cache: &mut Cache, aggregates: &Aggregates) {
        for step in self.steps.iter_mut().filter(|step| !step.is_applied) {
            // Set first, because a panic leaves the state undefined.
            step.is_applied = true;
            aggregates.all[step.aggregate].apply(cache.state_mut(step.place), step.events.clone());
        }
    }

    /// Keeps the changes.
    #[inline]
    pub fn keep(&self, cache: &mut Cache, aggregates: &Aggregates, (sequence, time_ns): (u64, u64)) {
        let (mut has_empty, mut is_due) = (false, false);
        for step in &self.steps {
            match step.events.len() {
                0 => has_empty = true,
                events => {
                    let version = cache.note(step.place, events as u64, sequence);
                    let every = aggregates.snapshots_every[step.aggregate];
                    is_due |= every > 0 && version & (every - 1) < events as u64;
                }
            }
        }
        if is_due {
            self.snapshot(cache, aggregates, time_ns);
        }
        if has_empty {
            // Aggregates that were only looked at, and still have no events.
            self.steps.iter().for_each(|step| cache.drop_if_empty(step.place));
        }
    }

    /// Queues the states whose snapshot is due.
    #[cold]
    fn snapshot(&self, cache: &mut Cache, aggregates: &Aggregates, time_ns: u64) {
        for (index, step) in self.steps.iter().enumerate() {
            let is_its = |other: &&Step| other.place == step.place;
            let every = aggregates.snapshots_every[step.aggregate];
            if every == 0 || self.steps[..index].iter().any(|other| is_its(&other)) {
                continue;
            }
            let events: usize = self.steps.iter().filter(is_its).map(|step| step.events.len()).sum();
            if cache.version(step.place) & (every - 1) < events as u64 {
                cache.snapshot(step.place, step.aggregate, aggregates, time_ns);
            }
        }
    }

    /// Undoes the changes. Changed aggregates without a copy are loaded again.
    #[cold]
    pub fn undo(&mut self, cache: &mut Cache, aggregates: &Aggregates) {
        for step in &self.steps {
            if let Some(at) = self.before.iter().position(|(place, _)| *place == step.place) {
                *cache.state_mut(step.place) = self.before.swap_remove(at).1;
            } else if step.is_applied && !step.events.is_empty() && !step.is_kept {
                cache.spoil(step.place, aggregates);
            }
        }
        self.steps.iter().for_each(|step| cache.drop_if_empty(step.place));
        // The identifier of a refused command is written to the stream, too.
        self.changes.truncate(self.head_length);
        write_count(&mut self.changes, 0);
    }

    /// Leaves no trace of the command in the stream, not even its identifier.
    pub fn forget_identifier(&mut self) {
        self.has_identity = false;
        self.changes.clear();
    }

    fn has_events(&self) -> bool {
        !self.records.is_empty() || self.steps.iter().any(|step| !step.events.is_empty())
    }
}

impl Record {
    #[cold]
    fn write(&self, out: &mut Vec<u8>) {
        let Self { event, tags, payload, .. } = self;
        let head =
            EventHead { event: event.key, version: event.version, aggregate: TypeKey::NONE, id: b"", tags: &tags[..] };
        write_encoded(out, &head, payload);
    }
}

#[cold]
fn too_long(changes: &mut Vec<u8>, head_length: usize, length_max: usize) -> String {
    changes.truncate(head_length);
    // One event may have been far larger than the limit.
    changes.shrink_to(length_max);
    format!("its events have more than {length_max} bytes, and no more have room in a transaction")
}

#[inline]
fn write_encoded(out: &mut Vec<u8>, head: &EventHead<'_>, payload: &[u8]) {
    let written = write_event(out, head, |out| {
        out.extend_from_slice(payload);
        Ok::<_, std::convert::Infallible>(())
    });
    written.unwrap_or_else(|never| match never {});
}

pub(super) struct UndertakingWorkspace<'a> {
    pub undertaking: &'a mut Undertaking,
    pub cache: &'a mut Cache,
    pub aggregates: &'a mut Aggregates,
    pub decision_models: &'a mut DecisionModels,
    pub types: &'a DecisionModelTypes,
    /// Types of events without an aggregate.
    pub events: &'a FxHashSet<TypeKey>,
    pub circumstances: Circumstances<'a>,
    /// First reason why the handler cannot go on.
    pub interrupted: Option<Interrupted>,
}

impl UndertakingWorkspace<'_> {
    /// Finds an aggregate with all earlier events of this command applied, its index and its version.
    fn find(&mut self, (aggregate, name): Named, id: &[u8]) -> Result<(Place, usize, u64), Interrupted> {
        let index = self.aggregates.find(aggregate).ok_or_else(|| {
            Interrupted::Impossible(format!("the model does not have the aggregate {name}: add it to the model"))
        })?;
        let place = self.cache.find(self.aggregates, index, id).map_err(|cold| match cold {
            Cold::Loading => Interrupted::Cold,
            Cold::NoIdentifier => Interrupted::Impossible("an aggregate's identifier cannot be read".to_owned()),
            Cold::Quarantined(reason) => Interrupted::Quarantined(reason),
        })?;
        let mut version = self.cache.version(place);
        let Undertaking { steps, before, .. } = &mut *self.undertaking;
        for step in steps.iter_mut().filter(|step| step.place == place) {
            version += step.events.len() as u64;
            if !step.is_applied && !step.events.is_empty() {
                if before.iter().all(|(kept, _)| *kept != place) {
                    before.push((place, self.aggregates.all[index].copy(self.cache.state(place))));
                }
                (step.is_applied, step.is_kept) = (true, true);
                self.aggregates.all[index].apply(self.cache.state_mut(place), step.events.clone());
            }
        }
        if self.undertaking.steps.iter().all(|step| step.place != place) {
            // Registered in any case, so that it is cleaned up in the end.
            self.undertaking.add(place, index, 0..0);
        }
        Ok((place, index, version))
    }

    fn noted<T>(&mut self, result: Result<T, Interrupted>) -> Result<T, Interrupted> {
        result.inspect_err(|interrupted| {
            let same = match interrupted {
                Interrupted::Cold => Interrupted::Cold,
                Interrupted::Quarantined(reason) => Interrupted::Quarantined(reason.clone()),
                Interrupted::Impossible(reason) => Interrupted::Impossible(reason.clone()),
            };
            self.interrupted.get_or_insert(same);
        })
    }
}

impl UndertakingWorkspace<'_> {
    /// Finds the state of a decision model, with all earlier events of this command applied.
    fn find_model(&mut self, (model, name): (TypeId, &str), id: &[u8]) -> Result<usize, Interrupted> {
        let index = self.types.find(model).ok_or_else(|| {
            Interrupted::Impossible(format!("the model does not have the decision model {name}: add it to the model"))
        })?;
        let (types, tail) = (&self.types.all[..], self.circumstances.sequence - 1);
        let found = self.decision_models.find(types, (index, id), Position::default(), tail);
        let entry = found.map_err(|cold| match cold {
            Cold::Loading => Interrupted::Cold,
            Cold::NoIdentifier => {
                Interrupted::Impossible(format!("an identifier of {} cannot be read", types[index].name()))
            }
            Cold::Quarantined(reason) => Interrupted::Quarantined(reason),
        })?;
        if self.undertaking.has_events() {
            self.undertaking.encode(self.cache, self.aggregates).map_err(Interrupted::Impossible)?;
            let events = RecordedEvents::read(self.circumstances.sequence, self.undertaking.changes());
            self.decision_models.show(types, entry, events).map_err(Interrupted::Impossible)?;
        }
        Ok(entry)
    }
}

impl Workspace for UndertakingWorkspace<'_> {
    fn record(&mut self, event: MessageType, payload: Result<Vec<u8>, MessageError>) -> Result<(), Interrupted> {
        let recorded = match payload {
            Err(error) => Err(Interrupted::Impossible(error.to_string())),
            Ok(_) if !self.events.contains(&event.key) => {
                let name = event.name;
                Err(Interrupted::Impossible(format!("the model does not have the event {name}: add it to the model")))
            }
            Ok(payload) if self.undertaking.recorded_length + payload.len() > self.undertaking.length_max => {
                let most = self.undertaking.length_max;
                let reason = format!("its events have more than {most} bytes, and no more have room in a transaction");
                Err(Interrupted::Impossible(reason))
            }
            Ok(payload) => {
                let steps_before = self.undertaking.steps.len();
                self.undertaking.recorded_length += payload.len();
                self.undertaking.records.push(Record { event, tags: Vec::new(), payload, steps_before });
                Ok(())
            }
        };
        self.noted(recorded)
    }

    fn tag(&mut self, name: &str, value: &[u8]) {
        let Undertaking { records, steps, .. } = &mut *self.undertaking;
        match (records.last_mut(), steps.last()) {
            (Some(record), _) if record.steps_before == steps.len() => write_tag(&mut record.tags, name, value),
            (_, Some(step)) => self.aggregates.all[step.aggregate].tag(name, value),
            (_, None) => unreachable!("an event is tagged behind its addition"),
        }
    }

    fn read(&mut self, model: (TypeId, &'static str), id: &[u8]) -> Result<&(dyn Any + Send), Interrupted> {
        let found = self.find_model(model, id);
        let entry = self.noted(found)?;
        Ok(&**self.decision_models.state(entry))
    }

    fn state(&mut self, aggregate: Named, id: &[u8]) -> Result<Option<&(dyn Any + Send)>, Interrupted> {
        let found = self.find(aggregate, id);
        let (place, _, version) = self.noted(found)?;
        Ok((version > 0).then(|| &**self.cache.state(place)))
    }

    fn execute(&mut self, aggregate: Named, id: &[u8], command: &mut dyn Any) -> Result<(), Unexecuted> {
        let found = self.find(aggregate, id);
        let (place, index, version) = self.noted(found).map_err(Unexecuted::Interrupted)?;
        let command = Commanded::Value(command);
        self.undertaking.touch(index, self.aggregates);
        let erased = &mut self.aggregates.all[index];
        match erased.decide(self.cache.state(place), version, command, self.circumstances) {
            Ok(events) => {
                self.undertaking.add(place, index, events);
                Ok(())
            }
            Err(NotDecided::NotFound) => Err(Unexecuted::NotFound),
            Err(NotDecided::AlreadyExists) => Err(Unexecuted::AlreadyExists),
            Err(NotDecided::Refused(_, bytes)) => Err(Unexecuted::Refused(bytes)),
            Err(NotDecided::NoCommand(error)) => {
                let impossible = Interrupted::Impossible(error.to_string());
                self.noted::<()>(Err(impossible)).map_err(Unexecuted::Interrupted)
            }
            Err(NotDecided::Impossible(reason)) => {
                self.noted::<()>(Err(Interrupted::Impossible(reason))).map_err(Unexecuted::Interrupted)
            }
        }
    }

    fn emit(&mut self, aggregate: Named, id: &[u8], event: &mut dyn Any) -> Result<(), Interrupted> {
        let found = self.find(aggregate, id);
        let (place, index, _) = self.noted(found)?;
        self.undertaking.touch(index, self.aggregates);
        let put = self.aggregates.all[index].put(event);
        let events = self.noted(put.map_err(Interrupted::Impossible))?;
        self.undertaking.add(place, index, events);
        Ok(())
    }
}
