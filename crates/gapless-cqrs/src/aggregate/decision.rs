//! [`Decision`]: what *decide* may know of its command, and where it puts its events.

use super::Entity;
use crate::identity::Position;
use crate::origin::{Cause, Origin};
use gapless_engine::random;
use gapless_message::headers::Headers;
use std::borrow::Cow;
use std::cell::Cell;

/// What a decision may know beside state and command. It is the same for all events of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The time that the stream has given the command, ns since the epoch.
    pub time_ns: u64,
    /// The sequence number of the transaction.
    pub sequence: u64,
    /// Who sent it: the session, and the number of the command in it, which together are the command's identifier.
    pub session: u64,
    /// The number of the command in its session.
    pub number: u64,
    /// Encoded headers.
    pub(crate) metadata: &'a [u8],
    /// Random numbers so far, of the whole transaction.
    pub(crate) drawn: &'a Cell<u64>,
}

impl<'a> Circumstances<'a> {
    /// What the caller has sent along: metadata, which goes on with the events.
    ///
    /// # Panics
    /// Never: what is none does not get as far as here.
    #[must_use]
    pub fn headers(&self) -> Headers {
        Headers::decode(self.metadata).expect("they were looked at before")
    }

    /// The first header of that name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        Headers::find_encoded(self.metadata, name)
    }

    /// The next random number of the transaction, any of the 2⁶⁴: made of the command's sequence and time, by an algorithm that stays
    /// ([`gapless_engine::random`]). Handlers and all aggregates that decide in one transaction draw one after the other. Whoever knows
    /// sequence and time can tell it: no secret is made of it.
    #[must_use]
    pub fn random(&self) -> u64 {
        let drawn = self.drawn.get();
        self.drawn.set(drawn + 1);
        random::number(self.sequence, self.time_ns, drawn)
    }

    /// The next random number of the transaction, below `limit`.
    ///
    /// # Panics
    /// If `limit` is 0.
    #[must_use]
    pub fn random_below(&self, limit: u64) -> u64 {
        random::below(self.random(), limit)
    }

    /// What the command belongs to: its header [`CORRELATION`](crate::origin::CORRELATION), or its own identity if it is the first of what follows.
    #[must_use]
    pub fn correlation(&self) -> Cow<'a, [u8]> {
        self.origin().correlation()
    }

    /// What it was sent for, if that is an event or a command of the stream.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.origin().cause()
    }

    const fn origin(&self) -> Origin<'a> {
        Origin { session: self.session, number: self.number, metadata: self.metadata }
    }
}

/// What *decide* may know of its command, and where it puts its events.
pub struct Decision<'a, Event> {
    circumstances: Circumstances<'a>,
    /// Events that the transaction has before the first one from here.
    version: u64,
    events: &'a mut dyn Events<Event>,
}

/// Where events are put.
pub(super) trait Events<Event> {
    fn put(&mut self, event: Event);

    /// Gives the last one that was put a tag.
    fn tag(&mut self, name: &str, value: &[u8]);
}

/// Tags of the event that was emitted last.
pub struct Tags<'a, Event>(&'a mut dyn Events<Event>);

impl<Event> Tags<'_, Event> {
    /// Says what the event is about beside its aggregate, so that it is found by that: readers and decisions look events up by tags. Name
    /// and value have at most 255 bytes each; what is longer is cut there.
    pub fn tag(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.0.tag(name, value.as_ref());
        self
    }
}

impl<'a, Event> Decision<'a, Event> {
    pub(super) fn new(circumstances: Circumstances<'a>, version: u64, events: &'a mut dyn Events<Event>) -> Self {
        Self { circumstances, version, events }
    }

    /// Decides that this happens.
    #[inline]
    pub fn emit(&mut self, event: Event) -> Tags<'_, Event> {
        self.events.put(event);
        Tags(&mut *self.events)
    }

    /// How many events the aggregate has had before this command; 0 of one that is being created.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The time that the stream has given the command, ns since the epoch. There is no other clock in a decision.
    #[must_use]
    pub const fn time_ns(&self) -> u64 {
        self.circumstances.time_ns
    }

    /// As [`Circumstances::random`].
    #[must_use]
    pub fn random(&self) -> u64 {
        self.circumstances.random()
    }

    /// As [`Circumstances::random_below`].
    ///
    /// # Panics
    /// If `limit` is 0.
    #[must_use]
    pub fn random_below(&self, limit: u64) -> u64 {
        self.circumstances.random_below(limit)
    }

    /// The position of the transaction's first event: a number that no other transaction of the stream has, good for identifiers of what the
    /// decision creates.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position { sequence: self.circumstances.sequence, ordinal: 0 }
    }

    /// What else it may know.
    #[must_use]
    pub const fn circumstances(&self) -> &Circumstances<'a> {
        &self.circumstances
    }

    /// Lets a part of the aggregate decide; `wrap` makes an event of the aggregate of each of the part's.
    ///
    /// # Errors
    /// The entity's refusal.
    pub fn entity<E: Entity>(
        &mut self,
        entity: &E,
        command: E::Command,
        wrap: impl FnMut(E::Event) -> Event,
    ) -> Result<(), E::Refusal> {
        let mut wrapped = Wrapped { wrap, events: &mut *self.events };
        entity.decide(command, &mut Decision::new(self.circumstances, self.version, &mut wrapped))
    }
}

/// Events of a part on their way into the whole.
struct Wrapped<'a, Event, Wrap> {
    wrap: Wrap,
    events: &'a mut dyn Events<Event>,
}

impl<Event, Part, Wrap: FnMut(Part) -> Event> Events<Part> for Wrapped<'_, Event, Wrap> {
    fn put(&mut self, event: Part) {
        self.events.put((self.wrap)(event));
    }

    fn tag(&mut self, name: &str, value: &[u8]) {
        self.events.tag(name, value);
    }
}
