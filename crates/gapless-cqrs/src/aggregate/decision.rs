//! `Decision`: input of *decide* besides state and command, and the receiver of its events.

use super::Entity;
use crate::identity::Position;
use crate::origin::{Cause, CommandOrigin};
use gapless_engine::random;
use gapless_message::headers::Headers;
use std::borrow::Cow;
use std::cell::Cell;

/// Input of a decision besides state and command.
#[derive(Clone, Copy, Debug)]
pub struct DecisionContext<'a> {
    /// Stream time of the command, ns since the epoch.
    pub time_ns: u64,
    /// Sequence of the transaction.
    pub sequence: u64,
    /// Session of the sender; with `number` the command's identity.
    pub session: u64,
    /// Number of the command in the session.
    pub number: u64,
    pub(crate) metadata: &'a [u8],
    /// Drawn so far in the whole transaction.
    pub(crate) drawn: &'a Cell<u64>,
}

impl<'a> DecisionContext<'a> {
    /// Headers of the command.
    ///
    /// # Panics
    /// Never: undecodable headers are refused before the decision.
    #[must_use]
    pub fn headers(&self) -> Headers {
        Headers::decode(self.metadata).expect("they were looked at before")
    }

    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        Headers::find_encoded(self.metadata, name)
    }

    /// Next random number of the transaction, from its sequence and time by a stable algorithm
    /// ([`gapless_engine::random`]): not for secrets. Handlers and aggregates of one transaction share the series.
    #[must_use]
    pub fn random(&self) -> u64 {
        let drawn = self.drawn.get();
        self.drawn.set(drawn + 1);
        random::number(self.sequence, self.time_ns, drawn)
    }

    /// Like [`DecisionContext::random_below`].
    ///
    /// # Panics
    /// If `limit` is 0.
    #[must_use]
    pub fn random_below(&self, limit: u64) -> u64 {
        random::below(self.random(), limit)
    }

    /// Header [`CORRELATION`](crate::origin::CORRELATION) of the command, or its own identity if it is the first of its
    /// chain.
    #[must_use]
    pub fn correlation(&self) -> Cow<'a, [u8]> {
        self.origin().correlation()
    }

    /// Event or command of the stream that caused this command.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.origin().cause()
    }

    const fn origin(&self) -> CommandOrigin<'a> {
        CommandOrigin { session: self.session, number: self.number, metadata: self.metadata }
    }
}

/// Input and output of one call of *decide*.
pub struct Decision<'a, Event> {
    context: DecisionContext<'a>,
    version: u64,
    events: &'a mut dyn EventSink<Event>,
}

pub(super) trait EventSink<Event> {
    fn put(&mut self, event: Event);

    fn tag(&mut self, name: &str, value: &[u8]);
}

/// Tags the event that was emitted last.
pub struct Tags<'a, Event>(&'a mut dyn EventSink<Event>);

impl<Event> Tags<'_, Event> {
    /// Adds a tag, by which readers and decisions find the event; name and value are cut after 255 bytes.
    pub fn tag(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.0.tag(name, value.as_ref());
        self
    }
}

impl<'a, Event> Decision<'a, Event> {
    pub(super) fn new(context: DecisionContext<'a>, version: u64, events: &'a mut dyn EventSink<Event>) -> Self {
        Self { context, version, events }
    }

    /// Emits an event.
    #[inline]
    pub fn emit(&mut self, event: Event) -> Tags<'_, Event> {
        self.events.put(event);
        Tags(&mut *self.events)
    }

    /// Version of the aggregate before this command, in events; 0 for one that is being created.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Stream time of the command, ns since the epoch; a decision must use no other clock.
    #[must_use]
    pub const fn time_ns(&self) -> u64 {
        self.context.time_ns
    }

    /// Like [`DecisionContext::random`].
    #[must_use]
    pub fn random(&self) -> u64 {
        self.context.random()
    }

    /// Like [`DecisionContext::random_below`].
    ///
    /// # Panics
    /// If `limit` is 0.
    #[must_use]
    pub fn random_below(&self, limit: u64) -> u64 {
        self.context.random_below(limit)
    }

    /// Position of the first event, unique in the stream: identifies an object that the decision creates.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position { sequence: self.context.sequence, ordinal: 0 }
    }

    #[must_use]
    pub const fn context(&self) -> &DecisionContext<'a> {
        &self.context
    }

    /// Lets a part of the aggregate decide; `wrap` turns the part's events into the aggregate's.
    ///
    /// # Errors
    /// The entity's refusal.
    pub fn entity<E: Entity>(
        &mut self,
        entity: &E,
        command: E::Command,
        wrap: impl FnMut(E::Event) -> Event,
    ) -> Result<(), E::Refusal> {
        let mut wrapped = EntityEventSink { wrap, events: &mut *self.events };
        entity.decide(command, &mut Decision::new(self.context, self.version, &mut wrapped))
    }
}

struct EntityEventSink<'a, Event, Wrap> {
    wrap: Wrap,
    events: &'a mut dyn EventSink<Event>,
}

impl<Event, Part, Wrap: FnMut(Part) -> Event> EventSink<Part> for EntityEventSink<'_, Event, Wrap> {
    fn put(&mut self, event: Part) {
        self.events.put((self.wrap)(event));
    }

    fn tag(&mut self, name: &str, value: &[u8]) {
        self.events.tag(name, value);
    }
}
