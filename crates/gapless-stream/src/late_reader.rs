//! [`LateReader`]: released frames from any sequence on. From the window if it still has them, else from the
//! journal; it crosses over without a gap or a double. Nobody waits for it, and it costs nobody memory.

use crate::StreamError;
use gapless_journal::{JournalError, JournalReader, Replay};
use gapless_log::{FreeCursor, FreeRead, Window};
use gapless_wire::Frame;
use std::path::PathBuf;

/// Reads a stream that is written in this or another process of this machine.
pub struct LateReader {
    window: Window,
    cursor: FreeCursor,
    /// Where the journal is; a stream at tier `memory` has none.
    journal: Option<PathBuf>,
    replay: Option<Replay>,
    frame: Vec<u8>,
    /// How often the window had moved on before a frame was read.
    laps: u64,
}

/// What a [`LateReader`] found.
#[derive(Clone, Copy)]
pub enum LateRead<'a> {
    /// The next frame.
    Frame(Frame<'a>),
    /// The next frame is not released yet.
    Empty,
}

impl LateReader {
    /// Begins at `sequence`, 0 and 1 being the first. `journal` is the directory of the stream's journal.
    #[must_use]
    pub fn new(window: Window, journal: Option<PathBuf>, sequence: u64) -> Self {
        let cursor = window.free_cursor(sequence.max(1));
        Self { window, cursor, journal, replay: None, frame: Vec::new(), laps: 0 }
    }

    /// The sequence that it reads next.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.replay.as_ref().map_or(self.cursor.sequence(), Replay::next_sequence)
    }

    /// Goes to `sequence`.
    pub fn seek(&mut self, sequence: u64) {
        self.replay = None;
        self.cursor.seek(sequence);
    }

    /// Whether it reads from the journal now.
    #[must_use]
    pub const fn is_late(&self) -> bool {
        self.replay.is_some()
    }

    /// How often the window had moved on before a frame was read.
    #[must_use]
    pub const fn laps(&self) -> u64 {
        self.laps
    }

    /// The last sequence that can be read now.
    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.window.released_sequence()
    }

    /// The next frame.
    ///
    /// # Errors
    /// [`StreamError::Lapped`] if neither the window nor a journal has it; damage.
    #[inline]
    pub fn read(&mut self) -> Result<LateRead<'_>, StreamError> {
        if self.replay.is_some() {
            return self.read_journal();
        }
        match self.cursor.read(&mut self.frame)? {
            FreeRead::Frame(_) => Ok(LateRead::Frame(parse(&self.frame, self.cursor.sequence() - 1)?)),
            FreeRead::Empty => Ok(LateRead::Empty),
            FreeRead::Lapped { from_sequence } => {
                self.laps += 1;
                self.replay = Some(self.open_journal(from_sequence)?);
                self.read_journal()
            }
        }
    }

    #[cold]
    fn open_journal(&self, sequence: u64) -> Result<Replay, StreamError> {
        let Some(journal) = &self.journal else {
            return Err(StreamError::Lapped { sequence, reason: "the stream keeps no journal".to_owned() });
        };
        match JournalReader::open(journal).and_then(|reader| reader.replay(sequence)) {
            Ok(replay) => Ok(replay),
            Err(error @ (JournalError::NotHeld { .. } | JournalError::NoJournal { .. })) => {
                Err(StreamError::Lapped { sequence, reason: error.to_string() })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read_journal(&mut self) -> Result<LateRead<'_>, StreamError> {
        let replay = self.replay.as_mut().expect("the caller has looked");
        let next = replay.next_sequence();
        // The journal may be ahead of what has reached the stream's tier.
        if next > self.window.released_sequence() {
            self.cursor.seek(next);
            self.replay = None;
            return Ok(LateRead::Empty);
        }
        if !replay.has_next()? {
            // Released is journaled; what the reader has not seen yet of it is in the window.
            self.cursor.seek(next);
            self.replay = None;
            return Ok(LateRead::Empty);
        }
        let replay = self.replay.as_mut().expect("the caller has looked");
        Ok(LateRead::Frame(replay.next_frame()?.expect("there is one")))
    }
}

fn parse(bytes: &[u8], sequence: u64) -> Result<Frame<'_>, StreamError> {
    Frame::parse(bytes).map_err(|error| StreamError::Protocol { what: format!("frame {sequence}: {error}") })
}
