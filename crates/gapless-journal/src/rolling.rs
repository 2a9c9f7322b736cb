//! Moves from one segment to the next; called by the journaling thread.

use gapless_agent::fault;

use crate::descriptor::{JOURNALED_MARK_OFFSET, SEALED_BIT};
use crate::error::JournalError;
use crate::journal::{Journal, malformed};
use crate::records::SegmentRecords;
use crate::scan::split_batch;
use crate::shared_journal::{RolledSegment, SegmentEntry};

impl Journal {
    #[cold]
    pub(crate) fn append_across(
        &mut self,
        frames: &[u8],
        first_sequence: u64,
        last_sequence: u64,
    ) -> Result<(), JournalError> {
        let frame_length_max = self.shared.options.frame_length_max;
        let count = last_sequence - first_sequence + 1;
        match split_batch(frames, usize::MAX, frame_length_max) {
            Ok((_, found)) if found == count => {}
            Ok((_, found)) => return Err(malformed(frames, 0, format!("{count} frames expected, {found} found"))),
            Err(offset) => return Err(malformed(frames, offset, "no frame of this stream is there".to_owned())),
        }
        // First, so that a full disk leaves out the whole batch.
        self.reserve_next()?;
        let (mut rest, mut sequence) = (frames, first_sequence);
        loop {
            let room = self.limit - self.position;
            let (length, count) = split_batch(rest, room, frame_length_max)
                .map_err(|offset| malformed(frames, offset, "no frame of this stream is there".to_owned()))?;
            if length > 0 {
                self.put(&rest[..length], Some(sequence))?;
                sequence += count;
                self.last_sequence = sequence - 1;
                rest = &rest[length..];
            }
            if rest.is_empty() {
                return Ok(());
            }
            self.roll(sequence)?;
        }
    }

    pub(crate) fn reserve_next(&mut self) -> Result<(), JournalError> {
        if self.next.is_none() {
            let prepared = self.shared.segment_list().prepared.take();
            self.next = Some(match prepared {
                Some(segment) => segment,
                None => self.shared.prepare_at_once()?,
            });
        }
        Ok(())
    }

    pub(crate) fn roll(&mut self, first_sequence: u64) -> Result<(), JournalError> {
        fault::crash_point("before_segment_roll");
        if !self.has_frame_in_active() {
            // Two segments would begin with the same sequence. Only possible if the frame limit was raised above the
            // room that records have left.
            return Err(self.records_full());
        }
        self.reserve_next()?;
        self.flush_buffer()?;
        if self.segment_records != self.published_records {
            self.publish_held();
        }
        let next = self.next.take().expect("reserve_next has just put it there");
        let opened_ns = (self.shared.options.environment.epoch_ns)();
        // In this order, so that a sealed segment always has a successor.
        next.open_for(first_sequence, opened_ns);
        self.mark.write(
            self.active.mapping.mark(JOURNALED_MARK_OFFSET),
            self.position as u64 | SEALED_BIT,
            first_sequence - 1,
        );
        let old = std::mem::replace(&mut self.active, next);
        {
            let mut list = self.shared.segment_list();
            let old_first_sequence = list.entries.back().map_or(1, |entry| entry.first_sequence);
            list.rolled.push_back(RolledSegment {
                file: old.file.clone(),
                segment: Some(old),
                first_sequence: old_first_sequence,
                last_sequence: first_sequence - 1,
                end: self.position as u64,
                sealed_ns: opened_ns,
            });
            list.unnamed.push_back((self.active.clone(), first_sequence));
            let length = self.active.header.segment_length;
            list.entries.push_back(SegmentEntry {
                first_sequence,
                opened_ns,
                length,
                segment_records: SegmentRecords::Empty,
            });
            list.active = self.active.clone();
        }
        self.move_to(self.active.header.frames_offset as usize);
        self.journaled_position = 0;
        self.segments_begun += 1;
        fault::crash_point("after_segment_roll");
        Ok(())
    }
}
