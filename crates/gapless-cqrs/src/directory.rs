//! `EventDirectory`: the events of a directory, read by another process: all released ones of a running command bus, or
//! those of a stopped one.

use crate::event_filter::EventFilter;
use crate::events::{AdvanceResult, EventReader, ReadError, RecordedTransaction};
use crate::identity::{AggregateId as _, IdForm, Position, TypeKey};
use crate::names::{MessageRole, TypeNames};
use crate::store::{FilterSearch, INDEX_FOLDER, IndexKey, ScanError, StoredIndex};
use crate::stored_frames::{JournalWriterState, StoredFrames};
use crate::transaction::RecordedEvent;
use gapless_client::stream_layout::StreamLayout;
use gapless_engine::directory_consistency::is_member;
use gapless_engine::snapshot;
use gapless_journal::{ArchiveOptions, ArchiveReport, ArchivedSegment, JournalError, JournalReader, inspect};
use gapless_stream::directory_record::DirectoryRecord;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const START_AWAITED: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// Failure to read a directory's events.
#[derive(Debug, thiserror::Error)]
pub enum EventDirectoryError {
    /// The journal is missing, incomplete or damaged.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Another process is opening the directory.
    #[error(
        "{}: {holder} holds the journal, but has not reported its released frames; try again when it has started",
        directory.display()
    )]
    NotStarted { directory: PathBuf, holder: String },
    /// The directory has another format, or belongs to a service that is not a command bus. Use the directory of a
    /// command bus.
    #[error("{}: {reason}", directory.display())]
    NotOfBus {
        directory: PathBuf,
        /// Kind of the directory, and the next step.
        reason: String,
    },
    /// Nothing was changed. Stop the host, or retry later.
    #[error(
        "{}: nothing can be archived yet: events must be in the index on disk, which a host writes after two million \
         entries, and in a snapshot, which it takes after ten million frames; it writes both when it stops",
        directory.display()
    )]
    NothingMayGo { directory: PathBuf },
    /// The folder of the index, the lock or the counters cannot be read. Check the permissions.
    #[error("{}: {error}", path.display())]
    System { path: PathBuf, error: io::Error },
    /// The events cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// A text that names nothing in a directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {reason}")]
pub struct NoSuchName {
    pub text: String,
    /// The expected names.
    pub reason: String,
}

/// Events of the directory of a bus or of a member, read-only: all released ones of a running bus, or those of a
/// stopped one. The last ones of a stopped member may lack a quorum.
#[derive(Debug)]
pub struct EventDirectory {
    layout: StreamLayout,
    /// Names recorded by the hosts.
    pub names: TypeNames,
    /// Why there are no names.
    pub names_error: Option<String>,
}

/// Events that match every filter.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// `None` selects every event.
    pub filters: Vec<EventFilter>,
    /// First position.
    pub from: Position,
    /// Last position, inclusive.
    pub until: Option<Position>,
}

impl Selection {
    #[must_use]
    pub fn has(&self, event: &RecordedEvent<'_>) -> bool {
        event.position >= self.from
            && self.until.is_none_or(|until| event.position <= until)
            && self.filters.iter().all(|filter| filter.has(event))
    }
}

impl EventDirectory {
    /// Opens a directory, or the folder `journal` in it; waits a few seconds for a starting host.
    ///
    /// # Errors
    /// The journal is missing, incomplete, damaged, or of another kind or format; the writer does not report released
    /// frames.
    pub fn open(directory: &Path) -> Result<Self, EventDirectoryError> {
        let is_journal = inspect::holds_journal(directory);
        let canonical = if is_journal { directory.canonicalize().ok() } else { None };
        let parent = canonical.as_deref().and_then(Path::parent);
        let layout = parent.map_or_else(|| StreamLayout::new(directory), StreamLayout::new);
        let not_of_bus = |reason| EventDirectoryError::NotOfBus { directory: directory.to_owned(), reason };
        let record = DirectoryRecord::read(&layout).map_err(|error| not_of_bus(error.to_string()))?;
        if let Some(reason) = record.and_then(|record| record.refusal(&["bus", "member"])) {
            return Err(not_of_bus(reason));
        }
        let is_empty = JournalReader::open_complete(layout.journal())?.last_sequence()? == 0;
        let until = Instant::now() + START_AWAITED;
        loop {
            let writing = JournalWriterState::read(&layout);
            match writing.map_err(|error| EventDirectoryError::System { path: layout.journal(), error })? {
                JournalWriterState::NoWriter | JournalWriterState::Released(1..) => break,
                // An empty stream, or a host that is still reading its earlier frames.
                JournalWriterState::Released(0) if is_empty || Instant::now() >= until => break,
                JournalWriterState::Silent(holder) if Instant::now() >= until => {
                    return Err(not_of_bus(format!("{holder} runs there, and has no command bus")));
                }
                JournalWriterState::Unknown(holder) if Instant::now() >= until => {
                    return Err(EventDirectoryError::NotStarted { directory: directory.to_owned(), holder });
                }
                JournalWriterState::Released(0) | JournalWriterState::Unknown(_) | JournalWriterState::Silent(_) => {
                    std::thread::sleep(PAUSE)
                }
            }
        }
        let (names, names_error) = match TypeNames::read(&layout.root().join(TypeNames::FILE_NAME)) {
            Ok(names) => (names, None),
            Err(error) => (TypeNames::default(), Some(error.to_string())),
        };
        Ok(Self { layout, names, names_error })
    }

    /// Parses `TYPE/ID` as the filter of an aggregate; without names, digits are a `u64`.
    ///
    /// # Errors
    /// There is no such type or identifier.
    pub fn aggregate_filter(&self, text: &str) -> Result<EventFilter, NoSuchName> {
        let no = |reason: String| NoSuchName { text: text.to_owned(), reason };
        let (name, id) = text.split_once('/').ok_or_else(|| no("TYPE/ID is expected, as account/7".to_owned()))?;
        let aggregate = self.aggregate_type(name)?;
        let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        let guessed = if is_number { u64::FORM } else { IdForm::Bytes };
        let form = self.names.aggregates.get(&aggregate).map_or(guessed, |named| named.id);
        let bytes = form.bytes(id).ok_or_else(|| no(format!("the identifiers of {name} are {}", form.words())))?;
        Ok(EventFilter::of_aggregate(aggregate, bytes))
    }

    /// Key of a type of aggregates, by name or as `0x` and digits.
    ///
    /// # Errors
    /// Names are known, and this is none.
    pub fn aggregate_type(&self, name: &str) -> Result<TypeKey, NoSuchName> {
        let names = self.names.aggregates.values().map(|named| &*named.name);
        self.key_of(name, names, "aggregates")
    }

    /// Filter of a type of events, by name or as `0x` and digits.
    ///
    /// # Errors
    /// Names are known, and this is none.
    pub fn type_filter(&self, name: &str) -> Result<EventFilter, NoSuchName> {
        let events = self.names.messages.values().filter(|named| named.role == MessageRole::Event);
        Ok(EventFilter::of_type(self.key_of(name, events.map(|named| &*named.name), "events")?))
    }

    fn key_of<'a>(&self, name: &str, names: impl Iterator<Item = &'a str>, what: &str) -> Result<TypeKey, NoSuchName> {
        if let Some(number) = name.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            return Ok(TypeKey(number));
        }
        let names: Vec<_> = names.collect();
        if self.names_error.is_none() && !names.contains(&name) {
            let reason = format!("there are no {what} of that type; there are {}", names.join(", "));
            return Err(NoSuchName { text: name.to_owned(), reason });
        }
        Ok(TypeKey::of(name))
    }

    /// The stream's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.layout.root()
    }

    /// Moves the journal's oldest segments to another place, where they stay readable, also next to a running host; see
    /// [`gapless_journal::archive`]. Calls `each` for each; returns the last sequence that could be archived by index
    /// and snapshot.
    ///
    /// Only indexed segments that the newest snapshot covers are moved, so a host starts without the archive, and needs
    /// it only for aggregates with events in it. Members have no snapshots, and need it.
    ///
    /// # Errors
    /// [`EventDirectoryError::NothingMayGo`]; the errors of [`gapless_journal::archive`].
    pub fn archive(
        &self,
        options: ArchiveOptions,
        each: impl FnMut(&ArchivedSegment),
    ) -> Result<(ArchiveReport, u64), EventDirectoryError> {
        let indexed = self.index(&mut self.reader())?.last_sequence();
        let covered = if is_member(&self.layout) { u64::MAX } else { self.newest_snapshot()? };
        let last_sequence = indexed.min(covered);
        if last_sequence == 0 {
            return Err(EventDirectoryError::NothingMayGo { directory: self.layout.root().to_owned() });
        }
        let before = options.before_sequence.unwrap_or(u64::MAX).min(last_sequence + 1);
        let options = ArchiveOptions { before_sequence: Some(before), ..options };
        Ok((gapless_journal::archive(&self.layout.journal(), &options, each)?, last_sequence))
    }

    /// 0 without any.
    fn newest_snapshot(&self) -> Result<u64, EventDirectoryError> {
        let path = self.layout.snapshots();
        let snapshots = snapshot::list(&path);
        let failed = |error| EventDirectoryError::System { path, error: io::Error::other(error) };
        Ok(snapshots.map_err(failed)?.iter().map(|(sequence, _)| *sequence).max().unwrap_or(0))
    }

    /// All released events from a position on.
    #[must_use]
    pub fn events(&self, from: Position) -> EventReader {
        let mut reader = self.reader();
        reader.seek(from);
        reader
    }

    pub(crate) fn reader(&self) -> EventReader {
        EventReader::stored(StoredFrames::new(self.layout.clone()))
    }

    pub(crate) fn index(&self, reader: &mut EventReader) -> Result<StoredIndex, EventDirectoryError> {
        let path = self.layout.root().join(INDEX_FOLDER);
        StoredIndex::open(&path, reader).map_err(|error| match error {
            ScanError::System(error) => EventDirectoryError::System { path, error },
            ScanError::Stream(error) => error.into(),
        })
    }

    /// First readable sequence, if earlier events are deleted.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn first_after_deleted(&self) -> Result<Option<u64>, EventDirectoryError> {
        let first = self.reader().first_held()?;
        Ok((first > 1).then_some(first))
    }

    /// Transactions that may have selected events: by the index if there is one and a filter, else (and after its end)
    /// by a scan. By default from the journal's first frame on.
    ///
    /// # Errors
    /// [`ReadError::Deleted`]; the index cannot be read; the journal is gone.
    pub fn transactions(&self, selection: Selection) -> Result<SelectedTransactions, EventDirectoryError> {
        let mut reader = self.reader();
        let (sequence, first) = (selection.from.sequence, reader.first_held()?);
        if (1..first).contains(&sequence) {
            return Err(ReadError::Deleted { sequence, first }.into());
        }
        let mut found_by = None;
        if let Some(filter) = selection.filters.iter().cloned().reduce(EventFilter::and) {
            let index = self.index(&mut reader)?;
            found_by = (index.last_sequence() > 0).then(|| (FilterSearch::new(&filter), index));
        }
        let begin = match selection.from {
            Position { sequence: 0, .. } => Position { sequence: reader.first_held()?, ordinal: 0 },
            from => from,
        };
        reader.seek(begin);
        Ok(SelectedTransactions { selection, reader, found_by, next: begin, is_over: false })
    }

    /// Lists the first `limit` aggregates with selected events, by first such event, and counts the others.
    ///
    /// # Errors
    /// Errors of [`SelectedTransactions::next_transaction`].
    pub fn aggregates(
        &self,
        selection: Selection,
        of_type: Option<TypeKey>,
        limit: usize,
    ) -> Result<(Vec<ListedAggregate>, u64), EventDirectoryError> {
        let (mut listed, mut places) = (Vec::new(), FxHashMap::<(TypeKey, Box<[u8]>), usize>::default());
        let mut others = FxHashSet::default();
        let mut transactions = self.transactions(selection.clone())?;
        while let Some(mut transaction) = transactions.next_transaction()? {
            while let Some(event) = transaction.next_event()? {
                let is_meant = of_type.map_or(event.aggregate != TypeKey::NONE, |meant| event.aggregate == meant);
                if !is_meant || !selection.has(&event) {
                    continue;
                }
                let place = match places.get(&(event.aggregate, event.id.into())) {
                    Some(place) => *place,
                    None if listed.len() == limit => {
                        others.insert(IndexKey::of_aggregate(event.aggregate, event.id));
                        continue;
                    }
                    None => {
                        places.insert((event.aggregate, event.id.into()), listed.len());
                        listed.push(ListedAggregate {
                            aggregate: event.aggregate,
                            id: event.id.to_vec(),
                            events: 0,
                            first: event.position,
                            last: event.position,
                            last_time_ns: 0,
                        });
                        listed.len() - 1
                    }
                };
                let entry = &mut listed[place];
                entry.events += 1;
                (entry.last, entry.last_time_ns) = (event.position, transaction.time_ns);
            }
        }
        Ok((listed, others.len() as u64))
    }

    /// Counts everything by a scan.
    ///
    /// # Errors
    /// Errors of [`SelectedTransactions::next_transaction`].
    pub fn statistics(&self) -> Result<EventStatistics, EventDirectoryError> {
        let mut statistics = EventStatistics::default();
        let mut reader = self.reader();
        let index = self.index(&mut reader)?;
        let indexed = index.last_sequence();
        let mut distinct = FxHashSet::default();
        let mut transactions = self.transactions(Selection::default())?;
        while let Some(mut transaction) = transactions.next_transaction()? {
            statistics.transactions += 1;
            let (sequence, time_ns) = (transaction.sequence, transaction.time_ns);
            while let Some(event) = transaction.next_event()? {
                statistics.first.get_or_insert((event.position, time_ns));
                statistics.last = Some((event.position, time_ns));
                statistics.events += 1;
                statistics.payload_bytes += event.payload.len() as u64;
                statistics.index.events += u64::from(sequence <= indexed);
                *statistics.types.entry((event.event, event.version)).or_default() += 1;
                if event.aggregate != TypeKey::NONE {
                    let counted = statistics.aggregates.entry(event.aggregate).or_default();
                    counted.events += 1;
                    counted.aggregates += u64::from(distinct.insert(IndexKey::of_aggregate(event.aggregate, event.id)));
                }
            }
        }
        let (runs, postings, bytes) = index.size();
        statistics.index = IndexStatistics {
            runs,
            postings,
            bytes,
            last_sequence: indexed,
            unusable: index.unusable,
            ..statistics.index
        };
        let journal = inspect::info(self.layout.journal())?;
        statistics.segments = journal.segments.len();
        statistics.segment_bytes = journal.segments.iter().map(|segment| segment.used_bytes).sum();
        statistics.archived_segments = journal.segments.iter().filter(|segment| segment.archived.is_some()).count();
        (statistics.first_sequence, statistics.last_sequence) =
            (journal.first_sequence(), journal.journaled_sequence());
        Ok(statistics)
    }
}

/// A listed aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAggregate {
    /// Key of its type.
    pub aggregate: TypeKey,
    /// Encoded identifier.
    pub id: Vec<u8>,
    /// Selected events.
    pub events: u64,
    /// First of them.
    pub first: Position,
    /// Position of the last of them.
    pub last: Position,
    /// Time of the last, ns since the epoch.
    pub last_time_ns: u64,
}

/// Statistics of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventStatistics {
    /// Transactions with events.
    pub transactions: u64,
    /// Number of events.
    pub events: u64,
    /// Bytes of the payloads alone.
    pub payload_bytes: u64,
    /// First event: position and time, ns since the epoch.
    pub first: Option<(Position, u64)>,
    /// Last event: position and time, ns since the epoch.
    pub last: Option<(Position, u64)>,
    /// Statistics by the key of the aggregates' type.
    pub aggregates: BTreeMap<TypeKey, AggregateStatistics>,
    /// Events by key and version of their type.
    pub types: BTreeMap<(TypeKey, u32), u64>,
    /// Segments of the journal.
    pub segments: usize,
    /// Disk usage of the segments, bytes.
    pub segment_bytes: u64,
    /// Archived segments.
    pub archived_segments: usize,
    /// First sequence in the journal.
    pub first_sequence: u64,
    /// Last sequence of the journal.
    pub last_sequence: u64,
    /// Index files.
    pub index: IndexStatistics,
}

/// Statistics of the aggregates of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AggregateStatistics {
    /// Aggregates with events.
    pub aggregates: u64,
    /// Number of events.
    pub events: u64,
}

/// Statistics of the index files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatistics {
    /// Files; each is a run of the stream.
    pub runs: usize,
    /// Positions in them; each event has one under each of its keys.
    pub postings: u64,
    /// Size of the files, bytes.
    pub bytes: u64,
    /// Number of events in them.
    pub events: u64,
    /// Last indexed sequence.
    pub last_sequence: u64,
    /// Invalid files, with reasons.
    pub unusable: Vec<(PathBuf, String)>,
}

/// Transactions that may have selected events, in order.
pub struct SelectedTransactions {
    selection: Selection,
    reader: EventReader,
    found_by: Option<(FilterSearch, StoredIndex)>,
    next: Position,
    is_over: bool,
}

impl SelectedTransactions {
    /// Next transaction; `None` at the end of the released frames or of the selection. [`Selection::has`] tells which
    /// events are selected.
    ///
    /// # Errors
    /// A damaged index, whose folder may be removed while no host runs; a damaged journal, or one without the
    /// transaction; a transaction that does not decode.
    pub fn next_transaction(&mut self) -> Result<Option<RecordedTransaction<'_>>, ReadError> {
        if self.is_over {
            return Ok(None);
        }
        self.find()?;
        if !matches!(self.reader.advance(usize::MAX)?, AdvanceResult::Transaction) {
            return Ok(None);
        }
        let transaction = self.reader.transaction()?;
        if self.selection.until.is_some_and(|until| transaction.sequence > until.sequence) {
            self.is_over = true;
            return Ok(None);
        }
        Ok(Some(transaction))
    }

    /// Complete, whatever is released later.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    fn find(&mut self) -> Result<(), ReadError> {
        let Some((search, index)) = &mut self.found_by else { return Ok(()) };
        let indexed = index.last_sequence();
        let found = search.next(self.next, indexed, |key, from, limit| index.find(key, from, limit))?;
        let begin = match found {
            Some(position) => Position { sequence: position.sequence, ordinal: 0 },
            None => {
                self.found_by = None;
                Position { sequence: self.next.sequence.max(indexed + 1), ordinal: 0 }
            }
        };
        if self.reader.next_sequence() != begin.sequence {
            self.reader.seek(begin);
        }
        self.next = Position { sequence: begin.sequence + 1, ordinal: 0 };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
