//! Reading of consensus records by a replay, for `JournalReader::records` and `inspect`.

use gapless_wire::{Frame, aligned_length};

use super::Replay;
use crate::error::{FrameFault, JournalError, MarkName};
use crate::records::{ConsensusRecord, ConsensusRecords, SegmentRecords, SkippedRecords, is_checkpoint};
use crate::scan::{check_next, is_record};

impl Replay {
    /// Moves to the newest checkpoint named by the header of the current segment. Returns `false`, without a change, if
    /// there is no readable one.
    pub(crate) fn seek_to_checkpoint(&mut self) -> Result<bool, JournalError> {
        let SegmentRecords::Checkpoint { position, after_sequence } = self.current.found.segment_records else {
            return Ok(false);
        };
        if self.is_same_boot {
            self.move_limit()?;
        }
        let header = &self.current.found.header;
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        let is_inside =
            position >= header.frames_offset as usize && position < self.limit && position.is_multiple_of(8);
        if !is_inside || after_sequence < self.current.found.first_sequence - 1 {
            return Ok(false);
        }
        self.view.begin(position);
        let readable = self.current.readable_until(position, self.limit)?;
        let bytes = self.view.frame_at(&self.current.mapping, position, readable);
        let found = check_next(bytes, after_sequence.wrapping_add(1), header.frame_length_max as usize);
        if !found.is_ok_and(|frame| is_record(&frame) && is_checkpoint(&frame)) {
            return Ok(false);
        }
        (self.position, self.checked_until, self.read_ahead_until) = (position, position, position);
        (self.next_sequence, self.next_unchecked) = (after_sequence + 1, after_sequence + 1);
        Ok(true)
    }

    pub(crate) fn checkpoint(&mut self) -> Result<Option<ConsensusRecord>, JournalError> {
        if !self.seek_to_checkpoint()? {
            return Ok(None);
        }
        let limit = self.current.found.header.frame_length_max as usize;
        let readable = self.current.readable_until(self.position, self.limit)?;
        let bytes = self.view.frame_at(&self.current.mapping, self.position, readable);
        let found = check_next(bytes, self.next_sequence, limit);
        let record = |frame: Frame<'_>| ConsensusRecord {
            after_sequence: frame.session_seq(),
            is_checkpoint: true,
            payload: frame.payload().to_vec(),
        };
        Ok(found.ok().map(record))
    }

    pub(crate) fn into_records(mut self) -> Result<ConsensusRecords, JournalError> {
        self.skipped.collected = Some(Vec::new());
        while self.next_batch()?.is_some() {}
        Ok(ConsensusRecords::new(self.skipped.collected.take().unwrap_or_default(), self.stop))
    }

    pub(crate) fn skipped(&self) -> &SkippedRecords {
        &self.skipped
    }

    pub(crate) fn check_records_after(&mut self) -> Result<(), JournalError> {
        let start = self.checked_until;
        let (segment, limit) = (self.current.found.first_sequence, self.current.found.header.frame_length_max as usize);
        let mut offset = 0;
        let fault = loop {
            if start + offset >= self.limit {
                break None;
            }
            self.view.begin(start + offset);
            let readable = self.current.readable_until(start + offset, self.limit)?;
            let bytes = self.view.frame_at(&self.current.mapping, start + offset, readable);
            match check_next(bytes, self.next_unchecked, limit) {
                Ok(record) if is_record(&record) => {
                    self.skipped.add(segment, start + offset, &record);
                    offset += aligned_length(record.length());
                }
                Ok(_) => break None,
                Err(fault) => break Some(fault),
            }
        };
        let (at, found) = (start + offset, &self.current.found);
        let fault = fault.or((!self.is_same_boot).then_some(FrameFault::Empty));
        let is_short = found.is_sealed() && (at as u64) < found.journaled_position().unwrap_or(0);
        match fault {
            Some(fault) if self.is_same_boot => Err(self.corrupt(fault, MarkName::Journaled, at)),
            Some(fault) if (at as u64) < self.good_place().vouched_end(found) => {
                Err(self.corrupt(fault, MarkName::Synced, at))
            }
            Some(fault) if is_short => {
                self.stop = Some(self.stop_at(fault, at));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
