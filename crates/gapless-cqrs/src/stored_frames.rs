//! [`StoredFrames`]: the frames of a directory's journal, read from outside: beside the process that writes it as far as that has released them,
//! and where nobody writes, all.

use gapless_agent::CountersReader;
use gapless_client::ClientError;
use gapless_client::replay_merge::ReplayRead;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{JournalError, JournalReader, Replay, lock_holder};
use std::io;

/// What a running service counts: the last sequence that it has applied, which is released.
const RELEASED_COUNTER: &str = "service.last_sequence";

/// Whether somebody writes a journal, and how far it is released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// Nobody does.
    Nobody,
    /// Released up to there.
    Released(u64),
    /// This process holds the journal, and has not said yet how far it is.
    Unknown(String),
    /// This process holds the journal and counts, but not how far a service is.
    Silent(String),
}

impl Writing {
    /// # Errors
    /// The lock or the counters cannot be read.
    pub fn look(layout: &StreamLayout) -> io::Result<Self> {
        let Some(holder) = lock_holder(&layout.journal())? else { return Ok(Self::Nobody) };
        let reader = CountersReader::open(layout.counters());
        let Some(counters) = reader.ok().filter(CountersReader::is_owned).and_then(|reader| reader.read().ok()) else {
            return Ok(Self::Unknown(holder));
        };
        let released = counters.into_iter().find(|(label, _)| label == RELEASED_COUNTER);
        Ok(released.map_or(Self::Silent(holder), |(_, sequence)| Self::Released(sequence)))
    }
}

/// See the head of the file.
pub(crate) struct StoredFrames {
    layout: StreamLayout,
    /// As it was when it was opened last.
    reader: Option<JournalReader>,
    replay: Option<Replay>,
    /// Read next.
    sequence: u64,
    /// Frames up to here may be read.
    released: u64,
}

impl StoredFrames {
    /// Begins at the first frame.
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

    /// The first sequence that the journal still holds; 1 if there is none.
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

    /// The last sequence that could be read when this was asked last.
    pub fn released_sequence(&self) -> u64 {
        self.released
    }

    /// Whether that sequence is released, or was when this was asked last.
    ///
    /// # Errors
    /// The lock of the journal or the counters of its writer cannot be read.
    pub fn is_released(&mut self, sequence: u64) -> Result<bool, ClientError> {
        if sequence <= self.released {
            return Ok(true);
        }
        self.look_further()?;
        Ok(sequence <= self.released)
    }

    /// The next frame.
    ///
    /// # Errors
    /// The journal does not hold it any more, or is damaged.
    pub fn read(&mut self) -> Result<ReplayRead<'_>, ClientError> {
        if self.sequence > self.released && !self.look_further()? {
            return Ok(ReplayRead::Empty);
        }
        let mut replay = match self.replay.take() {
            Some(replay) => replay,
            None => self.open()?,
        };
        if !replay.has_next()? {
            self.replay = Some(replay);
            // A process may begin to write meanwhile, and then not all is released.
            self.released = 0;
            return Ok(ReplayRead::Empty);
        }
        self.sequence += 1;
        let frame = self.replay.insert(replay).next_frame()?;
        Ok(ReplayRead::Frame(frame.expect("there is one")))
    }

    /// Whether the next frame may be read by now.
    #[cold]
    fn look_further(&mut self) -> Result<bool, ClientError> {
        let journal = self.layout.journal();
        let writing = Writing::look(&self.layout);
        self.released = match writing.map_err(|error| JournalError::io("examine", journal, error))? {
            Writing::Nobody => u64::MAX,
            Writing::Released(sequence) => sequence,
            Writing::Unknown(_) | Writing::Silent(_) => 0,
        };
        Ok(self.sequence <= self.released)
    }

    #[cold]
    fn open(&mut self) -> Result<Replay, JournalError> {
        // Segments that have come or gone since are an error, and then it is opened anew.
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
    fn beside_a_writer_what_it_has_released_is_read_and_without_one_all() {
        let directory = tempfile::tempdir().unwrap();
        let layout = StreamLayout::new(directory.path());
        std::fs::create_dir(layout.journal()).unwrap();
        let options = JournalOptions::new(layout.journal(), 7);
        let mut journal = Journal::open(options.clone()).unwrap().0;
        append(&mut journal, 100);
        let mut frames = StoredFrames::new(layout.clone());
        assert!(matches!(Writing::look(&layout).unwrap(), Writing::Unknown(holder) if holder.starts_with("process ")));
        assert_eq!(read(&mut frames), 0, "nobody says what is released");
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
        // Another one writes, and has counted nothing yet.
        released.set(100);
        let mut journal = Journal::open(options).unwrap().0;
        append(&mut journal, 10);
        assert_eq!(read(&mut frames), 100);
        released.set(105);
        assert_eq!(read(&mut frames), 105);
    }
}
