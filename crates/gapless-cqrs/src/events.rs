//! [`EventReader`]: the events of the stream, one transaction after the other, also live behind its end.

use crate::error::IndexFileError;
use crate::identity::Position;
use crate::open_readers::{OpenReaders, ReaderPosition};
use crate::origin::{Cause, Origin};
use crate::stored_frames::StoredFrames;
use crate::transaction::{CommandIdentity, EventCursor, RecordedEvent, RecordedEvents, has_events};
use gapless_agent::progress::{Progress, Waited};
use gapless_client::ClientError;
use gapless_client::replay_merge::{ReplayMerge, ReplayRead};
use gapless_engine::transaction_service::changes_of;
use gapless_message::headers::Headers;
use gapless_wire::descriptor::TRANSACTION_FLAG;
use gapless_wire::fields::FieldError;
use gapless_wire::{Fragment, Kind};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why events cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The stream does not have them any more, or is damaged, or gone.
    #[error(transparent)]
    Stream(#[from] ClientError),
    /// A file of the index cannot be read, or is damaged.
    #[error(transparent)]
    Index(#[from] IndexFileError),
    /// A stream without a journal has no index: it is read as one, by [`EventReader`].
    #[error("a stream at tier memory has no index; read all of its events")]
    NoIndex,
    /// The index is being made: read later, or all events.
    #[error("the index is being made, and is at {indexed} of {released}")]
    IndexBehind {
        /// The last sequence that is in it.
        indexed: u64,
        /// The last one that is released.
        released: u64,
    },
    /// Events from there on were asked for, and those before another position are deleted.
    #[error("the events before {first} are deleted, and what was asked for begins at {sequence}; read from {first} on")]
    Deleted {
        /// What was asked for, a sequence number.
        sequence: u64,
        /// The first one from which on events can be read.
        first: u64,
    },
    /// The index has an event where the stream has none.
    #[error(
        "the index has an event at {0}, and the stream has none there; its folder may be removed while no host runs"
    )]
    NotThere(Position),
    /// A transaction is none.
    #[error("the transaction {sequence} cannot be read: {reason}")]
    Transaction {
        /// Of its first frame.
        sequence: u64,
        /// What is wrong.
        reason: String,
    },
}

/// Reads the events of a stream from a position on, as far as they are released: what is read here is never taken back. It holds nobody up; at
/// the end it says so, and goes on when there is more, for which [`EventReader::wait`] waits.
pub struct EventReader {
    frames: Frames,
    /// The transaction that is read.
    bytes: Vec<u8>,
    /// How much of it at its end are its events.
    changes_length: usize,
    /// Of its first frame.
    first: First,
    /// Events before it are not handed out.
    from: Position,
    /// Of the last frame that was read.
    last_time_ns: u64,
    /// Whether the last frame that was read ends what it belongs to.
    is_between_transactions: bool,
    /// Where it is, for who deletes events.
    position: Option<ReaderPosition>,
    /// How far the host of the stream has come, for waiting.
    progress: Option<Arc<Progress>>,
}

/// The journal of another process is looked at this often: that wakes nobody here.
const STORED_LOOK: Duration = Duration::from_millis(10);

/// Where frames come from.
enum Frames {
    /// A stream of this process.
    Live(Box<ReplayMerge>),
    /// The journal of a directory.
    Stored(Box<StoredFrames>),
}

impl Frames {
    #[inline]
    fn read(&mut self) -> Result<ReplayRead<'_>, ClientError> {
        match self {
            Self::Live(frames) => frames.read(),
            Self::Stored(frames) => frames.read(),
        }
    }

    #[inline]
    fn sequence(&self) -> u64 {
        match self {
            Self::Live(frames) => frames.sequence(),
            Self::Stored(frames) => frames.sequence(),
        }
    }

    fn seek(&mut self, sequence: u64) {
        match self {
            Self::Live(frames) => frames.seek(sequence),
            Self::Stored(frames) => frames.seek(sequence),
        }
    }
}

#[derive(Clone, Copy, Default)]
struct First {
    sequence: u64,
    time_ns: u64,
    session: u64,
    number: u64,
}

/// A transaction that was released: the events of one command.
#[derive(Clone, Debug)]
pub struct RecordedTransaction<'a> {
    /// Its sequence number, of which its events have their positions.
    pub sequence: u64,
    /// The time that the stream has given it, ns since the epoch.
    pub time_ns: u64,
    /// Whose command it was.
    pub session: u64,
    /// The number of the command in its session.
    pub number: u64,
    from: Position,
    events: RecordedEvents<'a>,
}

impl<'a> RecordedTransaction<'a> {
    /// The identifier that the caller has given the command, if it has given one.
    #[must_use]
    pub const fn identity(&self) -> Option<CommandIdentity> {
        self.events.identity()
    }

    /// What the caller has sent along.
    #[must_use]
    pub fn headers(&self) -> Headers {
        self.events.headers().unwrap_or_default()
    }

    /// What its command belongs to: the header [`CORRELATION`](crate::origin::CORRELATION), or the command's own identity if it is the first of what
    /// has followed.
    #[must_use]
    pub fn correlation(&self) -> Cow<'a, [u8]> {
        self.origin().correlation()
    }

    /// What its command was sent for, if that is an event or a command of the stream.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.origin().cause()
    }

    /// The headers of a command that is sent because of one of its events: they say which, and what both belong to.
    #[must_use]
    pub fn headers_of_consequence(&self, event: Position) -> Headers {
        let mut headers = Headers::default();
        self.origin().carry_on(Cause::Event(event), &mut headers);
        headers
    }

    const fn origin(&self) -> Origin<'a> {
        Origin { session: self.session, number: self.number, metadata: self.events.encoded_headers() }
    }

    /// The next of its events; `None` behind the last.
    ///
    /// # Errors
    /// Bytes that are none.
    pub fn next_event(&mut self) -> Result<Option<RecordedEvent<'a>>, ReadError> {
        loop {
            let event = self.events.next_event().map_err(|error| unreadable(self.sequence, &error))?;
            if event.is_none_or(|event| event.position >= self.from) {
                return Ok(event);
            }
        }
    }
}

#[cold]
fn unreadable(sequence: u64, error: &FieldError) -> ReadError {
    ReadError::Transaction { sequence, reason: error.to_string() }
}

impl EventReader {
    pub(crate) fn over(frames: ReplayMerge, from: Position) -> Self {
        Self::of(Frames::Live(Box::new(frames)), from)
    }

    /// Of the journal of a directory, from its first frame on.
    pub(crate) fn stored(frames: StoredFrames) -> Self {
        Self::of(Frames::Stored(Box::new(frames)), Position::default())
    }

    const fn of(frames: Frames, from: Position) -> Self {
        Self {
            frames,
            bytes: Vec::new(),
            changes_length: 0,
            first: First { sequence: 0, time_ns: 0, session: 0, number: 0 },
            from,
            last_time_ns: 0,
            is_between_transactions: true,
            position: None,
            progress: None,
        }
    }

    /// It waits by that, from now on.
    pub(crate) fn waiting_by(self, progress: Arc<Progress>) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// From now on what it has not read is not deleted.
    pub(crate) fn open_among(mut self, readers: &OpenReaders) -> Self {
        self.position = Some(readers.open(self.next_sequence()));
        self
    }

    /// The first sequence that the stream still holds.
    pub(crate) fn first_held(&self) -> Result<u64, ReadError> {
        Ok(match &self.frames {
            Frames::Live(frames) => frames.first_held()?,
            Frames::Stored(frames) => frames.first_held()?,
        })
    }

    /// The last sequence that can be read now.
    pub(crate) fn released_sequence(&self) -> u64 {
        match &self.frames {
            Frames::Live(frames) => frames.released_sequence(),
            Frames::Stored(frames) => frames.released_sequence(),
        }
    }

    /// The time that the stream has given the frame that was read last, ns since the epoch.
    pub(crate) const fn last_time_ns(&self) -> u64 {
        self.last_time_ns
    }

    /// Whether no transaction was begun and not ended.
    pub(crate) const fn is_between_transactions(&self) -> bool {
        self.is_between_transactions
    }

    /// The time of one frame, to which this goes; `None` if it is not released.
    pub(crate) fn time_of(&mut self, sequence: u64) -> Result<Option<u64>, ReadError> {
        self.seek(Position { sequence, ordinal: 0 });
        Ok(match self.frames.read()? {
            ReplayRead::Frame(frame) => Some(frame.timestamp_ns()),
            ReplayRead::Empty => None,
        })
    }

    /// Everything before this sequence number is read.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.frames.sequence()
    }

    /// Lets the files of the journal go, until something is read of them.
    pub(crate) fn let_journal_go(&mut self) {
        if let Frames::Live(frames) = &mut self.frames {
            frames.let_journal_go();
        }
    }

    /// Begins anew from a position on.
    pub fn seek(&mut self, from: Position) {
        self.from = from;
        self.is_between_transactions = true;
        self.frames.seek(from.sequence);
    }

    /// The next transaction with events; `None` where nothing more is released yet. Commands that were refused have none.
    ///
    /// # Errors
    /// [`ReadError::Deleted`]; the stream is damaged or gone; bytes that are no transaction, which the next call passes over.
    pub fn next_transaction(&mut self) -> Result<Option<RecordedTransaction<'_>>, ReadError> {
        match self.advance(usize::MAX)? {
            Advanced::Transaction => self.transaction().map(Some),
            Advanced::Frames | Advanced::End => Ok(None),
        }
    }

    /// Sleeps until something is released that was not read, at most for `timeout`: whether there is something. It is woken by the stream;
    /// what was released may be a command without events, so that [`EventReader::next_transaction`] still has none. The journal of a
    /// directory, which another process writes, is looked at every 10 ms instead. On the thread that polls a
    /// [`DirectBus`](crate::DirectBus) nothing comes meanwhile.
    ///
    /// # Errors
    /// [`ClientError::Closed`]: the host has stopped, and everything is read. A journal that cannot be looked at.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, ReadError> {
        self.wait_for(self.next_sequence(), timeout)
    }

    /// As [`EventReader::wait`], for that sequence number.
    pub(crate) fn wait_for(&mut self, sequence: u64, timeout: Duration) -> Result<bool, ReadError> {
        let frames = match &mut self.frames {
            Frames::Live(frames) if sequence <= frames.released_sequence() => return Ok(true),
            Frames::Live(_) => {
                let progress = self.progress.as_ref().expect("a reader that an application has is its host's");
                return match progress.wait_for(sequence, timeout) {
                    Waited::Reached => Ok(true),
                    Waited::TimedOut => Ok(false),
                    Waited::Ended if sequence <= self.released_sequence() => Ok(true),
                    Waited::Ended => Err(ClientError::Closed.into()),
                };
            }
            Frames::Stored(frames) => frames,
        };
        let begun = Instant::now();
        loop {
            if frames.is_released(sequence)? {
                return Ok(true);
            }
            let left = timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(STORED_LOOK));
        }
    }

    /// Goes on to the next transaction with events, over so many frames at most.
    pub(crate) fn advance(&mut self, frames_max: usize) -> Result<Advanced, ReadError> {
        let mut changes_length = 0;
        let advanced = self.go_on(frames_max, |bytes, first, whole| {
            bytes.extend_from_slice(whole.unwrap_or_default());
            let changes = changes_of(bytes).map_err(|reason| first.unreadable(reason))?;
            changes_length = changes.map_or(0, <[u8]>::len);
            // Of a command that was refused its identifier alone may stand there.
            Ok(if changes.is_some_and(has_events) { Found::Transaction } else { Found::Nothing })
        });
        self.changes_length = changes_length;
        if let Some(position) = &self.position {
            position.set(match advanced {
                Ok(Advanced::Transaction) => self.first.sequence,
                _ => self.frames.sequence(),
            });
        }
        advanced
    }

    /// Reads on over so many frames at most, and shows each event, where it lies. Whether there may be more.
    pub(crate) fn visit(
        &mut self,
        frames_max: usize,
        mut visit: impl FnMut(&RecordedEvent<'_>),
    ) -> Result<bool, ReadError> {
        let from = self.from;
        let advanced = self.go_on(frames_max, |bytes, first, whole| {
            let changes = changes_of(whole.unwrap_or(bytes)).map_err(|reason| first.unreadable(reason))?;
            let Some(changes) = changes.filter(|changes| has_events(changes)) else { return Ok(Found::Nothing) };
            let unreadable = |error: FieldError| first.unreadable(error.to_string());
            let mut events = RecordedEvents::read(first.sequence, changes).map_err(unreadable)?;
            while let Some(event) = events.next_event().map_err(unreadable)? {
                if event.position >= from {
                    visit(&event);
                }
            }
            Ok(Found::Nothing)
        });
        self.changes_length = 0;
        if let Some(position) = &self.position {
            position.set(self.frames.sequence());
        }
        Ok(!matches!(advanced?, Advanced::End))
    }

    /// What has become of a frame that cannot be read.
    #[cold]
    fn unread(&self, error: ClientError) -> ReadError {
        let sequence = self.frames.sequence();
        match self.first_held() {
            Ok(first) if sequence < first => ReadError::Deleted { sequence, first },
            _ => error.into(),
        }
    }

    /// Goes on over so many frames at most, to a transaction that `take` finds. It is handed the bytes of each: where they lie if they are in one
    /// frame, else they are collected in the vector, which is empty otherwise.
    #[inline(always)]
    fn go_on(
        &mut self,
        frames_max: usize,
        mut take: impl FnMut(&mut Vec<u8>, &First, Option<&[u8]>) -> Result<Found, ReadError>,
    ) -> Result<Advanced, ReadError> {
        for _ in 0..frames_max {
            let frame = match self.frames.read() {
                Ok(ReplayRead::Frame(frame)) => frame,
                Ok(ReplayRead::Empty) => return Ok(Advanced::End),
                Err(error) => return Err(self.unread(error)),
            };
            let fragment = frame.fragment();
            (self.last_time_ns, self.is_between_transactions) = (frame.timestamp_ns(), fragment.is_last());
            if frame.kind() != Kind::Command || frame.flags() & TRANSACTION_FLAG == 0 {
                continue;
            }
            if fragment.index == 0 {
                self.bytes.clear();
                self.first = First {
                    sequence: frame.sequence(),
                    time_ns: frame.timestamp_ns(),
                    session: frame.session(),
                    number: frame.session_seq(),
                };
            }
            self.first.number = frame.session_seq();
            let found = if fragment == Fragment::WHOLE {
                take(&mut self.bytes, &self.first, Some(frame.payload()))?
            } else {
                self.bytes.extend_from_slice(frame.payload());
                if !fragment.is_last() {
                    continue;
                }
                take(&mut self.bytes, &self.first, None)?
            };
            if matches!(found, Found::Transaction) {
                return Ok(Advanced::Transaction);
            }
        }
        Ok(Advanced::Frames)
    }

    /// The sequence number of the transaction that was found.
    pub(crate) const fn found_sequence(&self) -> u64 {
        self.first.sequence
    }

    /// The event of the transaction that was found at that position, which is not before the cursor; and how far everything before it is read.
    pub(crate) fn event_at(
        &self,
        position: Position,
        cursor: EventCursor,
    ) -> Result<Option<(RecordedEvent<'_>, EventCursor)>, ReadError> {
        let changes = &self.bytes[self.bytes.len() - self.changes_length..];
        let unreadable = |error: FieldError| unreadable(self.first.sequence, &error);
        let mut events = RecordedEvents::read(self.first.sequence, changes).map_err(unreadable)?;
        events.skip(cursor, changes);
        loop {
            let before = events.cursor(changes.len());
            match events.next_event().map_err(unreadable)? {
                Some(event) if event.position == position => return Ok(Some((event, before))),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// The transaction that was found.
    pub(crate) fn transaction(&self) -> Result<RecordedTransaction<'_>, ReadError> {
        let First { sequence, time_ns, session, number } = self.first;
        let changes = &self.bytes[self.bytes.len() - self.changes_length..];
        let events = RecordedEvents::read(sequence, changes).map_err(|error| unreadable(sequence, &error))?;
        Ok(RecordedTransaction { sequence, time_ns, session, number, from: self.from, events })
    }
}

impl First {
    #[cold]
    fn unreadable(&self, reason: String) -> ReadError {
        ReadError::Transaction { sequence: self.sequence, reason }
    }
}

/// What a transaction is for who goes on.
enum Found {
    Transaction,
    Nothing,
}

/// How far a reader came.
pub(crate) enum Advanced {
    /// To a transaction.
    Transaction,
    /// So many frames have passed.
    Frames,
    /// Nothing more is released yet.
    End,
}
