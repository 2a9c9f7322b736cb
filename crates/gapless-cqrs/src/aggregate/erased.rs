//! [`ErasedAggregate`]: an aggregate's type erased, so that the writer is compiled once.

use super::decision::{Decision, DecisionContext, EventSink};
use super::old_event::{self, OldEvent};
use super::{Aggregate, Creation};
use crate::event_filter::cut_tag;
use crate::identity::{AggregateId as _, TypeKey};
use crate::snapshots::{SnapshotKey, SnapshotPolicy};
use crate::transaction::EVENT_HEAD_LENGTH;
use gapless_message::{Message, MessageError};
use std::any::Any;
use std::ops::Range;

pub(crate) type ErasedState = Box<dyn Any + Send>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageTypeId {
    pub name: &'static str,
    pub key: TypeKey,
    pub version: u32,
}

impl MessageTypeId {
    #[inline]
    pub const fn of<M: Message>() -> Self {
        const { Self { name: M::TYPE_NAME, key: TypeKey::of(M::TYPE_NAME), version: M::VERSION } }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct SnapshotFormat {
    pub policy: SnapshotPolicy,
    pub version: u32,
    /// Hash of the state's layout; 0 if unknown.
    pub layout: u32,
    pub encode: fn(&ErasedState, &mut Vec<u8>) -> Result<(), MessageError>,
    /// Decodes a state of the given version of its type.
    pub decode: fn(u32, &[u8]) -> Result<ErasedState, MessageError>,
}

impl SnapshotFormat {
    /// Identity for the check of a state file.
    pub const fn of_aggregate<'a>(&self, aggregate: TypeKey, id: &'a [u8]) -> SnapshotKey<'a> {
        SnapshotKey { aggregate, id, state_version: self.version, state_layout: self.layout }
    }

    pub fn of<A: Aggregate + Message>(policy: SnapshotPolicy) -> Self {
        Self {
            policy,
            version: A::VERSION,
            layout: (A::fingerprint() ^ A::fingerprint() >> 32) as u32,
            encode: |state, into| state.downcast_ref::<A>().expect(OWN_STATE).encode(into),
            decode: |version, bytes| Ok(Box::new(A::decode_as(version, bytes)?)),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecideError {
    NotFound,
    AlreadyExists,
    NoCommand(MessageError),
    Refused(MessageTypeId, Vec<u8>),
    /// The events do not encode, or exceed the limit of a transaction.
    Impossible(String),
}

const EVENTS_MAX: usize = u16::MAX as usize;

pub(crate) enum CommandInput<'a> {
    Bytes(u32, &'a [u8]),
    /// A handler's command in the same process: an `Option` of the aggregate's command.
    Value(&'a mut dyn Any),
}

pub(crate) trait ErasedAggregate: Send {
    fn name(&self) -> &'static str;
    fn key(&self) -> TypeKey;
    fn command(&self) -> MessageTypeId;
    fn event(&self) -> MessageTypeId;

    fn become_version(&mut self, version: u32);

    fn new_of_same_type(&self) -> Box<dyn ErasedAggregate>;

    fn snapshot_format(&self) -> Option<&SnapshotFormat>;

    fn create(&self, id: &[u8]) -> Option<ErasedState>;

    fn copy(&self, state: &ErasedState) -> ErasedState;

    /// Events and tags have at most `length_max` bytes.
    fn limit(&mut self, length_max: usize);

    /// Returns the indexes of the emitted events.
    fn decide(
        &mut self,
        state: &ErasedState,
        version: u64,
        command: CommandInput<'_>,
        context: DecisionContext<'_>,
    ) -> Result<Range<usize>, DecideError>;

    /// Adds an event that was emitted without `decide`, as an `Option` of the aggregate's event.
    fn put(&mut self, event: &mut dyn Any) -> Result<Range<usize>, String>;

    fn tag(&mut self, name: &str, value: &[u8]);

    fn write(&self, event: usize, out: &mut Vec<u8>) -> Result<(), MessageError>;

    /// Each as u8 length, name, u8 length, value.
    fn tags(&self, event: usize) -> &[u8];

    fn apply(&self, state: &mut ErasedState, events: Range<usize>);

    fn fold(&self, state: &mut ErasedState, event: &OldEvent<'_>) -> Result<(), MessageError>;

    fn clear(&mut self);
}

pub(crate) struct TypedAggregate<A: Aggregate> {
    emitted: EmittedEvents<A::Event>,
    snapshot_format: Option<SnapshotFormat>,
}

struct EmittedEvents<Event> {
    events: Vec<EmittedEvent<Event>>,
    tags: Vec<u8>,
    payloads: Vec<u8>,
    version: u32,
    length_max: usize,
    /// Why the transaction is impossible; once set, no further event is kept.
    fault: Option<String>,
}

/// Later events are encoded at once, which bounds the memory of a decision.
const ENCODED_LATER: usize = 4;

struct EmittedEvent<Event> {
    event: Event,
    tags: Range<usize>,
    payload: Option<Range<usize>>,
}

impl<Event> EmittedEvents<Event> {
    #[inline]
    fn check(&mut self) -> bool {
        let heads = self.events.len() * EVENT_HEAD_LENGTH;
        if heads + self.tags.len() + self.payloads.len() > self.length_max {
            let most = self.length_max;
            self.fault =
                Some(format!("its events have more than {most} bytes, and no more have room in a transaction"));
        }
        self.fault.is_none()
    }

    #[cold]
    fn truncate(&mut self, events: usize) {
        self.events.truncate(events);
        let tags = self.events.last().map_or(0, |last| last.tags.end);
        let payloads = self.events.last().and_then(|last| last.payload.as_ref()).map_or(0, |payload| payload.end);
        self.tags.truncate(tags);
        self.payloads.truncate(payloads);
        // One event may have been far larger than the limit.
        self.payloads.shrink_to(self.length_max);
    }
}

impl<Event: Message> EventSink<Event> for EmittedEvents<Event> {
    #[inline]
    fn put(&mut self, event: Event) {
        if self.fault.is_some() {
            return;
        }
        let tags = self.tags.len()..self.tags.len();
        if self.events.len() < ENCODED_LATER {
            self.events.push(EmittedEvent { event, tags, payload: None });
            return;
        }
        let begin = self.payloads.len();
        match encode(&event, self.version, &mut self.payloads) {
            Err(error) => self.fault = Some(error.to_string()),
            Ok(()) if self.events.len() == EVENTS_MAX => {
                self.fault = Some(format!("more than {EVENTS_MAX} events, and a transaction has no more"));
            }
            Ok(()) => {
                if self.check() {
                    self.events.push(EmittedEvent { event, tags, payload: Some(begin..self.payloads.len()) });
                }
            }
        }
    }

    fn tag(&mut self, name: &str, value: &[u8]) {
        if self.fault.is_none() {
            write_tag(&mut self.tags, name, value);
            let last = self.events.last_mut().expect("an event is tagged behind its emission");
            last.tags.end = self.tags.len();
            self.check();
        }
    }
}

#[inline]
fn encode<Event: Message>(event: &Event, version: u32, out: &mut Vec<u8>) -> Result<(), MessageError> {
    if version == Event::VERSION { event.encode(out) } else { event.encode_as(version, out) }
}

pub(crate) fn write_tag(tags: &mut Vec<u8>, name: &str, value: &[u8]) {
    let (name, value) = cut_tag(name, value);
    for part in [name.as_bytes(), value] {
        tags.push(part.len() as u8);
        tags.extend_from_slice(part);
    }
}

impl<A: Aggregate> TypedAggregate<A> {
    pub fn new(snapshot_format: Option<SnapshotFormat>) -> Self {
        let emitted = EmittedEvents {
            events: Vec::new(),
            tags: Vec::new(),
            payloads: Vec::new(),
            version: A::Event::VERSION,
            length_max: usize::MAX,
            fault: None,
        };
        Self { emitted, snapshot_format }
    }
}

const OWN_STATE: &str = "a state is handed to the type that made it";

impl<A: Aggregate> ErasedAggregate for TypedAggregate<A> {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn key(&self) -> TypeKey {
        const { TypeKey::of(A::NAME) }
    }

    fn command(&self) -> MessageTypeId {
        MessageTypeId::of::<A::Command>()
    }

    fn event(&self) -> MessageTypeId {
        MessageTypeId { version: self.emitted.version, ..MessageTypeId::of::<A::Event>() }
    }

    fn become_version(&mut self, version: u32) {
        self.emitted.version = A::event_version(version);
    }

    fn new_of_same_type(&self) -> Box<dyn ErasedAggregate> {
        Box::new(Self::new(self.snapshot_format))
    }

    fn snapshot_format(&self) -> Option<&SnapshotFormat> {
        self.snapshot_format.as_ref()
    }

    fn create(&self, id: &[u8]) -> Option<ErasedState> {
        Some(Box::new(A::new(&A::Id::read(id)?)))
    }

    fn copy(&self, state: &ErasedState) -> ErasedState {
        Box::new(state.downcast_ref::<A>().expect(OWN_STATE).clone())
    }

    #[inline]
    fn limit(&mut self, length_max: usize) {
        self.emitted.length_max = length_max;
    }

    fn decide(
        &mut self,
        state: &ErasedState,
        version: u64,
        command: CommandInput<'_>,
        context: DecisionContext<'_>,
    ) -> Result<Range<usize>, DecideError> {
        let command = match command {
            CommandInput::Bytes(version, bytes) => {
                A::Command::decode_as(version, bytes).map_err(DecideError::NoCommand)?
            }
            CommandInput::Value(command) => {
                let command = command.downcast_mut::<Option<A::Command>>().and_then(Option::take);
                command.expect("a handler hands over a command of the aggregate's type")
            }
        };
        match A::creation(&command) {
            Creation::MustExist if version == 0 => return Err(DecideError::NotFound),
            Creation::Creates if version > 0 => return Err(DecideError::AlreadyExists),
            _ => {}
        }
        let state = state.downcast_ref::<A>().expect(OWN_STATE);
        let first = self.emitted.events.len();
        let decided = state.decide(command, &mut Decision::new(context, version, &mut self.emitted));
        let fault = self.emitted.fault.take();
        if decided.is_ok() && fault.is_none() {
            return Ok(first..self.emitted.events.len());
        }
        self.emitted.truncate(first);
        let Err(refusal) = decided else { return Err(DecideError::Impossible(fault.expect("it was looked at"))) };
        let mut bytes = Vec::new();
        refusal.encode(&mut bytes).map_err(|error| DecideError::Impossible(error.to_string()))?;
        Err(DecideError::Refused(MessageTypeId::of::<A::Refusal>(), bytes))
    }

    fn put(&mut self, event: &mut dyn Any) -> Result<Range<usize>, String> {
        let event = event.downcast_mut::<Option<A::Event>>().and_then(Option::take);
        let first = self.emitted.events.len();
        self.emitted.put(event.expect("a handler hands over an event of the aggregate's type"));
        match self.emitted.fault.take() {
            None => Ok(first..first + 1),
            Some(fault) => {
                self.emitted.truncate(first);
                Err(fault)
            }
        }
    }

    fn tag(&mut self, name: &str, value: &[u8]) {
        self.emitted.tag(name, value);
    }

    #[inline]
    fn write(&self, event: usize, out: &mut Vec<u8>) -> Result<(), MessageError> {
        let EmittedEvent { event, payload, .. } = &self.emitted.events[event];
        match payload {
            Some(payload) => out.extend_from_slice(&self.emitted.payloads[payload.clone()]),
            None => encode(event, self.emitted.version, out)?,
        }
        Ok(())
    }

    #[inline]
    fn tags(&self, event: usize) -> &[u8] {
        &self.emitted.tags[self.emitted.events[event].tags.clone()]
    }

    #[inline]
    fn apply(&self, state: &mut ErasedState, events: Range<usize>) {
        let state = state.downcast_mut::<A>().expect(OWN_STATE);
        self.emitted.events[events].iter().for_each(|emission| state.apply(&emission.event));
    }

    fn fold(&self, state: &mut ErasedState, event: &OldEvent<'_>) -> Result<(), MessageError> {
        if let Some(event) = old_event::read::<A>(event)? {
            state.downcast_mut::<A>().expect(OWN_STATE).apply(&event);
        }
        Ok(())
    }

    #[inline]
    fn clear(&mut self) {
        self.emitted.events.clear();
        self.emitted.tags.clear();
        self.emitted.payloads.clear();
        if self.emitted.fault.is_some() {
            self.emitted.fault = None;
        }
    }
}
