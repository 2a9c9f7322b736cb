//! [`FoundEvents`]: the events of one aggregate, with one tag or of one type, found by the index.

use crate::aggregate::Aggregate;
use crate::events::{Advanced, EventReader, ReadError, RecordedTransaction};
use crate::identity::{AggregateId as _, ID_LENGTH_MAX, Position, TypeKey};
use crate::store::IndexKey;
use crate::transaction::RecordedEvent;
use gapless_message::Message;
use std::collections::VecDeque;

/// Positions that are looked up at a time.
const POSITIONS: usize = 4096;

/// Which events are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Aggregate(TypeKey, Vec<u8>),
    Tag(String, Vec<u8>),
    Type(TypeKey),
}

impl EventFilter {
    /// Those of an aggregate.
    #[must_use]
    pub fn aggregate<A: Aggregate>(id: &A::Id) -> Self {
        let mut bytes = [0; ID_LENGTH_MAX];
        // One that is too long has no events: no command for it can be sent.
        let length = id.write(&mut bytes).unwrap_or(0);
        Self(Kind::Aggregate(TypeKey::of(A::NAME), bytes[..length].to_vec()))
    }

    /// Those with a tag.
    #[must_use]
    pub fn tag(name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        Self(Kind::Tag(name.into(), value.into()))
    }

    /// Those of a type.
    #[must_use]
    pub fn event<E: Message>() -> Self {
        Self(Kind::Type(TypeKey::of(E::TYPE_NAME)))
    }

    fn key(&self) -> IndexKey {
        match &self.0 {
            Kind::Aggregate(aggregate, id) => IndexKey::of_aggregate(*aggregate, id),
            Kind::Tag(name, value) => IndexKey::of_tag(name, value),
            Kind::Type(event) => IndexKey::of_type(*event),
        }
    }

    /// Whether it has this event: others may have the same key in the index.
    #[must_use]
    pub fn has(&self, event: &RecordedEvent<'_>) -> bool {
        match &self.0 {
            Kind::Aggregate(aggregate, id) => event.aggregate == *aggregate && *event.id == **id,
            Kind::Tag(name, value) => event.tags().any(|tag| tag == (&**name, &**value)),
            Kind::Type(key) => event.event == *key,
        }
    }
}

/// Where positions are found.
pub(crate) trait Positions: Send {
    /// The first `limit` positions of a key from one on, of all that is released by now.
    ///
    /// # Errors
    /// There is no index, it is not whole yet, or a file of it cannot be read.
    fn find(&self, key: IndexKey, from: Position, limit: usize) -> Result<Vec<Position>, ReadError>;
}

/// Reads the events that a filter has, in the order of the stream, from a position on. At the end it says so, and goes on when there is more.
pub struct FoundEvents {
    filter: EventFilter,
    positions: Box<dyn Positions>,
    reader: EventReader,
    /// Found, and not read yet.
    found: VecDeque<Position>,
    /// Everything before it is read.
    next: Position,
    /// The transaction that the reader has read.
    read_sequence: Option<u64>,
}

impl FoundEvents {
    pub(crate) fn new(filter: EventFilter, from: Position, positions: Box<dyn Positions>, reader: EventReader) -> Self {
        Self { filter, positions, reader, found: VecDeque::new(), next: from, read_sequence: None }
    }

    /// The next event, with the transaction that it is of; `None` where nothing more is released yet.
    ///
    /// # Errors
    /// [`ReadError::NoIndex`] at tier `memory`; [`ReadError::IndexBehind`] while an index is made anew; an index file that is damaged, which is
    /// made anew by and by; and as [`EventReader::next_transaction`].
    pub fn next_event(&mut self) -> Result<Option<(RecordedTransaction<'_>, RecordedEvent<'_>)>, ReadError> {
        loop {
            if self.found.is_empty() {
                self.found = self.positions.find(self.filter.key(), self.next, POSITIONS)?.into();
            }
            let Some(position) = self.found.pop_front() else { return Ok(None) };
            self.next = Position { ordinal: position.ordinal.saturating_add(1), ..position };
            if self.read_sequence != Some(position.sequence) {
                let begin = Position { sequence: position.sequence, ordinal: 0 };
                if self.reader.next_sequence() != position.sequence {
                    self.reader.seek(begin);
                }
                self.read_sequence = None;
                if !matches!(self.reader.advance(usize::MAX)?, Advanced::Transaction) {
                    return Ok(None);
                }
                self.read_sequence = Some(position.sequence);
            }
            if self.event_at(position)?.is_some_and(|event| self.filter.has(&event)) {
                let event = self.event_at(position)?.expect("it was there");
                return Ok(Some((self.reader.transaction()?, event)));
            }
        }
    }

    fn event_at(&self, position: Position) -> Result<Option<RecordedEvent<'_>>, ReadError> {
        let mut transaction = self.reader.transaction()?;
        while let Some(event) = transaction.next_event()? {
            if event.position == position {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }
}
