//! Appends consensus records for a cluster; called by the journaling thread. Format: `records`.

use std::sync::atomic::Ordering;

use gapless_wire::descriptor::CHECKPOINT_FLAG;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};

use crate::descriptor::RECORDS_MARK_OFFSET;
use crate::error::JournalError;
use crate::journal::Journal;
use crate::records::SegmentRecords;

impl Journal {
    /// Appends a consensus record, durable like frames by [`Journal::commit`] and [`Journal::sync`] or
    /// [`crate::Syncer::sync`]. Replays skip it; [`crate::JournalReader::records`] returns it. Copies `payload` twice;
    /// allocates if it is longer than all before it.
    ///
    /// # Errors
    /// [`JournalError::RecordTooLong`], [`JournalError::RecordsFull`], and a full disk when the next segment is needed:
    /// the journal is unchanged and still accepts frames. After any other failure it refuses everything.
    pub fn append_record(&mut self, payload: &[u8]) -> Result<(), JournalError> {
        self.append_record_of(payload, 0)
    }

    /// Appends a record with the whole state of consensus: earlier records are no longer needed. Retention deletes
    /// nothing until a newer segment has a checkpoint before the frame of the snapshot sequence, so that no truncation
    /// of unreleased frames removes it, and never deletes that segment. Best written first in a segment, see
    /// [`Journal::segments_begun`].
    ///
    /// # Errors
    /// As [`Journal::append_record`].
    pub fn append_checkpoint(&mut self, payload: &[u8]) -> Result<(), JournalError> {
        self.append_record_of(payload, CHECKPOINT_FLAG)
    }

    /// Commits and syncs everything, records included; returns the last synced sequence. Blocks: for records that must
    /// be synced before a reply; others use [`Journal::syncer`].
    ///
    /// # Errors
    /// As [`Journal::commit`] and [`crate::Syncer::sync`].
    pub fn sync(&mut self) -> Result<u64, JournalError> {
        self.commit()?;
        self.syncer().sync()
    }

    /// Returns how many segments this journal has begun since it was opened, counting the first one of a new directory.
    /// Consensus writes a checkpoint when the number has risen.
    #[must_use]
    pub fn segments_begun(&self) -> u64 {
        self.segments_begun
    }

    fn append_record_of(&mut self, payload: &[u8], flags: u16) -> Result<(), JournalError> {
        self.shared.check_poison()?;
        let length = HEADER_LENGTH + payload.len();
        let limit_bytes = self.shared.options.frame_length_max;
        if length > limit_bytes {
            return Err(JournalError::RecordTooLong { length_bytes: length, limit_bytes });
        }
        self.make_room(aligned_length(length))?;

        let mut bytes = std::mem::take(&mut self.record);
        if bytes.len() < aligned_length(length) {
            bytes.resize(aligned_length(length), 0);
        }
        let mut writer = FrameWriter::new(&mut bytes);
        writer.payload_mut()[..payload.len()].copy_from_slice(payload);
        let after_sequence = self.last_sequence;
        let header =
            FrameHeader { kind: Kind::Consensus, flags, session_seq: after_sequence, ..FrameHeader::default() };
        writer.finish(&header, payload.len());
        let position = self.position as u64;
        let put = self.put(&bytes[..aligned_length(length)], None);
        self.record = bytes;
        put?;
        self.segment_records = self.segment_records.with(flags & CHECKPOINT_FLAG != 0, position, after_sequence);
        self.records_appended += 1;
        self.has_record_after_last = true;
        Ok(())
    }

    /// Segments are named by their first sequence, so each but the newest needs a frame: in a segment without frames,
    /// room for the longest frame is reserved.
    fn make_room(&mut self, needed: usize) -> Result<(), JournalError> {
        let left = self.limit - self.position;
        let reserved = aligned_length(self.shared.options.frame_length_max);
        if self.has_frame_in_active() {
            if needed <= left {
                return Ok(());
            }
            let options = &self.shared.options;
            let frames_offset = crate::descriptor::frames_offset(options.segment_length_bytes);
            if needed + reserved > (options.segment_length_bytes - frames_offset) as usize {
                return Err(self.records_full());
            }
            return self.roll(self.last_sequence + 1);
        }
        if needed + reserved <= left { Ok(()) } else { Err(self.records_full()) }
    }

    #[cold]
    pub(crate) fn records_full(&self) -> JournalError {
        JournalError::RecordsFull { segment: self.active.path(), position: self.position as u64 }
    }

    pub(crate) fn has_frame_in_active(&self) -> bool {
        self.last_sequence >= self.active_first_sequence
    }

    /// Writes the records mark of the active segment, and informs retention. Only for positions that a journaled mark
    /// covers.
    #[cold]
    pub(crate) fn publish_held(&mut self) {
        let (first, second) = self.segment_records.to_words();
        self.active.write_mark(RECORDS_MARK_OFFSET, first, second);
        if let Some(entry) = self.shared.segment_list().entries.back_mut() {
            entry.segment_records = self.segment_records;
        }
        self.published_records = self.segment_records;
    }

    #[cold]
    pub(crate) fn count_records(&mut self) {
        if self.segment_records != self.published_records {
            self.publish_held();
        }
        self.records_journaled = self.records_appended;
        // Pairs with the acquire of the syncer; the records are in the file before it.
        self.shared.journaled_records.store(self.records_appended, Ordering::Release);
    }

    pub(crate) fn may_have_record_after_last(&self) -> bool {
        let list = self.shared.segment_list();
        let newest = list.entries.iter().rev();
        // The newest segment that begins at or before the last frame has that frame.
        let last_with_frame = list.entries.iter().rposition(|entry| entry.first_sequence <= self.last_sequence);
        let looked_at = list.entries.len() - last_with_frame.unwrap_or(0);
        newest.take(looked_at).any(|entry| entry.segment_records != SegmentRecords::Empty)
    }
}
