//! [`FoundEvents`]: the events that a filter has, found by the index.

use crate::event_filter::EventFilter;
use crate::events::{Advanced, EventReader, ReadError, RecordedTransaction};
use crate::identity::Position;
use crate::open_readers::{OpenReaders, ReaderPosition};
use crate::store::{IndexKey, Search};
use crate::transaction::{EventCursor, RecordedEvent};
use std::time::Duration;

/// Where positions are found.
pub(crate) trait Positions: Send {
    /// The last sequence up to which all is found, which is all that is released by now.
    ///
    /// # Errors
    /// There is no index, or it is not whole yet.
    fn through(&self) -> Result<u64, ReadError>;

    /// The first `limit` positions of a key from one on.
    ///
    /// # Errors
    /// A file of the index cannot be read.
    fn find(&self, key: IndexKey, from: Position, limit: usize) -> Result<Vec<Position>, ReadError>;

    /// Events before that sequence are deleted, or may be at any time; 0 if none are.
    fn deleted_before(&self) -> u64;

    /// How often all was made anew: meanwhile not all is found up to where it was.
    fn times_made(&self) -> u64;
}

/// Reads the events that a filter has, in the order of the stream, from a position on. At the end it says so, and goes on when there is more.
pub struct FoundEvents {
    filter: EventFilter,
    search: Search,
    positions: Box<dyn Positions>,
    reader: EventReader,
    /// What is behind it is looked for later.
    through: u64,
    /// [`Positions::times_made`], of before that.
    times_made: u64,
    /// Everything before it is read.
    next: Position,
    /// The transaction that the reader has read, and how far.
    read_sequence: Option<u64>,
    cursor: EventCursor,
    /// Where it is, for who deletes events.
    position: ReaderPosition,
}

impl FoundEvents {
    pub(crate) fn new(
        filter: EventFilter,
        from: Position,
        positions: Box<dyn Positions>,
        reader: EventReader,
        readers: &OpenReaders,
    ) -> Self {
        let (search, position) = (Search::new(&filter), readers.open(from.sequence));
        let times_made = positions.times_made();
        Self {
            filter,
            search,
            positions,
            reader,
            through: 0,
            times_made,
            next: from,
            read_sequence: None,
            cursor: EventCursor::default(),
            position,
        }
    }

    /// Where a decision stands that is made by what was read, once [`next_event`](Self::next_event) has said that there is nothing more: all
    /// events of the filter up to here were read. See [`Draft::only_if_none`](crate::Draft::only_if_none).
    #[must_use]
    pub const fn read_through(&self) -> Position {
        Position { sequence: self.through, ordinal: u16::MAX }
    }

    /// Sleeps until something is released behind what was read, at most for `timeout`: whether there is something, of which the filter may
    /// have nothing. As [`EventReader::wait`].
    ///
    /// # Errors
    /// As for [`EventReader::wait`].
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, ReadError> {
        self.reader.wait_for(self.next.sequence.max(self.through + 1), timeout)
    }

    /// The position of the next event that the filter may have.
    fn next_position(&mut self) -> Result<Option<Position>, ReadError> {
        loop {
            let find = |key, from, limit| self.positions.find(key, from, limit);
            let found = self.search.next(self.next, self.through, find);
            // Behind it: what is deleted or made anew meanwhile is not found.
            let first = self.positions.deleted_before();
            if self.next.sequence < first {
                return Err(ReadError::Deleted { sequence: self.next.sequence, first });
            }
            let times_made = self.positions.times_made();
            if std::mem::replace(&mut self.times_made, times_made) != times_made {
                (self.search, self.through) = (Search::new(&self.filter), 0);
                continue;
            }
            let found = found?;
            if found.is_some() {
                return Ok(found);
            }
            self.next = self.next.max(Position { sequence: self.through + 1, ordinal: 0 });
            self.position.set(self.next.sequence);
            let through = self.positions.through()?;
            if through == self.through {
                return Ok(None);
            }
            self.through = through;
        }
    }

    /// The next event, with the transaction that it is of; `None` where nothing more is released yet.
    ///
    /// # Errors
    /// [`ReadError::Deleted`] where it is to begin, or is, before what is deleted; [`ReadError::NoIndex`] at tier `memory`; [`ReadError::IndexBehind`] while an index is made anew; an index file that is damaged, which is
    /// made anew by and by; and as [`EventReader::next_transaction`].
    pub fn next_event(&mut self) -> Result<Option<(RecordedTransaction<'_>, RecordedEvent<'_>)>, ReadError> {
        loop {
            let Some(position) = self.next_position()? else { return Ok(None) };
            if self.read_sequence != Some(position.sequence) {
                let begin = Position { sequence: position.sequence, ordinal: 0 };
                if self.reader.next_sequence() != position.sequence {
                    self.reader.seek(begin);
                }
                (self.read_sequence, self.cursor) = (None, EventCursor::default());
                match self.reader.advance(usize::MAX)? {
                    Advanced::Transaction if self.reader.found_sequence() == position.sequence => {}
                    // It is released, or the index would not have it.
                    _ => return Err(ReadError::NotThere(position)),
                }
                self.read_sequence = Some(position.sequence);
            }
            let found =
                self.reader.event_at(position, self.cursor)?.map(|(event, cursor)| (self.filter.has(&event), cursor));
            // Nothing is passed over before it is read: behind an error this one is next.
            self.next = Position { ordinal: position.ordinal.saturating_add(1), ..position };
            self.position.set(self.next.sequence);
            if let Some((has, cursor)) = found {
                self.cursor = cursor;
                if has {
                    let (event, _) = self.reader.event_at(position, cursor)?.expect("it was there");
                    return Ok(Some((self.reader.transaction()?, event)));
                }
            }
        }
    }
}
