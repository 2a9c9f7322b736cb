//! [`FilePoint`]: what a file beside a journal says of it. A state, a snapshot and a journal know each other by a sequence
//! and the time stamp of its frame: histories that were one once and went on apart give a sequence two time stamps.

use std::path::PathBuf;

use crate::error::JournalError;
use crate::reader::JournalReader;

/// A file that was written when the journal beside it held the frame of a sequence, on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePoint {
    /// The file.
    pub path: PathBuf,
    /// Whose it is: stream and incarnation. `None` if it cannot be read, and only its name says where it stands.
    pub identity: Option<(u128, u64)>,
    /// The sequence of the last frame that it contains; 0 for none.
    pub sequence: u64,
    /// The time stamp of that frame, ns since the epoch; `None` if the file cannot be read.
    pub timestamp_ns: Option<u64>,
}

/// Why a file and the journal beside it do not come from one history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointFault {
    /// The file is another stream's, or another incarnation's.
    Identity {
        /// Stream and incarnation of the file.
        found: (u128, u64),
        /// Those of the journal.
        expected: (u128, u64),
    },
    /// The journal ends before the file's last frame.
    Ahead {
        /// The last frame of the journal.
        last_sequence: u64,
        /// Whether there are bytes behind that frame which are no frame that belongs there.
        is_damaged: bool,
    },
    /// There is no journal.
    NoJournal,
    /// The journal's frame with this sequence has another time stamp.
    TimeStamp {
        /// That of the file, ns since the epoch.
        file_ns: u64,
        /// That of the journal, ns since the epoch.
        journal_ns: u64,
    },
}

impl std::fmt::Display for PointFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Identity { found, expected } => write!(
                f,
                "it belongs to stream {:032x} incarnation {:016x}, the journal to {:032x} {:016x}",
                found.0, found.1, expected.0, expected.1
            ),
            Self::Ahead { last_sequence, is_damaged } => {
                write!(f, "the journal ends at sequence {last_sequence}")?;
                if *is_damaged { f.write_str(", where what follows is damaged") } else { Ok(()) }
            }
            Self::NoJournal => f.write_str("there is no segment of a journal"),
            Self::TimeStamp { file_ns, journal_ns } => {
                write!(f, "the journal's frame with that sequence is of {journal_ns} ns, the file's of {file_ns} ns")
            }
        }
    }
}

impl FilePoint {
    pub(crate) fn refuse(&self, journal: impl Into<PathBuf>, fault: PointFault) -> JournalError {
        let Self { path, sequence, .. } = self;
        JournalError::OtherHistory {
            file: path.clone(),
            sequence: *sequence,
            journal: journal.into(),
            fault: Box::new(fault),
        }
    }
}

impl JournalReader {
    /// Whether the file of `point` and this journal come from one history, as far as the journal still holds what tells.
    ///
    /// # Errors
    /// [`JournalError::OtherHistory`], and damage on the way to the frame.
    pub fn check_point(&self, point: &FilePoint) -> Result<(), JournalError> {
        let expected = (self.stream_id(), self.incarnation());
        if let Some(found) = point.identity.filter(|found| *found != expected) {
            return Err(point.refuse(self.directory(), PointFault::Identity { found, expected }));
        }
        if point.sequence == 0 {
            return Ok(());
        }
        let last_sequence = self.last_sequence()?;
        if point.sequence > last_sequence {
            let fault = PointFault::Ahead { last_sequence, is_damaged: false };
            return Err(point.refuse(self.newest_path(), fault));
        }
        self.check_time(point)
    }

    /// Whether the frame of a point that this journal does not end before has the point's time stamp.
    pub(crate) fn check_time(&self, point: &FilePoint) -> Result<(), JournalError> {
        match (point.timestamp_ns, self.timestamp_of(point.sequence)?) {
            (Some(file_ns), Some((journal_ns, journal))) if file_ns != journal_ns => {
                Err(point.refuse(journal, PointFault::TimeStamp { file_ns, journal_ns }))
            }
            _ => Ok(()),
        }
    }

    /// The time stamp of the frame of `sequence`, and the segment that says so; `None` if the journal does not know any
    /// more.
    fn timestamp_of(&self, sequence: u64) -> Result<Option<(u64, PathBuf)>, JournalError> {
        if sequence < self.first_sequence() {
            let oldest = &self.segments()[0];
            let is_before = sequence + 1 == oldest.first_sequence && oldest.times_ns.0 != 0;
            return Ok(is_before.then(|| (oldest.times_ns.0, oldest.path.clone())));
        }
        let mut replay = match self.replay(sequence) {
            Ok(replay) => replay,
            // Retention has deleted it since.
            Err(JournalError::NotHeld { first, .. }) if sequence < first => return Ok(None),
            Err(error) => return Err(error),
        };
        let segment = replay.position().0.to_owned();
        Ok(replay.next_frame()?.map(|frame| (frame.timestamp_ns(), segment)))
    }
}
