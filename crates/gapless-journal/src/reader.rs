//! The reader: reads a journal without its lock, also while a writer runs or from a copy.
//!
//! Used for recovery of services, for late readers of a live stream, and by the commands that look
//! at journals. It never writes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::directory::{Found, Survey, survey};
use crate::error::{JournalError, MarkName};
use crate::evaluation::evaluate;
use crate::options::{Environment, RecoveryCheck};
use crate::records::{Record, Records, SegmentRecords};
use crate::replay::Replay;

/// How often a look at a directory is repeated in which something seems to be missing: a live writer may have changed it
/// between the look at the history and the listing.
const COMPLETE_ATTEMPTS_MAX: usize = 10;

/// A journal, open for reading.
#[derive(Clone, Debug)]
pub struct JournalReader {
    directory: PathBuf,
    environment: Environment,
    survey: Survey,
}

impl JournalReader {
    /// Opens the journal of `directory` as it is now; a [`Replay`] follows what is appended later.
    ///
    /// # Errors
    /// [`JournalError::NoJournal`] for a directory without a segment or that is not there, and the errors in the headers of its segments.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, JournalError> {
        Self::open_in(directory, Environment::default())
    }

    /// As [`JournalReader::open`], on another machine than this one.
    ///
    /// # Errors
    /// As [`JournalReader::open`].
    pub fn open_in(directory: impl Into<PathBuf>, environment: Environment) -> Result<Self, JournalError> {
        let directory = directory.into();
        if directory.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return Err(JournalError::NoJournal { directory });
        }
        let survey = survey(&directory, None)?;
        if survey.segments.is_empty() {
            survey.check_complete(&directory)?;
            return Err(JournalError::NoJournal { directory });
        }
        Ok(Self { directory, environment, survey })
    }

    /// As [`JournalReader::open`], for who would take what is left for all there is: refuses a journal of which the oldest
    /// or the newest segments are gone, as opening it for writing does.
    ///
    /// # Errors
    /// As [`JournalReader::open`]; the missing segments, and the file that names them.
    pub fn open_complete(directory: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let (reader, complete) = Self::open_and_compare(directory, Environment::default())?;
        complete.map(|()| reader)
    }

    /// The journal, and whether all is there that its history names.
    pub(crate) fn open_and_compare(
        directory: impl Into<PathBuf>,
        environment: Environment,
    ) -> Result<(Self, Result<(), JournalError>), JournalError> {
        let directory = directory.into();
        let mut attempt = 1;
        loop {
            let reader = Self::open_in(&directory, environment.clone())?;
            let complete = reader.survey.check_complete(&directory);
            if complete.is_ok() || attempt == COMPLETE_ATTEMPTS_MAX {
                return Ok((reader, complete));
            }
            attempt += 1;
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// From the findings of a survey, which are at least one segment.
    pub(crate) fn of(directory: &Path, environment: &Environment, survey: &Survey) -> Self {
        Self { directory: directory.to_owned(), environment: environment.clone(), survey: survey.clone() }
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The stream whose frames these are.
    #[must_use]
    pub fn stream_id(&self) -> u128 {
        self.oldest().header.stream_id
    }

    /// Drawn when the directory was made and kept for its life.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.oldest().header.incarnation
    }

    /// The oldest sequence in the journal when this reader was opened.
    #[must_use]
    pub fn first_sequence(&self) -> u64 {
        self.oldest().first_sequence
    }

    /// Whether the journal was last written on this boot of this machine, so that its journaled mark
    /// is good.
    #[must_use]
    pub fn is_same_boot(&self) -> bool {
        self.survey.is_same_boot(self.environment.boot_id)
    }

    /// The mark that is good, and the sequence up to which it vouches for every frame.
    ///
    /// # Errors
    /// [`JournalError::MarkDamaged`].
    pub fn good_mark(&self) -> Result<(MarkName, u64), JournalError> {
        crate::evaluation::good_mark(&self.survey, self.newest(), self.is_same_boot())
            .map(|good| (good.name, good.sequence))
    }

    /// The last sequence that can be read now; one before the first where there is none. On another
    /// boot than the one on which the journal was written this reads the newest segment.
    ///
    /// # Errors
    /// As [`Replay::next_frame`].
    pub fn last_sequence(&self) -> Result<u64, JournalError> {
        let mut replay = self.replay(self.newest().first_sequence)?;
        if replay.is_same_boot() {
            return replay.journaled_sequence();
        }
        while replay.next_batch()?.is_some() {}
        Ok(replay.next_sequence() - 1)
    }

    /// The last sequence that opening the journal for writing would keep: all is looked at that it would look at, and
    /// nothing is changed.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn recoverable_sequence(&self) -> Result<u64, JournalError> {
        self.survey.check_complete(&self.directory)?;
        let evaluation = evaluate(&self.survey, &self.environment, RecoveryCheck::Tail)?;
        Ok(evaluation.kept.last().map_or(0, |kept| kept.last_sequence))
    }

    /// The last sequence that was on the device when this reader was opened, as the marks say.
    #[must_use]
    pub fn synced_sequence(&self) -> u64 {
        self.survey.synced_sequence()
    }

    /// The last sequence at or before `sequence`, and behind the first one, with which a segment begins and which no message crosses: what is before it
    /// can be deleted. `None` if there is none.
    ///
    /// # Errors
    /// As [`Replay::next_frame`], of the segment that begins with it.
    pub fn boundary_at(&self, sequence: u64) -> Result<Option<u64>, JournalError> {
        let others = self.survey.segments.iter().skip(1).rev();
        for found in others.filter(|found| found.has_final_name && found.first_sequence <= sequence) {
            let mut replay = self.replay(found.first_sequence)?;
            if replay.next_frame()?.is_some_and(|frame| frame.fragment().index == 0) {
                return Ok(Some(found.first_sequence));
            }
        }
        Ok(None)
    }

    /// Frames from `from_sequence` on, each with both checksums checked. `from_sequence` may be one after the last, for
    /// a reader that only follows.
    ///
    /// A writer may cut frames off meanwhile and write others in their place: a returned frame is a copy, whole and
    /// checked.
    ///
    /// # Errors
    /// [`JournalError::NotHeld`] for a sequence that the journal does not hold (any more), and
    /// damage on the way to it.
    pub fn replay(&self, from_sequence: u64) -> Result<Replay, JournalError> {
        Replay::begin(&self.directory, self.environment.clone(), &self.survey, from_sequence, None)
    }

    /// As [`JournalReader::replay`] up to the frame `last_sequence`, without a copy: frames are borrowed where they
    /// stand. For callers that know that nobody cuts them off, because they are released or nobody writes this journal
    /// now. [`Replay::read_until`] moves that limit on.
    ///
    /// # Errors
    /// As [`JournalReader::replay`].
    pub fn replay_until(&self, from_sequence: u64, last_sequence: u64) -> Result<Replay, JournalError> {
        Replay::begin(&self.directory, self.environment.clone(), &self.survey, from_sequence, Some(last_sequence))
    }

    /// The records of consensus, oldest first: from the newest checkpoint on if there is one, with all after it. They
    /// are read into memory, as [`JournalReader::replay`] reads frames: records that a writer appends later are not
    /// among them.
    ///
    /// # Errors
    /// As [`Replay::next_frame`]: damage in a record, or in a frame after the first, that a good mark covers.
    pub fn records(&self) -> Result<Records, JournalError> {
        let is_same_boot = self.is_same_boot();
        let good = crate::evaluation::good_mark(&self.survey, self.newest(), is_same_boot)?;
        // On another boot one that is not vouched for may stand after the journal's end.
        let is_good = |found: &&Found| match found.segment_records {
            SegmentRecords::Checkpoint { position, behind_sequence } => {
                is_same_boot || behind_sequence < good.sequence || position < good.must_reach(found)
            }
            SegmentRecords::Nothing | SegmentRecords::Records => false,
        };
        for found in self.survey.segments.iter().rev().filter(is_good) {
            let mut replay = self.replay_segment(found)?;
            if replay.stand_at_checkpoint()? {
                return replay.into_records();
            }
        }
        self.replay_segment(self.oldest())?.into_records()
    }

    /// Of the newest checkpoints of the segments, the first from the newest on that is wanted. One that cannot be read is
    /// passed over, as is a segment that is deleted meanwhile.
    ///
    /// # Errors
    /// A segment that cannot be opened.
    pub fn newest_checkpoint(
        &self,
        mut is_wanted: impl FnMut(&Record) -> bool,
    ) -> Result<Option<Record>, JournalError> {
        for found in self
            .survey
            .segments
            .iter()
            .rev()
            .filter(|found| matches!(found.segment_records, SegmentRecords::Checkpoint { .. }))
        {
            let record = match self.replay_segment(found) {
                Ok(mut replay) => replay.checkpoint()?,
                Err(JournalError::NotHeld { .. }) => None,
                Err(error) => return Err(error),
            };
            if let Some(record) = record.filter(&mut is_wanted) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// From the first byte of a segment on, records included.
    pub(crate) fn replay_segment(&self, found: &Found) -> Result<Replay, JournalError> {
        Replay::begin_segment(&self.directory, self.environment.clone(), &self.survey, found.first_sequence)
    }

    pub(crate) fn segments(&self) -> &[Found] {
        &self.survey.segments
    }

    pub(crate) fn survey(&self) -> &Survey {
        &self.survey
    }

    pub(crate) fn newest_path(&self) -> &Path {
        &self.newest().path
    }

    fn oldest(&self) -> &Found {
        self.survey.segments.first().expect("open refuses a directory without segments")
    }

    fn newest(&self) -> &Found {
        self.survey.segments.last().expect("open refuses a directory without segments")
    }
}
