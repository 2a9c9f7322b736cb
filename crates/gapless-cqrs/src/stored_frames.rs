//! `StoredFrames`: the frames of a directory's journal, read by another process: the released ones while it is being
//! written, else all.

use gapless_agent::CountersReader;
use gapless_client::ClientError;
use gapless_client::replay_merge::ReplayRead;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{JournalError, JournalReader, Replay, lock_holder};
use std::io;

const RELEASED_COUNTER: &str = "service.last_sequence";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JournalWriterState {
    NoWriter,
    Released(u64),
    /// Held by this process, which has not reported its progress yet.
    Unknown(String),
    /// Held by this process, whose counters are none of a service.
    Silent(String),
}

impl JournalWriterState {
    /// # Errors
    /// The lock or the counters cannot be read.
    pub fn read(layout: &StreamLayout) -> io::Result<Self> {
        let Some(holder) = lock_holder(&layout.journal())? else { return Ok(Self::NoWriter) };
        let reader = CountersReader::open(layout.counters());
        let Some(counters) = reader.ok().filter(CountersReader::is_owned).and_then(|reader| reader.read().ok()) else {
            return Ok(Self::Unknown(holder));
        };
        let released = counters.into_iter().find(|(label, _)| label == RELEASED_COUNTER);
        Ok(released.map_or(Self::Silent(holder), |(_, sequence)| Self::Released(sequence)))
    }
}

pub(crate) struct StoredFrames {
    layout: StreamLayout,
    reader: Option<JournalReader>,
    replay: Option<Replay>,
    sequence: u64,
    released: u64,
}

impl StoredFrames {
    /// A reader at the first frame.
    pub const fn new(layout: StreamLayout) -> Self {
        Self { layout, reader: None, replay: None, sequence: 1, released: 0 }
    }

    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    pub fn seek(&mut self, sequence: u64) {
        let sequence = sequence.max(1);
        if sequence != self.sequence {
            (self.replay, self.sequence) = (None, sequence);
        }
    }

    /// First sequence in the journal; 1 without one.
    ///
    /// # Errors
    /// The journal cannot be read now.
    pub fn first_held(&self) -> Result<u64, ClientError> {
        match JournalReader::open(self.layout.journal()) {
            Ok(reader) => Ok(reader.first_sequence()),
            Err(JournalError::NoJournal { .. }) => Ok(1),
            Err(error) => Err(error.into()),
        }
    }

    /// Last readable sequence, as known from the last look.
    pub fn released_sequence(&self) -> u64 {
        self.released
    }

    /// Whether released by now.
    ///
    /// # Errors
    /// The journal's lock or the writer's counters cannot be read.
    pub fn is_released(&mut self, sequence: u64) -> Result<bool, ClientError> {
        if sequence <= self.released {
            return Ok(true);
        }
        self.refresh_released()?;
        Ok(sequence <= self.released)
    }

    /// Next frame.
    ///
    /// # Errors
    /// Not in the journal any more, or damaged.
    pub fn read(&mut self) -> Result<ReplayRead<'_>, ClientError> {
        if self.sequence > self.released && !self.refresh_released()? {
            return Ok(ReplayRead::Empty);
        }
        let mut replay = match self.replay.take() {
            Some(replay) => replay,
            None => self.open()?,
        };
        if !replay.has_next()? {
            self.replay = Some(replay);
            // A process may have begun to write, and then not everything is released.
            self.released = 0;
            return Ok(ReplayRead::Empty);
        }
        self.sequence += 1;
        let frame = self.replay.insert(replay).next_frame()?;
        Ok(ReplayRead::Frame(frame.expect("there is one")))
    }

    #[cold]
    fn refresh_released(&mut self) -> Result<bool, ClientError> {
        let journal = self.layout.journal();
        let state = JournalWriterState::read(&self.layout);
        self.released = match state.map_err(|error| JournalError::io("examine", journal, error))? {
            JournalWriterState::NoWriter => u64::MAX,
            JournalWriterState::Released(sequence) => sequence,
            JournalWriterState::Unknown(_) | JournalWriterState::Silent(_) => 0,
        };
        Ok(self.sequence <= self.released)
    }

    #[cold]
    fn open(&mut self) -> Result<Replay, JournalError> {
        // Fails if segments were added or deleted meanwhile; then the journal is opened again.
        if let Some(reader) = &self.reader
            && let Ok(replay) = reader.replay(self.sequence)
        {
            return Ok(replay);
        }
        let reader = self.reader.insert(JournalReader::open(self.layout.journal())?);
        reader.replay(self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_agent::Counters;
    use gapless_journal::{Journal, JournalOptions};
    use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};

    fn append(journal: &mut Journal, count: u64) {
        for sequence in journal.last_sequence() + 1..=journal.last_sequence() + count {
            let mut bytes = vec![0; aligned_length(HEADER_LENGTH)];
            let header =
                FrameHeader { kind: Kind::Command, sequence, timestamp_ns: sequence, ..FrameHeader::default() };
            FrameWriter::new(&mut bytes).finish(&header, 0);
            journal.append(&bytes, sequence, sequence).unwrap();
        }
        journal.commit().unwrap();
    }

    fn read(frames: &mut StoredFrames) -> u64 {
        while let ReplayRead::Frame(frame) = frames.read().unwrap() {
            assert_eq!(frame.sequence() + 1, frames.sequence());
        }
        frames.sequence() - 1
    }

    #[test]
    fn live_journal_is_read_to_release() {
        let directory = tempfile::tempdir().unwrap();
        let layout = StreamLayout::new(directory.path());
        std::fs::create_dir(layout.journal()).unwrap();
        let options = JournalOptions::new(layout.journal(), 7);
        let mut journal = Journal::open(options.clone()).unwrap().0;
        append(&mut journal, 100);
        let mut frames = StoredFrames::new(layout.clone());
        assert!(
            matches!(JournalWriterState::read(&layout).unwrap(), JournalWriterState::Unknown(holder) if holder.starts_with("process "))
        );
        assert_eq!(read(&mut frames), 0, "no released sequence is known");
        let counters = Counters::create(layout.counters(), 8).unwrap();
        let released = counters.add(RELEASED_COUNTER).unwrap();
        for sequence in [40, 41, 99] {
            released.set(sequence);
            assert_eq!(read(&mut frames), sequence);
        }
        frames.seek(7);
        assert_eq!(read(&mut frames), 99);
        journal.close().unwrap();
        assert_eq!(read(&mut frames), 100);
        released.set(100);
        let mut journal = Journal::open(options).unwrap().0;
        append(&mut journal, 10);
        assert_eq!(read(&mut frames), 100);
        released.set(105);
        assert_eq!(read(&mut frames), 105);
    }
}
