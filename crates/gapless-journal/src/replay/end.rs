//! A replay at its limit: more frames, the end of the journal, or damage (decision 7).

use super::Replay;
use crate::boot::BootId;
use crate::directory::{SurveyedSegment, survey};
use crate::error::{FrameFault, JournalError, MarkName};
use crate::evaluation::GoodMark;
use crate::records::ReplayStop;
use crate::{descriptor as d, mark};

/// A listing may miss the successor of a sealed segment during its rename.
pub(super) const SUCCESSOR_ATTEMPTS_MAX: usize = 10;

impl Replay {
    /// Returns `true` if there is more now, here or in the next segment.
    pub(super) fn continue_by_mark(&mut self, at: usize) -> Result<bool, JournalError> {
        let (is_sealed, last_sequence) = self.move_limit()?;
        if self.limit != at {
            return Ok(true);
        }
        if self.next_unchecked != last_sequence.wrapping_add(1) {
            let (expected, found) = (self.limit as u64, at as u64);
            let fault = FrameFault::MarkDisagrees { sequence: last_sequence, expected, found };
            return Err(self.corrupt(fault, MarkName::Journaled, at));
        }
        if !is_sealed {
            return self.continue_from_unsealed();
        }
        for attempt in 0..SUCCESSOR_ATTEMPTS_MAX {
            match self.successor() {
                Some(next) if next.first_sequence == last_sequence + 1 => match self.enter(&next) {
                    Err(gone @ JournalError::NotHeld { .. }) if attempt + 1 < SUCCESSOR_ATTEMPTS_MAX => {
                        // Deleted by retention, or truncated and replaced after the listing by one with the same first
                        // sequence, perhaps with a prepared segment's name.
                        self.segments = survey(&self.directory, None)?.segments;
                        if self.successor().is_none_or(|other| other.first_sequence != next.first_sequence) {
                            return Err(gone);
                        }
                        continue;
                    }
                    outcome => return outcome.map(|()| true),
                },
                Some(next) if attempt > 0 => return Err(self.gap(&next)),
                // Truncated after the listing, and replaced by one that begins earlier; or opened by the writer; or
                // being renamed.
                _ => {}
            }
            self.segments = survey(&self.directory, None)?.segments;
        }
        Err(JournalError::SuccessorMissing { segment: self.current.found.path.clone(), sequence: last_sequence + 1 })
    }

    /// The writer may have died during a roll. Returns `true` if there is more.
    fn continue_from_unsealed(&mut self) -> Result<bool, JournalError> {
        if self.successor().is_none() {
            return Ok(false);
        }
        // The successor may have been truncated since the listing.
        self.segments = survey(&self.directory, None)?.segments;
        let Some(next) = self.successor() else { return Ok(false) };
        if next.first_sequence == self.next_unchecked {
            return self.enter(&next).map(|()| true);
        }
        let generation = self.limit_generation;
        self.move_limit()?;
        if self.limit_generation != generation {
            return Ok(true);
        }
        // A writer seals the old segment before the new one gets a frame.
        let has_frames = next.journaled.is_some_and(|mark| mark.second >= next.first_sequence);
        if has_frames { Err(self.gap(&next)) } else { Ok(false) }
    }

    /// Returns `true` if the next segment continues.
    pub(super) fn continue_without_mark(&mut self, fault: FrameFault, at: usize) -> Result<bool, JournalError> {
        if self.has_this_boot_now() {
            // A writer has recovered it meanwhile, so its mark is good from here on.
            self.is_same_boot = true;
            return self.continue_by_mark(at);
        }
        let sequence = self.next_unchecked;
        let found = &self.current.found;
        let is_short = found.is_sealed() && (at as u64) < found.journaled_position().unwrap_or(0);
        let is_missing = (at as u64) < self.good_place().vouched_end(found);
        let next = self.successor().filter(|next| next.first_sequence == sequence && !is_missing && !is_short);
        if let Some(next) = next {
            self.enter(&next)?;
            return Ok(true);
        }
        if is_missing || sequence <= self.synced_sequence {
            return Err(self.corrupt(fault, MarkName::Synced, at));
        }
        let is_complete = found.is_sealed() && found.journaled.is_some_and(|mark| mark.second + 1 == sequence);
        if let Some(next) = self.successor().filter(|next| is_complete && !is_short && next.has_final_name) {
            return Err(self.gap(&next));
        }
        if fault != FrameFault::Empty || self.successor().is_some() {
            self.stop = Some(self.stop_at(fault, at));
        }
        Ok(false)
    }

    pub(super) fn stop_at(&self, fault: FrameFault, at: usize) -> ReplayStop {
        let (segment, position) = self.current.place_of(at);
        ReplayStop {
            segment: segment.to_owned(),
            position,
            sequence: self.next_unchecked,
            reason: self.end_of_file(at).unwrap_or(fault),
        }
    }

    pub(super) fn good_place(&self) -> GoodMark {
        GoodMark { name: MarkName::Synced, sequence: self.synced_sequence, position: self.synced_position }
    }

    pub(super) fn move_limit(&mut self) -> Result<(bool, u64), JournalError> {
        let found = &self.current.found;
        let segment = || found.path.clone();
        let position = d::JOURNALED_MARK_OFFSET as u64;
        let words = self.current.mapping.mark(d::JOURNALED_MARK_OFFSET);
        let Some(value) = mark::read_undamaged(words) else {
            return Err(match (mark::read(words), mark::damaged_slot(words)) {
                (Some(other), Some(start)) => JournalError::MarkSlotDamaged {
                    segment: segment(),
                    position: position + start as u64,
                    mark_sequence: other.second,
                },
                _ => JournalError::MarkDamaged { segment: segment(), position, mark: MarkName::Journaled },
            });
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
        self.limit_generation = value.generation;
        Ok((value.first & d::SEALED_BIT != 0, value.second))
    }

    pub(super) fn has_this_boot_now(&self) -> bool {
        let mark = mark::read(self.current.mapping.mark(d::BOOT_MARK_OFFSET));
        let boot = mark.and_then(|mark| BootId::from_words(mark.first, mark.second));
        boot.is_some() && boot == self.environment.boot_id && self.successor().is_none()
    }

    pub(super) fn end_of_file(&self, at: usize) -> Option<FrameFault> {
        let found = &self.current.found;
        let is_cut = at >= self.current.mapping.length() && found.file_length < found.header.segment_length;
        is_cut.then_some(FrameFault::EndOfFile { file_bytes: found.file_length })
    }

    pub(super) fn corrupt(&self, reason: FrameFault, mark: MarkName, at: usize) -> JournalError {
        let mark_value = mark::read(self.current.mapping.mark(d::JOURNALED_MARK_OFFSET));
        let (segment, position) = self.current.place_of(at);
        JournalError::Corrupt {
            segment: segment.to_owned(),
            position,
            sequence: self.next_unchecked,
            reason: self.end_of_file(at).unwrap_or(reason),
            mark,
            mark_sequence: match mark {
                MarkName::Journaled => mark_value.map_or(0, |value| value.second),
                MarkName::Synced => self.synced_sequence,
            },
        }
    }

    pub(super) fn gap(&self, next: &SurveyedSegment) -> JournalError {
        JournalError::Gap {
            before: self.current.found.path.clone(),
            after: next.path.clone(),
            missing_from: self.next_unchecked,
            missing_to: next.first_sequence - 1,
        }
    }
}
