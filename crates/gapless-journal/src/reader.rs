//! The reader: without the lock, also while a writer runs, or from a copy. It never writes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::directory::{Survey, SurveyedSegment, survey};
use crate::error::{JournalError, MarkName};
use crate::evaluation::evaluate;
use crate::options::{JournalEnvironment, RecoveryCheck};
use crate::records::{ConsensusRecord, ConsensusRecords, SegmentRecords};
use crate::replay::Replay;

/// A live writer may change the directory between the read of the history and the listing.
const COMPLETE_ATTEMPTS_MAX: usize = 10;

/// A journal, open for reading.
#[derive(Clone, Debug)]
pub struct JournalReader {
    directory: PathBuf,
    environment: JournalEnvironment,
    survey: Survey,
}

impl JournalReader {
    /// Opens the journal in its current state; a [`Replay`] follows later frames.
    ///
    /// # Errors
    /// [`JournalError::NoJournal`] if the directory is missing or has no segment, and errors in the headers of its
    /// segments.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, JournalError> {
        Self::open_in(directory, JournalEnvironment::default())
    }

    /// In the environment of another machine.
    ///
    /// # Errors
    /// As [`JournalReader::open`].
    pub fn open_in(directory: impl Into<PathBuf>, environment: JournalEnvironment) -> Result<Self, JournalError> {
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

    /// Like [`JournalReader::open`], but refuses a journal whose oldest or newest segments are missing.
    ///
    /// # Errors
    /// As [`JournalReader::open`]; the missing segments, and the file that names them.
    pub fn open_complete(directory: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let (reader, complete) = Self::open_and_compare(directory, JournalEnvironment::default())?;
        complete.map(|()| reader)
    }

    pub(crate) fn open_and_compare(
        directory: impl Into<PathBuf>,
        environment: JournalEnvironment,
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

    pub(crate) fn of(directory: &Path, environment: &JournalEnvironment, survey: &Survey) -> Self {
        Self { directory: directory.to_owned(), environment: environment.clone(), survey: survey.clone() }
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    #[must_use]
    pub fn stream_id(&self) -> u128 {
        self.oldest().header.stream_id
    }

    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.oldest().header.incarnation
    }

    /// Returns the oldest sequence at the time of opening.
    #[must_use]
    pub fn first_sequence(&self) -> u64 {
        self.oldest().first_sequence
    }

    /// Tells whether this boot of this machine wrote last, so that the journaled mark is good.
    #[must_use]
    pub fn is_same_boot(&self) -> bool {
        self.survey.is_same_boot(self.environment.boot_id)
    }

    /// Returns the good mark, and the sequence up to which it vouches.
    ///
    /// # Errors
    /// [`JournalError::MarkDamaged`].
    pub fn good_mark(&self) -> Result<(MarkName, u64), JournalError> {
        crate::evaluation::good_mark(&self.survey, self.newest(), self.is_same_boot())
            .map(|good| (good.name, good.sequence))
    }

    /// Returns the last sequence readable now; one before the first in an empty journal. On another boot than the
    /// writer's this reads the newest segment.
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

    /// Returns the last sequence that opening for writing would keep. Changes nothing.
    ///
    /// # Errors
    /// Errors of opening it.
    pub fn recoverable_sequence(&self) -> Result<u64, JournalError> {
        self.survey.check_complete(&self.directory)?;
        let evaluation = evaluate(&self.survey, &self.environment, RecoveryCheck::Tail)?;
        Ok(evaluation.kept.last().map_or(0, |kept| kept.last_sequence))
    }

    /// Returns the last synced sequence at the time of opening.
    #[must_use]
    pub fn synced_sequence(&self) -> u64 {
        self.survey.synced_sequence()
    }

    /// Returns the start of the newest segment at or before `sequence` that does not begin inside a message: frames
    /// before it can be deleted. Never the oldest segment.
    ///
    /// # Errors
    /// As [`Replay::next_frame`], for the segment that begins with it.
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

    /// Replays from `from_sequence` on, at most one after the last. Frames are checked copies, because a writer may
    /// truncate frames meanwhile and write others in their place.
    ///
    /// # Errors
    /// [`JournalError::NotHeld`] for a sequence that is not, or no longer, in the journal, and damage before it.
    pub fn replay(&self, from_sequence: u64) -> Result<Replay, JournalError> {
        Replay::begin(&self.directory, self.environment.clone(), &self.survey, from_sequence, None)
    }

    /// Replays up to `last_sequence`, with frames borrowed in place: the caller must know that they cannot be
    /// truncated, because they are released or the journal has no writer. [`Replay::read_until`] raises the limit.
    ///
    /// # Errors
    /// As [`JournalReader::replay`].
    pub fn replay_until(&self, from_sequence: u64, last_sequence: u64) -> Result<Replay, JournalError> {
        Replay::begin(&self.directory, self.environment.clone(), &self.survey, from_sequence, Some(last_sequence))
    }

    /// Reads the consensus records, from the newest checkpoint if there is one; not those appended later.
    ///
    /// # Errors
    /// As [`Replay::next_frame`]: damage in a record, or in a frame after the first, that a good mark covers.
    pub fn records(&self) -> Result<ConsensusRecords, JournalError> {
        let is_same_boot = self.is_same_boot();
        let good = crate::evaluation::good_mark(&self.survey, self.newest(), is_same_boot)?;
        // On another boot, a checkpoint that no mark vouches for may lie after the journal's end.
        let is_good = |found: &&SurveyedSegment| match found.segment_records {
            SegmentRecords::Checkpoint { position, after_sequence } => {
                is_same_boot || after_sequence < good.sequence || position < good.vouched_end(found)
            }
            SegmentRecords::Empty | SegmentRecords::Records => false,
        };
        for found in self.survey.segments.iter().rev().filter(is_good) {
            let mut replay = self.replay_segment(found)?;
            if replay.seek_to_checkpoint()? {
                return replay.into_records();
            }
        }
        self.replay_segment(self.oldest())?.into_records()
    }

    /// Returns the first wanted checkpoint, newest segment first; each segment has at most its newest. Skips
    /// checkpoints that cannot be read, and segments deleted meanwhile.
    ///
    /// # Errors
    /// A segment cannot be opened.
    pub fn newest_checkpoint(
        &self,
        mut is_wanted: impl FnMut(&ConsensusRecord) -> bool,
    ) -> Result<Option<ConsensusRecord>, JournalError> {
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

    pub(crate) fn replay_segment(&self, found: &SurveyedSegment) -> Result<Replay, JournalError> {
        Replay::begin_segment(&self.directory, self.environment.clone(), &self.survey, found.first_sequence)
    }

    pub(crate) fn segments(&self) -> &[SurveyedSegment] {
        &self.survey.segments
    }

    pub(crate) fn survey(&self) -> &Survey {
        &self.survey
    }

    pub(crate) fn newest_path(&self) -> &Path {
        &self.newest().path
    }

    fn oldest(&self) -> &SurveyedSegment {
        self.survey.segments.first().expect("open refuses a directory without segments")
    }

    fn newest(&self) -> &SurveyedSegment {
        self.survey.segments.last().expect("open refuses a directory without segments")
    }
}
