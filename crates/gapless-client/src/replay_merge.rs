//! [`ReplayMerge`]: released frames from the window while it has them, else from the journal, without gap or duplicate.
//! A slow reader delays no other.

use crate::ClientError;
use gapless_journal::{JournalError, JournalReader, Replay};
use gapless_log::{FreeCursor, FreeRead, Window};
use gapless_wire::{Frame, FrameError, aligned_length};
use std::path::{Path, PathBuf};

/// Reads a stream that is written in this or another process of this machine.
pub struct ReplayMerge {
    window: Window,
    cursor: FreeCursor,
    /// A stream at tier `memory` has none.
    journal: Option<PathBuf>,
    replay: Option<Replay>,
    /// Journal reader left for the window, kept for a return.
    left: Option<Replay>,
    copied_since: u32,
    /// The journal as it was opened, and the released sequence then.
    opened: Option<(JournalReader, u64)>,
    /// Copied from the window: unread from `next` up to `filled`, padded.
    frames: Vec<u8>,
    next: usize,
    filled: usize,
    sequence: u64,
    laps: u64,
}

/// The journal is closed after so many consecutive pieces from the window.
const COPIED_SINCE_MAX: u32 = 64;
const COPIED_LENGTH: usize = 16 << 10;

#[derive(Clone, Copy)]
pub enum ReplayRead<'a> {
    Frame(Frame<'a>),
    Empty,
}

impl ReplayMerge {
    /// Starts at `sequence`; 0 and 1 both mean the first.
    #[must_use]
    pub fn new(window: Window, journal: Option<PathBuf>, sequence: u64) -> Self {
        let cursor = window.free_cursor(sequence.max(1));
        let frames = vec![0; COPIED_LENGTH];
        let sequence = cursor.sequence();
        Self {
            window,
            cursor,
            journal,
            replay: None,
            left: None,
            copied_since: 0,
            opened: None,
            frames,
            next: 0,
            filled: 0,
            sequence,
            laps: 0,
        }
    }

    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    pub fn seek(&mut self, sequence: u64) {
        if let Some(replay) = self.replay.take() {
            (self.left, self.copied_since) = (Some(replay), 0);
        }
        self.set_position(sequence);
    }

    /// Closes the journal until it is needed, so that its deleted segments free their space.
    pub fn close_journal(&mut self) {
        if self.replay.is_some() {
            self.set_position(self.sequence);
        }
        (self.left, self.opened) = (None, None);
    }

    fn set_position(&mut self, sequence: u64) {
        self.replay = None;
        self.cursor.seek(sequence);
        self.sequence = self.cursor.sequence();
        (self.next, self.filled) = (0, 0);
    }

    /// Makes [`ReplayMerge::read`] return the last frame, of `length` bytes, again.
    ///
    /// # Panics
    /// If the last frame read does not have this length.
    pub fn step_back(&mut self, length: usize) {
        self.sequence -= 1;
        match &mut self.replay {
            Some(replay) => replay.step_back(length),
            None => {
                let next = self.next.checked_sub(aligned_length(length));
                self.next = next.expect("a frame of this length was read from here");
            }
        }
    }

    #[must_use]
    pub const fn is_replaying(&self) -> bool {
        self.replay.is_some()
    }

    /// Number of times that the window had moved on before a frame was read.
    #[must_use]
    pub const fn laps(&self) -> u64 {
        self.laps
    }

    /// Still kept in the journal, or without a journal the first of the stream.
    ///
    /// # Errors
    /// The journal cannot be read now.
    pub fn first_held(&self) -> Result<u64, ClientError> {
        let Some(journal) = &self.journal else { return Ok(1) };
        match JournalReader::open(journal) {
            Ok(reader) => Ok(reader.first_sequence()),
            Err(JournalError::NoJournal { .. }) => Ok(1),
            Err(error) => Err(error.into()),
        }
    }

    /// Last sequence that can be read now.
    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.window.released_sequence()
    }

    /// Next frame.
    ///
    /// # Errors
    /// [`ClientError::Lapped`] if neither the window nor the journal has it; damage.
    #[inline]
    pub fn read(&mut self) -> Result<ReplayRead<'_>, ClientError> {
        if self.next == self.filled {
            if self.replay.is_some() {
                return self.read_journal();
            }
            match self.fill()? {
                FreeRead::Frame(_) => {}
                FreeRead::Empty => return Ok(ReplayRead::Empty),
                FreeRead::Lapped { from_sequence } => {
                    self.laps += 1;
                    self.replay = Some(self.open_journal(from_sequence)?);
                    return self.read_journal();
                }
            }
        }
        let frame = parse(&self.frames[self.next..self.filled], self.sequence)?;
        self.next += aligned_length(frame.length());
        self.sequence += 1;
        Ok(ReplayRead::Frame(frame))
    }

    /// Passes at most `limit` frames to `take`, of those copied together with the last one read; 0 if there are none.
    ///
    /// # Errors
    /// Damage, and those of `take`.
    #[inline]
    pub fn read_copied(
        &mut self,
        limit: usize,
        take: &mut impl FnMut(&Frame<'_>) -> Result<(), ClientError>,
    ) -> Result<usize, ClientError> {
        let mut count = 0;
        while self.next < self.filled && count < limit {
            let frame = parse(&self.frames[self.next..self.filled], self.sequence)?;
            self.next += aligned_length(frame.length());
            self.sequence += 1;
            count += 1;
            take(&frame)?;
        }
        Ok(count)
    }

    #[inline]
    fn fill(&mut self) -> Result<FreeRead, ClientError> {
        self.next = 0;
        self.filled = 0;
        let read = match self.cursor.read_many(&mut self.frames)? {
            FreeRead::Frame(0) => {
                let read = self.cursor.read(&mut self.frames)?;
                if let FreeRead::Frame(length) = read {
                    self.filled = aligned_length(length);
                }
                self.frames.resize(self.filled.max(COPIED_LENGTH), 0);
                return Ok(read);
            }
            read => read,
        };
        if let FreeRead::Frame(bytes) = read {
            self.filled = bytes;
            if self.left.is_some() {
                self.copied_since += 1;
                if self.copied_since > COPIED_SINCE_MAX {
                    (self.left, self.opened) = (None, None);
                }
            }
        }
        Ok(read)
    }

    #[cold]
    fn open_journal(&mut self, sequence: u64) -> Result<Replay, ClientError> {
        let Some(journal) = &self.journal else {
            return Err(ClientError::Lapped { sequence, reason: "the stream keeps no journal".to_owned() });
        };
        // Released frames are never truncated.
        let released = self.window.released_sequence();
        // Segments created or deleted since cause an error; the journal is then reopened.
        if let Some(mut replay) = self.left.take()
            && replay.seek(sequence, released).is_ok()
        {
            return Ok(replay);
        }
        if let Some((reader, through)) = &self.opened
            && sequence <= *through
            && let Ok(replay) = reader.replay_until(sequence, released)
        {
            return Ok(replay);
        }
        self.opened = None;
        let opened = JournalReader::open(journal);
        let replay = opened.and_then(|reader| Ok((reader.replay_until(sequence, released)?, reader)));
        let (replay, reader) = replay.map_err(|error| lapped_or_damaged(error, journal, sequence))?;
        self.opened = Some((reader, released));
        Ok(replay)
    }

    fn read_journal(&mut self) -> Result<ReplayRead<'_>, ClientError> {
        let replay = self.replay.as_mut().expect("the caller has looked");
        let next = replay.next_sequence();
        // The journal may be ahead, and unreleased frames may be truncated.
        let released = self.window.released_sequence();
        if next > released {
            self.set_position(next);
            return Ok(ReplayRead::Empty);
        }
        replay.read_until(released);
        let has_next = match replay.has_next() {
            Ok(has_next) => has_next,
            Err(error) => {
                let journal = self.journal.as_ref().expect("what is replayed is a journal");
                return Err(lapped_or_damaged(error, journal, next));
            }
        };
        if !has_next {
            // Released frames are journaled; those that this reader has not seen yet are in the window.
            self.set_position(next);
            return Ok(ReplayRead::Empty);
        }
        self.sequence = next + 1;
        let replay = self.replay.as_mut().expect("the caller has looked");
        Ok(ReplayRead::Frame(replay.next_frame()?.expect("there is one")))
    }
}

/// Retention may delete old segments that are still read; a missing segment is then not damage.
#[cold]
pub(crate) fn lapped_or_damaged(error: JournalError, journal: &Path, sequence: u64) -> ClientError {
    let is_cut = match &error {
        JournalError::NotHeld { .. } | JournalError::NoJournal { .. } => true,
        _ => JournalReader::open(journal).is_ok_and(|reader| sequence < reader.first_sequence()),
    };
    if is_cut { ClientError::Lapped { sequence, reason: error.to_string() } } else { error.into() }
}

#[inline]
fn parse(bytes: &[u8], sequence: u64) -> Result<Frame<'_>, ClientError> {
    Frame::parse(bytes).map_err(|error| is_malformed(sequence, error))
}

#[cold]
fn is_malformed(sequence: u64, error: FrameError) -> ClientError {
    ClientError::Protocol { what: format!("frame {sequence}: {error}") }
}
