//! `EventReader`: reads the events of the stream, one transaction after the other, and follows it live.

use crate::error::IndexFileError;
use crate::identity::Position;
use crate::open_readers::{OpenReaders, ReaderPosition};
use crate::origin::{Cause, CommandOrigin};
use crate::stored_frames::StoredFrames;
use crate::transaction::{CommandIdentity, EventCursor, RecordedEvent, RecordedEvents, has_events};
use gapless_agent::progress::{ProgressCounter, WaitResult};
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

/// Failure to read events.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The stream is damaged or gone, or no longer has the events.
    #[error(transparent)]
    Stream(#[from] ClientError),
    /// A file of the index cannot be read, or is damaged. Remove the folder of the index while no host runs; it is
    /// built again.
    #[error(transparent)]
    Index(#[from] IndexFileError),
    /// Use [`EventReader`].
    #[error("a stream at tier memory has no index; read all of its events")]
    NoIndex,
    /// The index is being built. Retry later, or read all events.
    #[error("the index is being built and has reached {indexed} of {released}")]
    IndexBehind { indexed: u64, released: u64 },
    #[error("the events before {first} are deleted, and the request begins at {sequence}; read from {first} on")]
    Deleted { sequence: u64, first: u64 },
    /// The index is damaged, or of another stream. Without its folder it is built again.
    #[error(
        "the index has an event at {0}, but the stream has none there; remove the folder of the index while no host \
         runs"
    )]
    NotThere(Position),
    /// The frame is damaged, or this program does not know its format. The next call continues after it.
    #[error("the transaction {sequence} cannot be decoded: {reason}")]
    Transaction { sequence: u64, reason: String },
}

/// Reads the released events of a stream from a position on, which are never taken back; slows no one down. Returns
/// `None` at the end, and continues once there are more; see [`EventReader::wait`].
pub struct EventReader {
    frames: FrameSource,
    bytes: Vec<u8>,
    changes_length: usize,
    first: TransactionHead,
    from: Position,
    last_time_ns: u64,
    /// Whether the last frame read ends a transaction, or belongs to none.
    is_between_transactions: bool,
    /// Deletions must not pass this position.
    position: Option<ReaderPosition>,
    progress: Option<Arc<ProgressCounter>>,
}

/// Another process's journal wakes no one here.
const STORED_POLL_INTERVAL: Duration = Duration::from_millis(10);

enum FrameSource {
    Live(Box<ReplayMerge>),
    Stored(Box<StoredFrames>),
}

impl FrameSource {
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
struct TransactionHead {
    sequence: u64,
    time_ns: u64,
    session: u64,
    number: u64,
}

/// Released transaction: the events of one command.
#[derive(Clone, Debug)]
pub struct RecordedTransaction<'a> {
    /// Sequence in the events' positions.
    pub sequence: u64,
    /// Stream time, ns since the epoch.
    pub time_ns: u64,
    /// Session of the command.
    pub session: u64,
    /// Number of the command in the session.
    pub number: u64,
    from: Position,
    events: RecordedEvents<'a>,
}

impl<'a> RecordedTransaction<'a> {
    /// Identifier that the caller gave, if any.
    #[must_use]
    pub const fn identity(&self) -> Option<CommandIdentity> {
        self.events.identity()
    }

    /// Headers of the command.
    #[must_use]
    pub fn headers(&self) -> Headers {
        self.events.headers().unwrap_or_default()
    }

    /// Header [`CORRELATION`](crate::origin::CORRELATION) of the command, or the identity of the first of its chain.
    #[must_use]
    pub fn correlation(&self) -> Cow<'a, [u8]> {
        self.origin().correlation()
    }

    /// Event or command of the stream that caused the command.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.origin().cause()
    }

    /// Headers for a command caused by that event: they name it and carry the correlation on.
    #[must_use]
    pub fn headers_of_consequence(&self, event: Position) -> Headers {
        let mut headers = Headers::default();
        self.origin().carry_on(Cause::Event(event), &mut headers);
        headers
    }

    const fn origin(&self) -> CommandOrigin<'a> {
        CommandOrigin { session: self.session, number: self.number, metadata: self.events.encoded_headers() }
    }

    /// Next event; `None` after the last.
    ///
    /// # Errors
    /// An event that does not decode.
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
        Self::of(FrameSource::Live(Box::new(frames)), from)
    }

    pub(crate) fn stored(frames: StoredFrames) -> Self {
        Self::of(FrameSource::Stored(Box::new(frames)), Position::default())
    }

    const fn of(frames: FrameSource, from: Position) -> Self {
        Self {
            frames,
            bytes: Vec::new(),
            changes_length: 0,
            first: TransactionHead { sequence: 0, time_ns: 0, session: 0, number: 0 },
            from,
            last_time_ns: 0,
            is_between_transactions: true,
            position: None,
            progress: None,
        }
    }

    pub(crate) fn with_progress(self, progress: Arc<ProgressCounter>) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// Blocks the deletion of events that the reader has not read.
    pub(crate) fn registered_in(mut self, readers: &OpenReaders) -> Self {
        self.position = Some(readers.open(self.next_sequence()));
        self
    }

    pub(crate) fn first_held(&self) -> Result<u64, ReadError> {
        Ok(match &self.frames {
            FrameSource::Live(frames) => frames.first_held()?,
            FrameSource::Stored(frames) => frames.first_held()?,
        })
    }

    pub(crate) fn released_sequence(&self) -> u64 {
        match &self.frames {
            FrameSource::Live(frames) => frames.released_sequence(),
            FrameSource::Stored(frames) => frames.released_sequence(),
        }
    }

    pub(crate) const fn last_time_ns(&self) -> u64 {
        self.last_time_ns
    }

    pub(crate) const fn is_between_transactions(&self) -> bool {
        self.is_between_transactions
    }

    /// Seeks to that frame; `None` if it is not released.
    pub(crate) fn time_of(&mut self, sequence: u64) -> Result<Option<u64>, ReadError> {
        self.seek(Position { sequence, ordinal: 0 });
        Ok(match self.frames.read()? {
            ReplayRead::Frame(frame) => Some(frame.timestamp_ns()),
            ReplayRead::Empty => None,
        })
    }

    /// Sequence of the next frame.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.frames.sequence()
    }

    pub(crate) fn close_journal(&mut self) {
        if let FrameSource::Live(frames) = &mut self.frames {
            frames.close_journal();
        }
    }

    /// Seeks to a position.
    pub fn seek(&mut self, from: Position) {
        self.from = from;
        self.is_between_transactions = true;
        self.frames.seek(from.sequence);
    }

    /// Next transaction with events; `None` at the end of the released ones.
    ///
    /// # Errors
    /// [`ReadError::Deleted`]; the stream is damaged or gone; an undecodable transaction, which the next call skips.
    pub fn next_transaction(&mut self) -> Result<Option<RecordedTransaction<'_>>, ReadError> {
        match self.advance(usize::MAX)? {
            AdvanceResult::Transaction => self.transaction().map(Some),
            AdvanceResult::Frames | AdvanceResult::End => Ok(None),
        }
    }

    /// Sleeps until a further frame is released, for `timeout` at most; returns whether there is one, perhaps without
    /// events. The journal of another process is polled every 10 ms. In vain on the thread that polls a
    /// [`PolledBus`](crate::PolledBus).
    ///
    /// # Errors
    /// [`ClientError::Closed`]: the host has stopped, and everything is read. An unreadable journal.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, ReadError> {
        self.wait_for(self.next_sequence(), timeout)
    }

    pub(crate) fn wait_for(&mut self, sequence: u64, timeout: Duration) -> Result<bool, ReadError> {
        let frames = match &mut self.frames {
            FrameSource::Live(frames) if sequence <= frames.released_sequence() => return Ok(true),
            FrameSource::Live(_) => {
                let progress = self.progress.as_ref().expect("a reader that an application has is its host's");
                return match progress.wait_for(sequence, timeout) {
                    WaitResult::Reached => Ok(true),
                    WaitResult::TimedOut => Ok(false),
                    WaitResult::Ended if sequence <= self.released_sequence() => Ok(true),
                    WaitResult::Ended => Err(ClientError::Closed.into()),
                };
            }
            FrameSource::Stored(frames) => frames,
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
            std::thread::sleep(left.min(STORED_POLL_INTERVAL));
        }
    }

    pub(crate) fn advance(&mut self, frames_max: usize) -> Result<AdvanceResult, ReadError> {
        let mut changes_length = 0;
        let advanced = self.read_until(frames_max, |bytes, first, whole| {
            bytes.extend_from_slice(whole.unwrap_or_default());
            let changes = changes_of(bytes).map_err(|reason| first.unreadable(reason))?;
            changes_length = changes.map_or(0, <[u8]>::len);
            // A refused command may have only its identifier there.
            Ok(if changes.is_some_and(has_events) { FrameStep::Transaction } else { FrameStep::Nothing })
        });
        self.changes_length = changes_length;
        if let Some(position) = &self.position {
            position.set(match advanced {
                Ok(AdvanceResult::Transaction) => self.first.sequence,
                _ => self.frames.sequence(),
            });
        }
        advanced
    }

    /// Reads `frames_max` frames at most; returns whether there may be more.
    pub(crate) fn visit(
        &mut self,
        frames_max: usize,
        mut visit: impl FnMut(&RecordedEvent<'_>),
    ) -> Result<bool, ReadError> {
        let from = self.from;
        let advanced = self.read_until(frames_max, |bytes, first, whole| {
            let changes = changes_of(whole.unwrap_or(bytes)).map_err(|reason| first.unreadable(reason))?;
            let Some(changes) = changes.filter(|changes| has_events(changes)) else { return Ok(FrameStep::Nothing) };
            let unreadable = |error: FieldError| first.unreadable(error.to_string());
            let mut events = RecordedEvents::read(first.sequence, changes).map_err(unreadable)?;
            while let Some(event) = events.next_event().map_err(unreadable)? {
                if event.position >= from {
                    visit(&event);
                }
            }
            Ok(FrameStep::Nothing)
        });
        self.changes_length = 0;
        if let Some(position) = &self.position {
            position.set(self.frames.sequence());
        }
        Ok(!matches!(advanced?, AdvanceResult::End))
    }

    #[cold]
    fn read_error(&self, error: ClientError) -> ReadError {
        let sequence = self.frames.sequence();
        match self.first_held() {
            Ok(first) if sequence < first => ReadError::Deleted { sequence, first },
            _ => error.into(),
        }
    }

    /// Reads frames until `take` accepts a transaction's bytes: borrowed if it is one frame, else collected in the
    /// vector, which is empty otherwise.
    #[inline(always)]
    fn read_until(
        &mut self,
        frames_max: usize,
        mut take: impl FnMut(&mut Vec<u8>, &TransactionHead, Option<&[u8]>) -> Result<FrameStep, ReadError>,
    ) -> Result<AdvanceResult, ReadError> {
        for _ in 0..frames_max {
            let frame = match self.frames.read() {
                Ok(ReplayRead::Frame(frame)) => frame,
                Ok(ReplayRead::Empty) => return Ok(AdvanceResult::End),
                Err(error) => return Err(self.read_error(error)),
            };
            let fragment = frame.fragment();
            (self.last_time_ns, self.is_between_transactions) = (frame.timestamp_ns(), fragment.is_last());
            if frame.kind() != Kind::Command || frame.flags() & TRANSACTION_FLAG == 0 {
                continue;
            }
            if fragment.index == 0 {
                self.bytes.clear();
                self.first = TransactionHead {
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
            if matches!(found, FrameStep::Transaction) {
                return Ok(AdvanceResult::Transaction);
            }
        }
        Ok(AdvanceResult::Frames)
    }

    pub(crate) const fn found_sequence(&self) -> u64 {
        self.first.sequence
    }

    /// `position` must not be before the cursor; also returns the cursor of that event.
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

    pub(crate) fn transaction(&self) -> Result<RecordedTransaction<'_>, ReadError> {
        let TransactionHead { sequence, time_ns, session, number } = self.first;
        let changes = &self.bytes[self.bytes.len() - self.changes_length..];
        let events = RecordedEvents::read(sequence, changes).map_err(|error| unreadable(sequence, &error))?;
        Ok(RecordedTransaction { sequence, time_ns, session, number, from: self.from, events })
    }
}

impl TransactionHead {
    #[cold]
    fn unreadable(&self, reason: String) -> ReadError {
        ReadError::Transaction { sequence: self.sequence, reason }
    }
}

enum FrameStep {
    Transaction,
    Nothing,
}

pub(crate) enum AdvanceResult {
    Transaction,
    Frames,
    End,
}
