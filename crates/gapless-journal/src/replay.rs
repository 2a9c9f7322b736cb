//! Replay: reads the frames of a journal in order, also while a writer runs. On the boot that wrote the journal it
//! stops at the journaled mark. On any other boot it reads to the first invalid frame: that is an error up to the
//! synced mark, and after it the end. Frames are checked; consensus records are checked and skipped.

mod end;
mod open_segment;
mod records;
mod view;

use crate::ReplayStop;
use std::path::{Path, PathBuf};

use gapless_wire::{Frame, aligned_length};

use crate::directory::{Survey, SurveyedSegment, survey};
use crate::error::{FrameFault, JournalError, MarkName};
use crate::frame_batch::FrameBatch;
use crate::options::JournalEnvironment;
use crate::records::SkippedRecords;
use crate::scan::{check_next, is_record};
use crate::{descriptor as d, index};
use open_segment::{OpenSegment, not_held_error};
use view::SegmentView;

/// Range that the kernel is asked to map at once; doubles while frames are read in a row. The first frames after a seek
/// are not requested, because they may be the only ones that are read.
const READ_AHEAD_LENGTH_MAX: usize = 4 << 20;
const READ_AHEAD_LENGTH_MIN: usize = 64 << 10;
/// Length checked ahead after a seek; doubles each time.
const CHECK_AHEAD_LENGTH_MIN: usize = 512;
/// Segments that stay mapped while a replay visits others.
const OTHERS_MAX: usize = 64;

/// Reads frames in order. Created by [`crate::JournalReader::replay`].
#[derive(Debug)]
pub struct Replay {
    directory: PathBuf,
    environment: JournalEnvironment,
    is_same_boot: bool,
    synced_sequence: u64,
    segments: Vec<SurveyedSegment>,
    current: OpenSegment,
    others: Vec<OpenSegment>,
    position: usize,
    /// Frames before this position are checked.
    checked_until: usize,
    view: SegmentView,
    /// Frames may be read up to this position.
    limit: usize,
    read_ahead_until: usize,
    read_ahead_length: usize,
    check_ahead_length: usize,
    next_sequence: u64,
    next_unchecked: u64,
    until: u64,
    stop: Option<ReplayStop>,
    /// Generation of the journaled mark when the limit was taken from it.
    limit_generation: u64,
    /// Vouched for by a synced mark; see `GoodMark`.
    synced_position: Option<(u64, u64)>,
    skipped_bytes: usize,
    skipped: SkippedRecords,
}

impl Replay {
    pub(crate) fn begin(
        directory: &Path,
        environment: JournalEnvironment,
        survey: &Survey,
        from_sequence: u64,
        until: Option<u64>,
    ) -> Result<Self, JournalError> {
        let mut replay = Self::begin_segment(directory, environment, survey, from_sequence)?;
        if let Some(until) = until {
            (replay.view, replay.until) = (SegmentView::in_place(), until);
        }
        replay.seek_frame(from_sequence)?;
        Ok(replay)
    }

    pub(crate) fn begin_segment(
        directory: &Path,
        environment: JournalEnvironment,
        survey: &Survey,
        from_sequence: u64,
    ) -> Result<Self, JournalError> {
        let segments = survey.segments.clone();
        let holding = segments.iter().rposition(|found| found.first_sequence <= from_sequence);
        let Some(holding) = holding else {
            return Err(not_held_error(directory, &segments, from_sequence, None));
        };
        let current = OpenSegment::open(&segments[holding], directory, &segments, from_sequence)?;
        let mut replay = Self {
            directory: directory.to_owned(),
            is_same_boot: survey.is_same_boot(environment.boot_id),
            environment,
            synced_sequence: survey.synced_sequence(),
            segments,
            current,
            others: Vec::new(),
            position: 0,
            checked_until: 0,
            view: SegmentView::with_copies(),
            limit: 0,
            read_ahead_until: 0,
            read_ahead_length: 0,
            check_ahead_length: CHECK_AHEAD_LENGTH_MIN,
            next_sequence: 0,
            next_unchecked: 0,
            until: u64::MAX,
            stop: None,
            limit_generation: 0,
            synced_position: survey.synced_position(),
            skipped_bytes: 0,
            skipped: SkippedRecords::default(),
        };
        replay.seek_to_start();
        Ok(replay)
    }

    /// Reads no frame after `until`, like [`crate::JournalReader::replay_until`]. Up to 64 segments stay mapped.
    ///
    /// # Errors
    /// As [`crate::JournalReader::replay`]; the replay is unusable afterwards.
    pub fn seek(&mut self, sequence: u64, until: u64) -> Result<(), JournalError> {
        let holding = self.segments.iter().rposition(|found| found.first_sequence <= sequence);
        let Some(holding) = holding else {
            return Err(not_held_error(&self.directory, &self.segments, sequence, None));
        };
        let first_sequence = self.segments[holding].first_sequence;
        let is_here = first_sequence == self.current.found.first_sequence;
        if !is_here {
            let known = self.others.iter().position(|other| other.found.first_sequence == first_sequence);
            let current = match known {
                Some(known) => self.others.remove(known),
                None => OpenSegment::open(&self.segments[holding], &self.directory, &self.segments, sequence)?,
            };
            let left = std::mem::replace(&mut self.current, current);
            if !left.is_in_memory() {
                self.others.push(left);
            }
            if self.others.len() > OTHERS_MAX {
                self.others.remove(0);
            }
        }
        (self.until, self.stop) = (until, None);
        if !is_here || sequence < self.next_sequence {
            self.seek_to_start();
        }
        self.seek_frame(sequence)
    }

    /// Returns `None` at the end of the journal, where a later call may find more.
    ///
    /// # Errors
    /// [`JournalError::Corrupt`] for a bad frame that a good mark covers, errors for segments that are missing or do
    /// not belong together, and [`JournalError::Rewound`] if the writer has truncated frames that were read already.
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, JournalError> {
        if !self.has_next()? {
            return Ok(None);
        }
        let bytes = self.view.bytes(&self.current.mapping, self.position, self.checked_until);
        let frame = Frame::parse(bytes).expect("it was checked");
        self.position += aligned_length(frame.length());
        self.next_sequence += 1;
        self.skipped_bytes = 0;
        Ok(Some(frame))
    }

    /// Returns the next frames without a gap: up to about 32 KiB, or 4 KiB of copies, and fewer after a seek. `None` at
    /// the end of the journal, where a later call may find more.
    ///
    /// # Errors
    /// As [`Replay::next_frame`].
    pub fn next_batch(&mut self) -> Result<Option<FrameBatch<'_>>, JournalError> {
        if !self.has_next()? {
            return Ok(None);
        }
        let start = self.position;
        let first_sequence = self.next_sequence;
        self.position = self.checked_until;
        self.next_sequence = self.next_unchecked;
        self.skipped_bytes = 0;
        let frames = self.view.bytes(&self.current.mapping, start, self.checked_until);
        Ok(Some(FrameBatch::new(frames, first_sequence)))
    }

    /// Limits the replay, next to a writer that may truncate unreleased frames; see
    /// [`crate::JournalReader::replay_until`].
    #[inline]
    pub const fn read_until(&mut self, sequence: u64) {
        self.until = sequence;
    }

    #[cold]
    fn check_again(&mut self) -> Result<bool, JournalError> {
        (self.checked_until, self.next_unchecked, self.skipped_bytes) = (self.position, self.next_sequence, 0);
        if self.is_same_boot {
            self.move_limit()?;
        }
        self.check_ahead()
    }

    /// Moves back before the last frame returned by [`Replay::next_frame`].
    ///
    /// # Panics
    /// That frame does not have `length` bytes.
    pub fn step_back(&mut self, length: usize) {
        let frames_offset = self.current.found.header.frames_offset as usize;
        let passed = self.skipped_bytes + aligned_length(length);
        let position = self.position.checked_sub(passed).filter(|position| *position >= frames_offset);
        self.position = position.expect("a frame of this length was returned");
        self.next_sequence -= 1;
        if self.skipped_bytes > 0 || !self.view.is_readable_at(self.position) {
            // Records lie between the two frames, so one check does not return both; or only the second frame was
            // copied.
            (self.checked_until, self.next_unchecked, self.skipped_bytes) = (self.position, self.next_sequence, 0);
        }
    }

    /// Tells whether [`Replay::next_frame`] returns a frame now.
    ///
    /// # Errors
    /// As [`Replay::next_frame`].
    #[inline]
    pub fn has_next(&mut self) -> Result<bool, JournalError> {
        if self.position == self.checked_until {
            return self.check_ahead();
        }
        if self.view.is_current(&self.current.mapping, self.position) { Ok(true) } else { self.check_again() }
    }

    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Returns the place of the next frame, or of the records before it.
    #[must_use]
    pub fn position(&self) -> (&Path, u64) {
        self.current.place_of(self.position)
    }

    /// Returns the reason if the replay ended before the journal's bytes.
    #[must_use]
    pub fn stop(&self) -> Option<&ReplayStop> {
        self.stop.as_ref()
    }

    pub(crate) fn is_same_boot(&self) -> bool {
        self.is_same_boot
    }

    pub(crate) fn journaled_sequence(&mut self) -> Result<u64, JournalError> {
        let (mut is_sealed, mut last_sequence) = self.move_limit()?;
        let mut attempt = 0;
        while is_sealed {
            if attempt == end::SUCCESSOR_ATTEMPTS_MAX {
                let (segment, sequence) = (self.current.found.path.clone(), last_sequence + 1);
                return Err(JournalError::SuccessorMissing { segment, sequence });
            }
            attempt += 1;
            self.segments = survey(&self.directory, None)?.segments;
            if let Some(next) = self.successor() {
                self.enter(&next)?;
                (is_sealed, last_sequence) = self.move_limit()?;
                attempt = 0;
            }
        }
        Ok(last_sequence)
    }

    pub(crate) fn bad_index_entries(&mut self) -> Result<u64, JournalError> {
        if self.is_same_boot {
            self.move_limit()?;
        }
        let frames = self.current.found.header.frames_offset as usize..self.limit;
        let words = self.current.index();
        Ok(words.map_or(0, |words| index::count_bad(words, frames, self.current.frame_checker(self.limit))))
    }

    fn seek_to_start(&mut self) {
        let found = &self.current.found;
        let frames_offset = found.header.frames_offset as usize;
        self.position = frames_offset;
        self.checked_until = frames_offset;
        self.read_ahead_until = frames_offset;
        self.next_sequence = found.first_sequence;
        self.next_unchecked = found.first_sequence;
        self.skipped_bytes = 0;
        // On the same boot the mark is read with the first frame.
        self.limit = if self.is_same_boot { frames_offset } else { self.current.mapping.length() };
    }

    fn seek_frame(&mut self, sequence: u64) -> Result<(), JournalError> {
        if self.is_same_boot {
            self.move_limit()?;
        }
        let frames = self.current.found.header.frames_offset as usize..self.limit;
        // A replay of a whole segment must also see the records before its first frame.
        let is_inside = sequence > self.current.found.first_sequence;
        if let Some(words) = self.current.index().filter(|_| is_inside)
            && let Some((near, position)) =
                index::nearest(words, frames, sequence, self.current.frame_checker(self.limit))
            && position > self.position
        {
            (self.position, self.checked_until) = (position, position);
            (self.next_sequence, self.next_unchecked) = (near, near);
            self.read_ahead_until = position;
        }
        // Frames from `sequence` on are read later: the caller may set a limit first.
        let until = self.until;
        self.until = until.min(sequence.saturating_sub(1));
        while self.next_sequence < sequence {
            if self.next_frame()?.is_none() {
                return Err(not_held_error(&self.directory, &self.segments, sequence, Some(self.next_sequence - 1)));
            }
        }
        self.until = until;
        (self.check_ahead_length, self.read_ahead_length) = (CHECK_AHEAD_LENGTH_MIN, 0);
        Ok(())
    }

    /// Returns `false` at the end of the journal, and then stays before records without a following frame, because they
    /// may still be truncated.
    fn check_ahead(&mut self) -> Result<bool, JournalError> {
        let mut attempts = 0;
        if self.next_unchecked > self.until {
            return Ok(false);
        }
        loop {
            let frame_length_max = self.current.found.header.frame_length_max as usize;
            if self.checked_until >= self.read_ahead_until && self.limit > self.checked_until {
                let from = self.checked_until / d::PAGE_LENGTH * d::PAGE_LENGTH;
                let length = self.read_ahead_length.max(READ_AHEAD_LENGTH_MIN);
                self.read_ahead_until = from + length;
                if self.read_ahead_length > 0 && !self.current.is_in_memory() {
                    self.current.mapping.read_ahead(from..self.read_ahead_until.min(self.limit));
                }
                self.read_ahead_length = (length * 2).min(READ_AHEAD_LENGTH_MAX);
            }
            let start = self.checked_until;
            self.view.begin(start);
            let (mut offset, mut records_end, mut sequence) = (0, 0, self.next_unchecked);
            let mut fault = None;
            let ahead_length = self.view.ahead_length().min(self.check_ahead_length);
            self.check_ahead_length = ahead_length * 2;
            while offset - records_end < ahead_length && start + offset < self.limit && sequence <= self.until {
                let readable = match self.current.readable_until(start + offset, self.limit) {
                    Ok(readable) => readable,
                    // The error is met again after the frames before it are read.
                    Err(_) if sequence != self.next_unchecked => break,
                    Err(error) => return Err(error),
                };
                let bytes = self.view.frame_at(&self.current.mapping, start + offset, readable);
                match check_next(bytes, sequence, frame_length_max) {
                    Ok(record) if is_record(&record) => {
                        if sequence != self.next_unchecked {
                            break;
                        }
                        self.skipped.add(self.current.found.first_sequence, start + offset, &record);
                        offset += aligned_length(record.length());
                        records_end = offset;
                        // No byte before the first frame is returned, and records alone may fill a segment.
                        self.view.discard_before(start + offset);
                    }
                    Ok(frame) => {
                        offset += aligned_length(frame.length());
                        sequence += 1;
                    }
                    Err(found) => {
                        fault = Some(found);
                        break;
                    }
                }
            }
            if sequence != self.next_unchecked {
                // The fault is met again after the frames before it are read.
                self.position = start + records_end;
                self.skipped_bytes = records_end;
                self.checked_until = start + offset;
                self.next_unchecked = sequence;
                return Ok(true);
            }
            let at = start + offset;
            let goes_on = if self.is_same_boot {
                match fault {
                    Some(fault) => {
                        // Records after the last frame may be truncated and replaced while they are read.
                        let limit = self.limit;
                        let generation = self.limit_generation;
                        self.move_limit()?;
                        attempts += 1;
                        let has_moved = self.limit_generation != generation || self.limit != limit;
                        if !has_moved || attempts > REREAD_ATTEMPTS_MAX {
                            return Err(self.corrupt(fault, MarkName::Journaled, at));
                        }
                        true
                    }
                    None => self.continue_by_mark(at)?,
                }
            } else {
                self.continue_without_mark(fault.unwrap_or(FrameFault::Empty), at)?
            };
            if !goes_on {
                return Ok(false);
            }
        }
    }

    fn successor(&self) -> Option<SurveyedSegment> {
        self.segments.iter().find(|found| found.first_sequence > self.current.found.first_sequence).cloned()
    }

    fn enter(&mut self, next: &SurveyedSegment) -> Result<(), JournalError> {
        self.current = OpenSegment::open(next, &self.directory, &self.segments, next.first_sequence)?;
        self.seek_to_start();
        if self.is_same_boot {
            self.move_limit()?;
        }
        Ok(())
    }
}

/// Attempts to reread a bad frame while the journaled mark moves.
const REREAD_ATTEMPTS_MAX: usize = 3;
