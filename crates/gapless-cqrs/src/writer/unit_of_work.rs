//! [`UnitOfWork`]: the changes of one command. States change only after all events are decided and encoded, except of
//! aggregates that the same handler looks at: of these a copy is kept.

use super::cache::{AggregateCache, CacheSlot, NotInMemory};
use super::decision_models::DecisionModels;
use crate::aggregate::{CommandInput, DecideError, DecisionContext, ErasedState, MessageTypeId, write_tag};
use crate::handler::{AggregateTypeRef, ErasedExecuteError, InterruptionReason, Workspace};
use crate::identity::{Position, TypeKey};
use crate::model::{AggregateTypes, DecisionModelTypes};
use crate::transaction::{CommandIdentity, EventHead, RecordedEvents, write_count, write_event, write_head};
use gapless_message::MessageError;
use rustc_hash::FxHashSet;
use std::any::{Any, TypeId};
use std::ops::Range;

#[derive(Default)]
pub(super) struct UnitOfWork {
    changes: Vec<u8>,
    length_max: usize,
    standalone_length: usize,
    head_length: usize,
    has_identity: bool,
    steps: Vec<AggregateStep>,
    standalone_events: Vec<StandaloneEvent>,
    touched_types: Vec<usize>,
    states_before: Vec<(CacheSlot, ErasedState)>,
}

struct AggregateStep {
    slot: CacheSlot,
    aggregate: usize,
    events: Range<usize>,
    is_applied: bool,
    has_copy: bool,
}

struct StandaloneEvent {
    event: MessageTypeId,
    tags: Vec<u8>,
    payload: Vec<u8>,
    steps_before: usize,
}

impl UnitOfWork {
    /// Encoded events; empty without any.
    pub fn changes(&self) -> &[u8] {
        &self.changes
    }

    #[inline]
    pub fn clear(&mut self, aggregates: &mut AggregateTypes) {
        self.touched_types.drain(..).for_each(|aggregate| aggregates.all[aggregate].clear());
        self.steps.clear();
        self.standalone_events.clear();
        self.states_before.clear();
        self.changes.clear();
        self.has_identity = false;
        self.standalone_length = 0;
    }

    /// At most `length_max` bytes.
    #[inline]
    pub fn begin(&mut self, identity: Option<CommandIdentity>, metadata: &[u8], length_max: usize) {
        self.has_identity = identity.is_some();
        self.length_max = length_max;
        write_head(&mut self.changes, identity, metadata);
        self.head_length = self.changes.len();
    }

    /// Registers a type before its decision, which may panic.
    #[inline]
    pub fn touch(&mut self, aggregate: usize, aggregates: &mut AggregateTypes) {
        if !self.touched_types.contains(&aggregate) {
            self.touched_types.push(aggregate);
            aggregates.all[aggregate].limit(self.length_max);
        }
    }

    #[inline]
    pub fn add(&mut self, slot: CacheSlot, aggregate: usize, events: Range<usize>) {
        self.steps.push(AggregateStep { slot, aggregate, events, is_applied: false, has_copy: false });
    }

    /// Ends a transaction without events: only the identifier, if there is one, stays.
    pub fn seal(&mut self) {
        if !self.has_identity {
            self.changes.clear();
        }
    }

    /// Encodes all events; returns their number.
    #[inline]
    pub fn encode(&mut self, cache: &AggregateCache, aggregates: &AggregateTypes) -> Result<u16, String> {
        self.changes.truncate(self.head_length);
        let mut count = self.standalone_events.len();
        let mut standalone = self.standalone_events.iter().peekable();
        for (index, step) in self.steps.iter().enumerate() {
            while let Some(event) = standalone.next_if(|event| event.steps_before <= index) {
                event.write(&mut self.changes);
            }
            let erased = &aggregates.all[step.aggregate];
            let (event, (aggregate, id)) = (erased.event(), cache.identity(step.slot));
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
        standalone.for_each(|event| event.write(&mut self.changes));
        let count =
            u16::try_from(count).map_err(|_| format!("{count} events; a transaction has at most {}", u16::MAX))?;
        write_count(&mut self.changes, count);
        Ok(count)
    }

    /// Applies the events that are not applied yet.
    #[inline]
    pub fn apply(&mut self, cache: &mut AggregateCache, aggregates: &AggregateTypes) {
        for step in self.steps.iter_mut().filter(|step| !step.is_applied) {
            // First, because a panic leaves the state undefined.
            step.is_applied = true;
            aggregates.all[step.aggregate].apply(cache.state_mut(step.slot), step.events.clone());
        }
    }

    /// Commits the changes to the cache.
    #[inline]
    pub fn commit(&self, cache: &mut AggregateCache, aggregates: &AggregateTypes, (sequence, time_ns): (u64, u64)) {
        let (mut has_empty, mut is_due) = (false, false);
        for step in &self.steps {
            match step.events.len() {
                0 => has_empty = true,
                events => {
                    let version = cache.record_events(step.slot, events as u64, sequence);
                    let every = aggregates.snapshots_every[step.aggregate];
                    is_due |= every > 0 && version & (every - 1) < events as u64;
                }
            }
        }
        if is_due {
            self.snapshot(cache, aggregates, time_ns);
        }
        if has_empty {
            // Aggregates only looked at, and still without events.
            self.steps.iter().for_each(|step| cache.drop_if_empty(step.slot));
        }
    }

    #[cold]
    fn snapshot(&self, cache: &mut AggregateCache, aggregates: &AggregateTypes, time_ns: u64) {
        for (index, step) in self.steps.iter().enumerate() {
            let is_its = |other: &&AggregateStep| other.slot == step.slot;
            let every = aggregates.snapshots_every[step.aggregate];
            if every == 0 || self.steps[..index].iter().any(|other| is_its(&other)) {
                continue;
            }
            let events: usize = self.steps.iter().filter(is_its).map(|step| step.events.len()).sum();
            if cache.version(step.slot) & (every - 1) < events as u64 {
                cache.queue_snapshot(step.slot, step.aggregate, aggregates, time_ns);
            }
        }
    }

    /// Rolls back; changed aggregates without a copy are loaded again.
    #[cold]
    pub fn roll_back(&mut self, cache: &mut AggregateCache, aggregates: &AggregateTypes) {
        for step in &self.steps {
            if let Some(at) = self.states_before.iter().position(|(slot, _)| *slot == step.slot) {
                *cache.state_mut(step.slot) = self.states_before.swap_remove(at).1;
            } else if step.is_applied && !step.events.is_empty() && !step.has_copy {
                cache.invalidate(step.slot, aggregates);
            }
        }
        self.steps.iter().for_each(|step| cache.drop_if_empty(step.slot));
        // A refused command's identifier is written, too.
        self.changes.truncate(self.head_length);
        write_count(&mut self.changes, 0);
    }

    /// Leaves no trace of the command in the stream.
    pub fn forget_identifier(&mut self) {
        self.has_identity = false;
        self.changes.clear();
    }

    fn has_events(&self) -> bool {
        !self.standalone_events.is_empty() || self.steps.iter().any(|step| !step.events.is_empty())
    }
}

impl StandaloneEvent {
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

pub(super) struct HandlerWorkspace<'a> {
    pub unit_of_work: &'a mut UnitOfWork,
    pub cache: &'a mut AggregateCache,
    pub aggregates: &'a mut AggregateTypes,
    pub decision_models: &'a mut DecisionModels,
    pub types: &'a DecisionModelTypes,
    /// Event types without an aggregate.
    pub events: &'a FxHashSet<TypeKey>,
    pub decision_context: DecisionContext<'a>,
    /// Why the handler cannot go on.
    pub interrupted: Option<InterruptionReason>,
}

impl HandlerWorkspace<'_> {
    fn find(
        &mut self,
        (aggregate, name): AggregateTypeRef,
        id: &[u8],
    ) -> Result<(CacheSlot, usize, u64), InterruptionReason> {
        let index = self.aggregates.find(aggregate).ok_or_else(|| {
            InterruptionReason::Impossible(format!("the model does not have the aggregate {name}: add it to the model"))
        })?;
        let slot = self.cache.find(self.aggregates, index, id).map_err(|missing| match missing {
            NotInMemory::Loading => InterruptionReason::NotInMemory,
            NotInMemory::NoIdentifier => {
                InterruptionReason::Impossible("an aggregate's identifier cannot be read".to_owned())
            }
            NotInMemory::Quarantined(reason) => InterruptionReason::Quarantined(reason),
        })?;
        let mut version = self.cache.version(slot);
        let UnitOfWork { steps, states_before, .. } = &mut *self.unit_of_work;
        for step in steps.iter_mut().filter(|step| step.slot == slot) {
            version += step.events.len() as u64;
            if !step.is_applied && !step.events.is_empty() {
                if states_before.iter().all(|(kept, _)| *kept != slot) {
                    states_before.push((slot, self.aggregates.all[index].copy(self.cache.state(slot))));
                }
                (step.is_applied, step.has_copy) = (true, true);
                self.aggregates.all[index].apply(self.cache.state_mut(slot), step.events.clone());
            }
        }
        if self.unit_of_work.steps.iter().all(|step| step.slot != slot) {
            // In any case, so that it is cleaned up.
            self.unit_of_work.add(slot, index, 0..0);
        }
        Ok((slot, index, version))
    }

    fn remember_interruption<T>(&mut self, result: Result<T, InterruptionReason>) -> Result<T, InterruptionReason> {
        result.inspect_err(|interrupted| {
            let same = match interrupted {
                InterruptionReason::NotInMemory => InterruptionReason::NotInMemory,
                InterruptionReason::Quarantined(reason) => InterruptionReason::Quarantined(reason.clone()),
                InterruptionReason::Impossible(reason) => InterruptionReason::Impossible(reason.clone()),
            };
            self.interrupted.get_or_insert(same);
        })
    }
}

impl HandlerWorkspace<'_> {
    fn find_model(&mut self, (model, name): (TypeId, &str), id: &[u8]) -> Result<usize, InterruptionReason> {
        let index = self.types.find(model).ok_or_else(|| {
            InterruptionReason::Impossible(format!(
                "the model does not have the decision model {name}: add it to the model"
            ))
        })?;
        let (types, tail) = (&self.types.all[..], self.decision_context.sequence - 1);
        let found = self.decision_models.find(types, (index, id), Position::default(), tail);
        let entry = found.map_err(|missing| match missing {
            NotInMemory::Loading => InterruptionReason::NotInMemory,
            NotInMemory::NoIdentifier => {
                InterruptionReason::Impossible(format!("an identifier of {} cannot be read", types[index].name()))
            }
            NotInMemory::Quarantined(reason) => InterruptionReason::Quarantined(reason),
        })?;
        if self.unit_of_work.has_events() {
            self.unit_of_work.encode(self.cache, self.aggregates).map_err(InterruptionReason::Impossible)?;
            let events = RecordedEvents::read(self.decision_context.sequence, self.unit_of_work.changes());
            self.decision_models.apply_own_events(types, entry, events).map_err(InterruptionReason::Impossible)?;
        }
        Ok(entry)
    }
}

impl Workspace for HandlerWorkspace<'_> {
    fn record(
        &mut self,
        event: MessageTypeId,
        payload: Result<Vec<u8>, MessageError>,
    ) -> Result<(), InterruptionReason> {
        let recorded = match payload {
            Err(error) => Err(InterruptionReason::Impossible(error.to_string())),
            Ok(_) if !self.events.contains(&event.key) => {
                let name = event.name;
                Err(InterruptionReason::Impossible(format!(
                    "the model does not have the event {name}: add it to the model"
                )))
            }
            Ok(payload) if self.unit_of_work.standalone_length + payload.len() > self.unit_of_work.length_max => {
                let most = self.unit_of_work.length_max;
                let reason = format!("its events have more than {most} bytes, and no more have room in a transaction");
                Err(InterruptionReason::Impossible(reason))
            }
            Ok(payload) => {
                let steps_before = self.unit_of_work.steps.len();
                self.unit_of_work.standalone_length += payload.len();
                self.unit_of_work.standalone_events.push(StandaloneEvent {
                    event,
                    tags: Vec::new(),
                    payload,
                    steps_before,
                });
                Ok(())
            }
        };
        self.remember_interruption(recorded)
    }

    fn tag(&mut self, name: &str, value: &[u8]) {
        let UnitOfWork { standalone_events, steps, .. } = &mut *self.unit_of_work;
        match (standalone_events.last_mut(), steps.last()) {
            (Some(event), _) if event.steps_before == steps.len() => write_tag(&mut event.tags, name, value),
            (_, Some(step)) => self.aggregates.all[step.aggregate].tag(name, value),
            (_, None) => unreachable!("an event is tagged behind its addition"),
        }
    }

    fn read(&mut self, model: (TypeId, &'static str), id: &[u8]) -> Result<&(dyn Any + Send), InterruptionReason> {
        let found = self.find_model(model, id);
        let entry = self.remember_interruption(found)?;
        Ok(&**self.decision_models.state(entry))
    }

    fn state(
        &mut self,
        aggregate: AggregateTypeRef,
        id: &[u8],
    ) -> Result<Option<&(dyn Any + Send)>, InterruptionReason> {
        let found = self.find(aggregate, id);
        let (slot, _, version) = self.remember_interruption(found)?;
        Ok((version > 0).then(|| &**self.cache.state(slot)))
    }

    fn execute(
        &mut self,
        aggregate: AggregateTypeRef,
        id: &[u8],
        command: &mut dyn Any,
    ) -> Result<(), ErasedExecuteError> {
        let found = self.find(aggregate, id);
        let (slot, index, version) = self.remember_interruption(found).map_err(ErasedExecuteError::Interrupted)?;
        let command = CommandInput::Value(command);
        self.unit_of_work.touch(index, self.aggregates);
        let erased = &mut self.aggregates.all[index];
        match erased.decide(self.cache.state(slot), version, command, self.decision_context) {
            Ok(events) => {
                self.unit_of_work.add(slot, index, events);
                Ok(())
            }
            Err(DecideError::NotFound) => Err(ErasedExecuteError::NotFound),
            Err(DecideError::AlreadyExists) => Err(ErasedExecuteError::AlreadyExists),
            Err(DecideError::Refused(_, bytes)) => Err(ErasedExecuteError::Refused(bytes)),
            Err(DecideError::NoCommand(error)) => {
                let impossible = InterruptionReason::Impossible(error.to_string());
                self.remember_interruption::<()>(Err(impossible)).map_err(ErasedExecuteError::Interrupted)
            }
            Err(DecideError::Impossible(reason)) => self
                .remember_interruption::<()>(Err(InterruptionReason::Impossible(reason)))
                .map_err(ErasedExecuteError::Interrupted),
        }
    }

    fn emit(&mut self, aggregate: AggregateTypeRef, id: &[u8], event: &mut dyn Any) -> Result<(), InterruptionReason> {
        let found = self.find(aggregate, id);
        let (slot, index, _) = self.remember_interruption(found)?;
        self.unit_of_work.touch(index, self.aggregates);
        let put = self.aggregates.all[index].put(event);
        let events = self.remember_interruption(put.map_err(InterruptionReason::Impossible))?;
        self.unit_of_work.add(slot, index, events);
        Ok(())
    }
}
