//! `FoundEvents`: reads the events of a filter by the index.

use crate::event_filter::EventFilter;
use crate::events::{AdvanceResult, EventReader, ReadError, RecordedTransaction};
use crate::identity::Position;
use crate::open_readers::{OpenReaders, ReaderPosition};
use crate::store::{FilterSearch, IndexKey};
use crate::transaction::{EventCursor, RecordedEvent};
use std::time::Duration;

pub(crate) trait PositionSource: Send {
    /// The index has all frames released by now.
    fn through(&self) -> Result<u64, ReadError>;

    fn find(&self, key: IndexKey, from: Position, limit: usize) -> Result<Vec<Position>, ReadError>;

    /// Earlier events are deleted, or may be at any time; 0: none.
    fn deleted_before(&self) -> u64;

    /// During a rebuild positions may be missing.
    fn rebuilds(&self) -> u64;
}

/// Reads the events of a filter by the index, in order. Returns `None` at the end, and continues once there are more.
pub struct FoundEvents {
    filter: EventFilter,
    search: FilterSearch,
    positions: Box<dyn PositionSource>,
    reader: EventReader,
    /// Later positions are not looked up yet.
    through: u64,
    /// Value of [`PositionSource::rebuilds`] from before `through` was read.
    rebuilds: u64,
    next: Position,
    read_sequence: Option<u64>,
    cursor: EventCursor,
    /// Deletions must not pass this position.
    position: ReaderPosition,
}

impl FoundEvents {
    pub(crate) fn new(
        filter: EventFilter,
        from: Position,
        positions: Box<dyn PositionSource>,
        reader: EventReader,
        readers: &OpenReaders,
    ) -> Self {
        let (search, position) = (FilterSearch::new(&filter), readers.open(from.sequence));
        let rebuilds = positions.rebuilds();
        Self {
            filter,
            search,
            positions,
            reader,
            through: 0,
            rebuilds,
            next: from,
            read_sequence: None,
            cursor: EventCursor::default(),
            position,
        }
    }

    /// All events of the filter up to here were read once [`next_event`](Self::next_event) has returned `None`; for
    /// [`Draft::only_if_none`](crate::Draft::only_if_none).
    #[must_use]
    pub const fn read_through(&self) -> Position {
        Position { sequence: self.through, ordinal: u16::MAX }
    }

    /// Like [`EventReader::wait`], for any frame.
    ///
    /// # Errors
    /// The same as for [`EventReader::wait`].
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, ReadError> {
        self.reader.wait_for(self.next.sequence.max(self.through + 1), timeout)
    }

    fn next_position(&mut self) -> Result<Option<Position>, ReadError> {
        loop {
            let find = |key, from, limit| self.positions.find(key, from, limit);
            let found = self.search.next(self.next, self.through, find);
            // After the lookup, because it misses events deleted meanwhile or during a rebuild.
            let first = self.positions.deleted_before();
            if self.next.sequence < first {
                return Err(ReadError::Deleted { sequence: self.next.sequence, first });
            }
            let rebuilds = self.positions.rebuilds();
            if std::mem::replace(&mut self.rebuilds, rebuilds) != rebuilds {
                (self.search, self.through) = (FilterSearch::new(&self.filter), 0);
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

    /// Next event, with its transaction; `None` at the end of the released ones.
    ///
    /// # Errors
    /// [`ReadError::Deleted`]; [`ReadError::NoIndex`] at tier `memory`; [`ReadError::IndexBehind`] during a rebuild; a
    /// damaged index file, to be rebuilt; errors of [`EventReader::next_transaction`].
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
                    AdvanceResult::Transaction if self.reader.found_sequence() == position.sequence => {}
                    // Indexed frames are released, so the event must be there.
                    _ => return Err(ReadError::NotThere(position)),
                }
                self.read_sequence = Some(position.sequence);
            }
            let found =
                self.reader.event_at(position, self.cursor)?.map(|(event, cursor)| (self.filter.has(&event), cursor));
            // Set only after the read, so that an error skips no event.
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
