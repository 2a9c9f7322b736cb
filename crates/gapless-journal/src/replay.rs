//! Replay: frames of a journal one behind the other, borrowed from the mapped segments.
//!
//! On the boot on which the journal was written it stops at the journaled mark, and so may run
//! beside the writer. On any other it reads as far as frames go: a bad one up to the synced mark is an
//! error, behind it the end. What it returns is checked; what it cannot return it explains.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use gapless_wire::{Frame, aligned_length};

use crate::boot::BootId;
use crate::descriptor as d;
use crate::directory::{Found, Survey, survey};
use crate::error::{FrameFault, JournalError, MarkName};
use crate::frame_batch::FrameBatch;
use crate::index;
use crate::mapping::Mapping;
use crate::mark;
use crate::options::Environment;
use crate::scan::check_frame;

/// Frames are checked this far ahead of the one that is returned, in bytes: few enough to be in the
/// processor's cache when the caller reads them.
const CHECK_AHEAD_LENGTH: usize = 32 * 1024;
/// The kernel is asked to map this much at once.
const READ_AHEAD_LENGTH: usize = 4 << 20;

/// Why a replay ended before the bytes of the journal do. Only on another boot than the one on which
/// it was written; opening the journal for writing cuts there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayStop {
    /// In which segment.
    pub segment: PathBuf,
    /// Where the first bad frame begins.
    pub position: u64,
    /// The sequence that belongs there.
    pub sequence: u64,
    /// What is wrong with it.
    pub reason: FrameFault,
}

impl std::fmt::Display for ReplayStop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { segment, position, sequence, reason } = self;
        write!(
            f,
            "the journal ends at byte {position} of {}: sequence {sequence} belongs there, but {reason}; it was never synced",
            segment.display()
        )
    }
}

/// Reads frames in order. Made by [`crate::JournalReader::replay`].
#[derive(Debug)]
pub struct Replay {
    directory: PathBuf,
    environment: Environment,
    is_same_boot: bool,
    synced_sequence: u64,
    /// What the last look at the directory found.
    segments: Vec<Found>,
    current: Current,
    /// Where the next frame begins.
    position: usize,
    /// Frames up to here are checked.
    checked_until: usize,
    /// Frames may be read up to here.
    limit: usize,
    read_ahead_until: usize,
    /// The sequence of the frame at `position`.
    next_sequence: u64,
    /// The sequence of the frame at `checked_until`.
    next_unchecked: u64,
    stop: Option<ReplayStop>,
}

#[derive(Debug)]
struct Current {
    found: Found,
    mapping: Mapping,
}

impl Replay {
    pub(crate) fn begin(
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
            environment,
            is_same_boot: survey.is_same_boot(environment.boot_id),
            synced_sequence: survey.synced_sequence(),
            segments,
            current,
            position: 0,
            checked_until: 0,
            limit: 0,
            read_ahead_until: 0,
            next_sequence: 0,
            next_unchecked: 0,
            stop: None,
        };
        replay.stand_at_start();
        replay.seek(from_sequence)?;
        Ok(replay)
    }

    /// The next frame; `None` at the end of the journal, where a later call may find more.
    ///
    /// # Errors
    /// [`JournalError::Corrupt`] for a bad frame that a good mark covers, and the errors of segments
    /// that are missing or do not belong together.
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, JournalError> {
        if self.position == self.checked_until && !self.check_ahead()? {
            return Ok(None);
        }
        // SAFETY: below the limit; see `Current::bytes`.
        let frame = Frame::parse(self.current.bytes(self.position, self.checked_until))
            .expect("check_ahead has parsed this frame before");
        self.position += aligned_length(frame.length());
        self.next_sequence += 1;
        Ok(Some(frame))
    }

    /// The next frames, as many as are checked already or in one go (about 32 KiB), without
    /// anything between them; `None` at the end of the journal, where a later call may find more.
    ///
    /// # Errors
    /// As [`Replay::next_frame`].
    pub fn next_batch(&mut self) -> Result<Option<FrameBatch<'_>>, JournalError> {
        if self.position == self.checked_until && !self.check_ahead()? {
            return Ok(None);
        }
        let start = self.position;
        let first_sequence = self.next_sequence;
        self.position = self.checked_until;
        self.next_sequence = self.next_unchecked;
        Ok(Some(FrameBatch::new(self.current.bytes(start, self.checked_until), first_sequence)))
    }

    /// Goes back before the frame of `length` bytes that [`Replay::next_frame`] returned last.
    ///
    /// # Panics
    /// If that was no frame of this length.
    pub fn step_back(&mut self, length: usize) {
        let frames_offset = self.current.found.header.frames_offset as usize;
        let position = self.position.checked_sub(aligned_length(length)).filter(|position| *position >= frames_offset);
        self.position = position.expect("a frame of this length was returned");
        self.next_sequence -= 1;
    }

    /// Whether [`Replay::next_frame`] returns a frame now.
    ///
    /// # Errors
    /// As [`Replay::next_frame`].
    pub fn has_next(&mut self) -> Result<bool, JournalError> {
        Ok(self.position != self.checked_until || self.check_ahead()?)
    }

    /// The sequence that [`Replay::next_frame`] returns next.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The segment and the byte where the next frame begins.
    #[must_use]
    pub fn position(&self) -> (&Path, u64) {
        (&self.current.found.path, self.position as u64)
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
        while is_sealed {
            self.segments = survey(&self.directory, None)?.segments;
            match self.successor() {
                Some(next) => self.enter(&next)?,
                None => break,
            }
            (is_sealed, last_sequence) = self.move_limit()?;
        }
        Ok(last_sequence)
    }

    /// How many index entries of the current segment lead to no frame.
    pub(crate) fn bad_index_entries(&self) -> u64 {
        let header = &self.current.found.header;
        let bytes = self.current.bytes(0, self.limit);
        let limits = (header.frames_offset as usize, header.frame_length_max as usize);
        self.current.index().map_or(0, |words| index::count_bad(words, bytes, limits.0, limits.1))
    }

    fn stand_at_start(&mut self) {
        let found = &self.current.found;
        let frames_offset = found.header.frames_offset as usize;
        self.position = frames_offset;
        self.checked_until = frames_offset;
        self.read_ahead_until = frames_offset;
        self.next_sequence = found.first_sequence;
        self.next_unchecked = found.first_sequence;
        // On the same boot the mark is asked when the first frame is.
        self.limit = if self.is_same_boot { frames_offset } else { self.current.mapping.length() };
    }

    /// Goes to the frame of `sequence` in the current segment.
    fn seek(&mut self, sequence: u64) -> Result<(), JournalError> {
        if self.is_same_boot {
            self.move_limit()?;
        }
        let header = &self.current.found.header;
        let (frames_offset, frame_length_max) = (header.frames_offset as usize, header.frame_length_max as usize);
        if let Some(words) = self.current.index() {
            let bytes = self.current.bytes(0, self.limit);
            if let Some((near, position)) = index::nearest(words, bytes, frames_offset, sequence, frame_length_max) {
                (self.position, self.checked_until) = (position, position);
                (self.next_sequence, self.next_unchecked) = (near, near);
                self.read_ahead_until = position;
            }
        }
        while self.next_sequence < sequence {
            if self.next_frame()?.is_none() {
                return Err(not_held(&self.directory, &self.segments, sequence, Some(self.next_sequence - 1)));
            }
        }
        Ok(())
    }

    /// Checks the next frames. `false` at the end of the journal.
    fn check_ahead(&mut self) -> Result<bool, JournalError> {
        loop {
            let frame_length_max = self.current.found.header.frame_length_max as usize;
            if self.checked_until >= self.read_ahead_until && self.limit > self.checked_until {
                self.read_ahead_until = self.checked_until / d::PAGE_LENGTH * d::PAGE_LENGTH + READ_AHEAD_LENGTH;
                let from = self.checked_until / d::PAGE_LENGTH * d::PAGE_LENGTH;
                self.current.mapping.read_ahead(from..self.read_ahead_until.min(self.limit));
            }
            let start = self.checked_until;
            let bytes = self.current.bytes(start, self.limit);
            let (mut offset, mut sequence) = (0, self.next_unchecked);
            let mut fault = None;
            while offset < CHECK_AHEAD_LENGTH && offset < bytes.len() {
                match check_frame(&bytes[offset..], sequence, frame_length_max) {
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
            self.checked_until = start + offset;
            self.next_unchecked = sequence;
            if offset > 0 {
                // A fault is met again when the frames before it are read.
                return Ok(true);
            }
            let goes_on = if self.is_same_boot {
                match fault {
                    Some(fault) => return Err(self.corrupt(fault, MarkName::Journaled)),
                    None => self.go_on_by_mark()?,
                }
            } else {
                self.go_on_without_mark(fault.unwrap_or(FrameFault::Empty))?
            };
            if !goes_on {
                return Ok(false);
            }
        }
    }

    /// At the limit on the same boot: `true` if there is more now, here or in the next segment.
    fn go_on_by_mark(&mut self) -> Result<bool, JournalError> {
        let (is_sealed, last_sequence) = self.move_limit()?;
        if self.limit > self.checked_until {
            return Ok(true);
        }
        if self.next_unchecked != last_sequence.wrapping_add(1) {
            let (expected, found) = (self.limit as u64, self.checked_until as u64);
            let fault = FrameFault::MarkDisagrees { sequence: last_sequence, expected, found };
            return Err(self.corrupt(fault, MarkName::Journaled));
        }
        if !is_sealed {
            // A writer that died in a roll may have left the old segment unsealed.
            let next = self.segments.iter().find(|found| found.first_sequence == self.next_unchecked).cloned();
            return match next {
                Some(next) if next.first_sequence > self.current.found.first_sequence => {
                    self.enter(&next).map(|()| true)
                }
                _ => Ok(false),
            };
        }
        for _ in 0..SUCCESSOR_ATTEMPTS_MAX {
            if let Some(next) = self.successor() {
                if next.first_sequence != last_sequence + 1 {
                    return Err(self.gap(&next));
                }
                self.enter(&next)?;
                return Ok(true);
            }
            // Either the writer has opened it since, or its name is being changed just now.
            self.segments = survey(&self.directory, None)?.segments;
        }
        Err(JournalError::SuccessorMissing { segment: self.current.found.path.clone(), sequence: last_sequence + 1 })
    }

    /// Where frames end on another boot: `true` if the next segment goes on.
    fn go_on_without_mark(&mut self, fault: FrameFault) -> Result<bool, JournalError> {
        if self.has_this_boot_now() {
            // A writer has recovered it in the meantime, so from here on its mark is good.
            self.is_same_boot = true;
            return self.go_on_by_mark();
        }
        let sequence = self.next_unchecked;
        if let Some(next) = self.successor().filter(|next| next.first_sequence == sequence) {
            self.enter(&next)?;
            return Ok(true);
        }
        if sequence <= self.synced_sequence {
            return Err(self.corrupt(fault, MarkName::Synced));
        }
        let found = &self.current.found;
        let is_complete = found.is_sealed() && found.journaled.is_some_and(|mark| mark.second + 1 == sequence);
        if let Some(next) = self.successor().filter(|next| is_complete && next.is_settled) {
            return Err(self.gap(&next));
        }
        if fault != FrameFault::Empty || self.successor().is_some() {
            self.stop = Some(ReplayStop {
                segment: found.path.clone(),
                position: self.checked_until as u64,
                sequence,
                reason: self.end_of_file().unwrap_or(fault),
            });
        }
        Ok(false)
    }

    /// Reads the journaled mark again; returns whether the segment is sealed, and its last sequence.
    fn move_limit(&mut self) -> Result<(bool, u64), JournalError> {
        let found = &self.current.found;
        let segment = || found.path.clone();
        let position = d::JOURNALED_MARK_OFFSET as u64;
        let Some(value) = mark::read_undamaged(self.current.mapping.mark(d::JOURNALED_MARK_OFFSET)) else {
            return Err(JournalError::MarkDamaged { segment: segment(), position, mark: MarkName::Journaled });
        };
        let end = value.first & !d::SEALED_BIT;
        if end < self.checked_until as u64 {
            let position = self.checked_until as u64;
            return Err(JournalError::Rewound { segment: segment(), position, end });
        }
        if end > self.current.mapping.length() as u64 {
            let reason = if end > found.header.segment_length {
                format!("the journaled mark points to byte {end}, behind the segment's end")
            } else {
                format!("the file ends at byte {}, the journaled mark says {end}", self.current.mapping.length())
            };
            return Err(JournalError::HeaderDamaged { segment: segment(), position, reason });
        }
        self.limit = end as usize;
        Ok((value.first & d::SEALED_BIT != 0, value.second))
    }

    fn has_this_boot_now(&self) -> bool {
        let mark = mark::read(self.current.mapping.mark(d::BOOT_MARK_OFFSET));
        let boot = mark.and_then(|mark| BootId::from_words(mark.first, mark.second));
        boot.is_some() && boot == self.environment.boot_id && self.successor().is_none()
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

    fn end_of_file(&self) -> Option<FrameFault> {
        let found = &self.current.found;
        let is_cut =
            self.checked_until >= self.current.mapping.length() && found.file_length < found.header.segment_length;
        is_cut.then_some(FrameFault::EndOfFile { file_bytes: found.file_length })
    }

    fn corrupt(&self, reason: FrameFault, mark: MarkName) -> JournalError {
        let mark_value = mark::read(self.current.mapping.mark(d::JOURNALED_MARK_OFFSET));
        JournalError::Corrupt {
            segment: self.current.found.path.clone(),
            position: self.checked_until as u64,
            sequence: self.next_unchecked,
            reason: self.end_of_file().unwrap_or(reason),
            mark,
            mark_sequence: match mark {
                MarkName::Journaled => mark_value.map_or(0, |value| value.second),
                MarkName::Synced => self.synced_sequence,
            },
        }
    }

    fn gap(&self, next: &Found) -> JournalError {
        JournalError::Gap {
            before: self.current.found.path.clone(),
            after: next.path.clone(),
            missing_from: self.next_unchecked,
            missing_to: next.first_sequence - 1,
        }
    }
}

/// A sealed segment has a successor; a listing may miss it while its name is being changed.
const SUCCESSOR_ATTEMPTS_MAX: usize = 10;

impl Current {
    fn open(found: &Found, directory: &Path, segments: &[Found], sequence: u64) -> Result<Self, JournalError> {
        let mut path = found.path.clone();
        let mut opened = File::open(&path);
        if !found.is_settled && matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            // It has got its final name since it was listed.
            path = directory.join(d::segment_name(found.first_sequence));
            opened = File::open(&path);
        }
        let file = match opened {
            Ok(file) => file,
            // Retention has deleted it since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(not_held(directory, segments, sequence, None));
            }
            Err(error) => return Err(JournalError::io("open", path, error)),
        };
        let file_length = file.metadata().map_err(|error| JournalError::io("examine", &path, error))?.len();
        let length = file_length.min(found.header.segment_length) as usize;
        if length < d::HEADER_PAGE_LENGTH {
            let reason = "the file was cut while it was read".to_owned();
            return Err(JournalError::HeaderDamaged { segment: path, position: length as u64, reason });
        }
        let mapping = Mapping::read_only(&file, length).map_err(|error| JournalError::io("map", &path, error))?;
        Ok(Self { found: Found { path, file_length, ..found.clone() }, mapping })
    }

    /// The bytes between two positions; empty where the file is cut before the first.
    #[inline]
    #[allow(unsafe_code)]
    fn bytes(&self, from: usize, to: usize) -> &[u8] {
        let to = to.min(self.mapping.length());
        // SAFETY: on the boot on which the journal was written, `to` is at most the journaled mark,
        // and frames below it do not change, except for a truncation of what is not released, which
        // readers of a live journal have no business with. On another boot there is no writer.
        unsafe { self.mapping.bytes(from.min(to)..to) }
    }

    fn index(&self) -> Option<&[std::sync::atomic::AtomicU64]> {
        let header = &self.found.header;
        let is_whole = self.mapping.length() as u64 >= header.frames_offset;
        is_whole.then(|| self.mapping.words(d::INDEX_OFFSET, d::index_entries(header.segment_length) * 2))
    }
}

fn not_held(directory: &Path, segments: &[Found], sequence: u64, last: Option<u64>) -> JournalError {
    let last =
        last.or_else(|| segments.last().and_then(|found| found.journaled.map(|mark| mark.second))).unwrap_or_default();
    let first = segments.first().map_or(0, |found| found.first_sequence);
    JournalError::NotHeld { directory: directory.to_owned(), sequence, first, last }
}
