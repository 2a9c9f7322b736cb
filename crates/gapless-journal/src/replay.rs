//! Replay: frames of a journal one after the other, copied out of the mapped segments, or in place where nobody cuts
//! them.
//!
//! On the boot on which the journal was written it stops at the journaled mark, and so may run beside the writer. On
//! any other it reads as far as frames go: a bad one up to the synced mark is an error, after it the end. Frames that
//! it returns are checked; for one that it cannot return it gives the reason. Records of consensus are checked as
//! frames are, and passed over.

mod current;
mod end;
mod records;
mod view;

use crate::ReplayStop;
use std::path::{Path, PathBuf};

use gapless_wire::{Frame, aligned_length};

use crate::directory::{Found, Survey, survey};
use crate::error::{FrameFault, JournalError, MarkName};
use crate::frame_batch::FrameBatch;
use crate::options::Environment;
use crate::records::Passed;
use crate::scan::{check_next, is_record};
use crate::{descriptor as d, index};
use current::{Current, not_held};
use view::View;

/// The kernel is asked to map this much at once, at most: twice as much each time while frames are read in a row. For the first ones it is not
/// asked, which may be all that are read there.
const READ_AHEAD_LENGTH_MAX: usize = 4 << 20;
const READ_AHEAD_LENGTH_MIN: usize = 64 << 10;
/// So much is checked ahead where a replay has gone to, and twice as much each time.
const CHECK_AHEAD_LENGTH_MIN: usize = 512;
/// Segments that stay mapped while a replay goes to others.
const OTHERS_MAX: usize = 64;

/// Reads frames in order. Made by [`crate::JournalReader::replay`].
#[derive(Debug)]
pub struct Replay {
    directory: PathBuf,
    environment: Environment,
    is_same_boot: bool,
    synced_sequence: u64,
    /// The segments that the last look at the directory found.
    segments: Vec<Found>,
    current: Current,
    /// Segments that it was in before; the last one at the end.
    others: Vec<Current>,
    /// Where the next frame begins.
    position: usize,
    /// Frames up to here are checked.
    checked_until: usize,
    /// Holds what is checked and not returned.
    view: View,
    /// Frames may be read up to here.
    limit: usize,
    read_ahead_until: usize,
    read_ahead_length: usize,
    check_ahead_length: usize,
    /// The sequence of the frame at `position`.
    next_sequence: u64,
    /// The sequence of the frame at `checked_until`.
    next_unchecked: u64,
    /// Frames after this sequence are not looked at.
    until: u64,
    stop: Option<ReplayStop>,
    /// How often the journaled mark had been written when the limit was taken from it.
    limit_generation: u64,
    /// The furthest byte up to which a synced mark vouches for all of them, see `GoodMark`.
    synced_position: Option<(u64, u64)>,
    /// Length of the records between the frame that was returned last and `position`.
    passed_over: usize,
    passed: Passed,
}

impl Replay {
    pub(crate) fn begin(
        directory: &Path,
        environment: Environment,
        survey: &Survey,
        from_sequence: u64,
        until: Option<u64>,
    ) -> Result<Self, JournalError> {
        let mut replay = Self::begin_segment(directory, environment, survey, from_sequence)?;
        if let Some(until) = until {
            (replay.view, replay.until) = (View::in_place(), until);
        }
        replay.seek(from_sequence)?;
        Ok(replay)
    }

    /// At the first byte of the segment that holds `from_sequence`.
    pub(crate) fn begin_segment(
        directory: &Path,
        environment: Environment,
        survey: &Survey,
        from_sequence: u64,
    ) -> Result<Self, JournalError> {
        let segments = survey.segments.clone();
        let holding = segments.iter().rposition(|found| found.first_sequence <= from_sequence);
        let Some(holding) = holding else {
            return Err(not_held(directory, &segments, from_sequence, None));
        };
        let current = Current::open(&segments[holding], directory, &segments, from_sequence)?;
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
            view: View::copying(),
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
            passed_over: 0,
            passed: Passed::default(),
        };
        replay.stand_at_start();
        Ok(replay)
    }

    /// Goes to another frame, and will look at none behind `until`: as [`crate::JournalReader::replay_until`], but segments stay mapped, up to
    /// 64 of them.
    ///
    /// # Errors
    /// As [`crate::JournalReader::replay`]; then this replay is of no use any more.
    pub fn go_to(&mut self, sequence: u64, until: u64) -> Result<(), JournalError> {
        let holding = self.segments.iter().rposition(|found| found.first_sequence <= sequence);
        let Some(holding) = holding else { return Err(not_held(&self.directory, &self.segments, sequence, None)) };
        let first_sequence = self.segments[holding].first_sequence;
        let is_here = first_sequence == self.current.found.first_sequence;
        if !is_here {
            let known = self.others.iter().position(|other| other.found.first_sequence == first_sequence);
            let current = match known {
                Some(known) => self.others.remove(known),
                None => Current::open(&self.segments[holding], &self.directory, &self.segments, sequence)?,
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
            self.stand_at_start();
        }
        self.seek(sequence)
    }

    /// The next frame; `None` at the end of the journal, where a later call may find more.
    ///
    /// # Errors
    /// [`JournalError::Corrupt`] for a bad frame that a good mark covers, the errors of segments that are missing or do not
    /// belong together, and [`JournalError::Rewound`] where the writer has cut off what was read already.
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, JournalError> {
        if !self.has_next()? {
            return Ok(None);
        }
        let bytes = self.view.bytes(&self.current.mapping, self.position, self.checked_until);
        let frame = Frame::parse(bytes).expect("it was checked");
        self.position += aligned_length(frame.length());
        self.next_sequence += 1;
        self.passed_over = 0;
        Ok(Some(frame))
    }

    /// The next frames, as many as are checked already or in one go (up to about 32 KiB, or 4 of copies; fewer behind a change of place), without
    /// anything between them; `None` at the end of the journal, where a later call may find more.
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
        self.passed_over = 0;
        let frames = self.view.bytes(&self.current.mapping, start, self.checked_until);
        Ok(Some(FrameBatch::new(frames, first_sequence)))
    }

    /// Frames after `sequence` are not looked at before a later call says a higher one. For callers that read beside a
    /// writer that may cut off unreleased frames; see [`crate::JournalReader::replay_until`].
    #[inline]
    pub const fn read_until(&mut self, sequence: u64) {
        self.until = sequence;
    }

    /// Frames that were checked ahead have been cut off since, and perhaps replaced.
    #[cold]
    fn check_again(&mut self) -> Result<bool, JournalError> {
        (self.checked_until, self.next_unchecked, self.passed_over) = (self.position, self.next_sequence, 0);
        if self.is_same_boot {
            self.move_limit()?;
        }
        self.check_ahead()
    }

    /// Goes back before the frame of `length` bytes that [`Replay::next_frame`] returned last.
    ///
    /// # Panics
    /// If that was no frame of this length.
    pub fn step_back(&mut self, length: usize) {
        let frames_offset = self.current.found.header.frames_offset as usize;
        let passed = self.passed_over + aligned_length(length);
        let position = self.position.checked_sub(passed).filter(|position| *position >= frames_offset);
        self.position = position.expect("a frame of this length was returned");
        self.next_sequence -= 1;
        if self.passed_over > 0 || !self.view.reaches_back_to(self.position) {
            // Records stand between the two frames, so they are not returned from the same check; or only the second was
            // copied.
            (self.checked_until, self.next_unchecked, self.passed_over) = (self.position, self.next_sequence, 0);
        }
    }

    /// Whether [`Replay::next_frame`] returns a frame now.
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

    /// The sequence that [`Replay::next_frame`] returns next.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The segment and the byte where the next frame begins, or where the records before it do.
    #[must_use]
    pub fn position(&self) -> (&Path, u64) {
        self.current.place_of(self.position)
    }

    /// Why the replay ended before the bytes of the journal do, if it did.
    #[must_use]
    pub fn stop(&self) -> Option<&ReplayStop> {
        self.stop.as_ref()
    }

    pub(crate) fn is_same_boot(&self) -> bool {
        self.is_same_boot
    }

    /// The last sequence of the newest segment, by its mark.
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

    /// How many index entries of the current segment lead to no frame.
    pub(crate) fn bad_index_entries(&mut self) -> Result<u64, JournalError> {
        if self.is_same_boot {
            self.move_limit()?;
        }
        let frames = self.current.found.header.frames_offset as usize..self.limit;
        let words = self.current.index();
        Ok(words.map_or(0, |words| index::count_bad(words, frames, self.current.look(self.limit))))
    }

    fn stand_at_start(&mut self) {
        let found = &self.current.found;
        let frames_offset = found.header.frames_offset as usize;
        self.position = frames_offset;
        self.checked_until = frames_offset;
        self.read_ahead_until = frames_offset;
        self.next_sequence = found.first_sequence;
        self.next_unchecked = found.first_sequence;
        self.passed_over = 0;
        // On the same boot the mark is asked when the first frame is.
        self.limit = if self.is_same_boot { frames_offset } else { self.current.mapping.length() };
    }

    /// Goes to the frame of `sequence` in the current segment, which does not stand before the place where this is.
    fn seek(&mut self, sequence: u64) -> Result<(), JournalError> {
        if self.is_same_boot {
            self.move_limit()?;
        }
        let frames = self.current.found.header.frames_offset as usize..self.limit;
        // A replay of a whole segment meets what stands before its first frame, too.
        let is_inside = sequence > self.current.found.first_sequence;
        if let Some(words) = self.current.index().filter(|_| is_inside)
            && let Some((near, position)) = index::nearest(words, frames, sequence, self.current.look(self.limit))
            && position > self.position
        {
            (self.position, self.checked_until) = (position, position);
            (self.next_sequence, self.next_unchecked) = (near, near);
            self.read_ahead_until = position;
        }
        // Frames from there on are looked at when they are asked for: until then the caller may set a limit.
        let until = self.until;
        self.until = until.min(sequence.saturating_sub(1));
        while self.next_sequence < sequence {
            if self.next_frame()?.is_none() {
                return Err(not_held(&self.directory, &self.segments, sequence, Some(self.next_sequence - 1)));
            }
        }
        self.until = until;
        (self.check_ahead_length, self.read_ahead_length) = (CHECK_AHEAD_LENGTH_MIN, 0);
        Ok(())
    }

    /// Checks the next frames, and the records before them. `false` at the end of the journal; it stands before records
    /// that no frame follows, because they may still be cut.
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
                    // It is met again when the frames before it are read.
                    Err(_) if sequence != self.next_unchecked => break,
                    Err(error) => return Err(error),
                };
                let bytes = self.view.frame_at(&self.current.mapping, start + offset, readable);
                match check_next(bytes, sequence, frame_length_max) {
                    Ok(record) if is_record(&record) => {
                        if sequence != self.next_unchecked {
                            // A batch holds frames alone.
                            break;
                        }
                        self.passed.note(self.current.found.first_sequence, start + offset, &record);
                        offset += aligned_length(record.length());
                        records_end = offset;
                        // Nothing before the first frame is returned, and records alone may fill a segment.
                        self.view.forget_before(start + offset);
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
                // A fault is met again when the frames before it are read.
                self.position = start + records_end;
                self.passed_over = records_end;
                self.checked_until = start + offset;
                self.next_unchecked = sequence;
                return Ok(true);
            }
            let at = start + offset;
            let goes_on = if self.is_same_boot {
                match fault {
                    Some(fault) => {
                        // Records after the last frame may be cut, and others written there, while they are read.
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
                    None => self.go_on_by_mark(at)?,
                }
            } else {
                self.go_on_without_mark(fault.unwrap_or(FrameFault::Empty), at)?
            };
            if !goes_on {
                return Ok(false);
            }
        }
    }

    fn successor(&self) -> Option<Found> {
        self.segments.iter().find(|found| found.first_sequence > self.current.found.first_sequence).cloned()
    }

    fn enter(&mut self, next: &Found) -> Result<(), JournalError> {
        self.current = Current::open(next, &self.directory, &self.segments, next.first_sequence)?;
        self.stand_at_start();
        if self.is_same_boot {
            self.move_limit()?;
        }
        Ok(())
    }
}

/// How often something bad is looked at again while the journaled mark moves.
const REREAD_ATTEMPTS_MAX: usize = 3;
