//! `truncate_after`: removes frames that no other part has acted on yet (decision 2).

use crate::own_file::open_to_write;
use gapless_agent::checked_file;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::boot::BootId;
use crate::descriptor::{
    BOOT_MARK_OFFSET, FAILED_MARK_OFFSET, JOURNALED_MARK_OFFSET, RECORDS_MARK_OFFSET, SEALED_BIT, SYNCED_MARK_OFFSET,
    TIMES_MARK_OFFSET,
};
use crate::disk::{DiskOperation, sync_directory};
use crate::error::JournalError;
use crate::history::JournalHistory;
use crate::journal::Journal;
use crate::records::{SegmentRecords, is_checkpoint};
use crate::segment::{Segment, end_of_nonzero, write_zeros};
use crate::shared_journal::SegmentEntry;
use crate::{index, scan};

impl Journal {
    /// Removes everything after the frame of `sequence`, on the device too, so that none of it reappears. Blocks; not
    /// for the hot path. Does nothing if no frame or record follows. Also removes later consensus records, even a
    /// checkpoint: consensus appends its records again (decision 2).
    ///
    /// # Errors
    /// [`JournalError::TruncatesReleased`] if a later frame is released (see [`Journal::set_released`]);
    /// [`JournalError::NotHeld`] if `sequence` is before the journal's beginning. Neither changes anything. After any
    /// other failure the journal refuses everything.
    pub fn truncate_after(&mut self, sequence: u64) -> Result<(), JournalError> {
        if sequence < self.released_sequence.min(self.last_sequence()) {
            return Err(JournalError::TruncatesReleased { sequence, released: self.released_sequence });
        }
        if sequence > self.last_sequence || sequence == self.last_sequence && !self.has_record_after_last {
            return Ok(());
        }
        if sequence + 1 < self.first_sequence() {
            return Err(JournalError::NotHeld {
                directory: self.directory().to_owned(),
                sequence,
                first: self.first_sequence(),
                last: self.last_sequence,
            });
        }
        self.commit()?;
        self.truncate(sequence).inspect_err(|error| self.shared.poison(error))
    }

    fn truncate(&mut self, sequence: u64) -> Result<(), JournalError> {
        let shared = self.shared.clone();
        let mut maintenance = shared.maintenance();
        shared.give_final_names(&mut maintenance)?;
        let _syncing = shared.syncing();
        let entries: Vec<SegmentEntry> = shared.segment_list().entries.iter().copied().collect();
        let keep = entries.iter().rposition(|entry| entry.first_sequence <= sequence).unwrap_or(0);
        let kept = entries[keep];
        let segment = if keep + 1 == entries.len() { self.active.clone() } else { self.reopen(kept)? };

        // All segments named by the history must exist.
        let history = maintenance.history.history();
        let newest_sequence = history.newest_sequence.min(kept.first_sequence);
        shared.set_history(&mut maintenance, JournalHistory { newest_sequence, ..history })?;

        let (position, last_sequence) = position_after(&segment, kept.first_sequence, sequence)?;
        assert_eq!(last_sequence, sequence, "the journal holds every frame up to its last");

        // Marks first: no mark vouches for the bytes about to be removed. After an interruption they are either frames
        // that were kept, or bytes that recovery removes.
        segment.write_mark(JOURNALED_MARK_OFFSET, position as u64, sequence);
        if let Some(times) = segment.mark(TIMES_MARK_OFFSET).filter(|times| times.second != 0) {
            segment.write_mark(TIMES_MARK_OFFSET, times.first, 0);
        }
        // Relaxed: only holders of `syncing` write it.
        let synced = shared.synced_sequence.0.load(Ordering::Relaxed).min(sequence);
        let synced_position = segment.mark(SYNCED_MARK_OFFSET).map_or(0, |mark| mark.second.min(position as u64));
        segment.write_mark(SYNCED_MARK_OFFSET, synced, synced_position);
        shared.synced_sequence.0.store(synced, Ordering::Release);
        let segment_records = records_before(&segment, kept, position)?;
        if segment_records != kept.segment_records {
            let (first, second) = segment_records.to_words();
            segment.write_mark(RECORDS_MARK_OFFSET, first, second);
        }
        self.sync_truncation(&segment)?;
        self.remove_after(&entries[keep..])?;

        let length = segment.header.segment_length;
        let end = end_of_nonzero(&segment.file, position as u64, length)
            .map_err(|error| JournalError::io("read", segment.path(), error))?;
        if let Some(end) = end {
            write_zeros(&segment.file, position as u64, end)
                .map_err(|error| JournalError::io("cut", segment.path(), error))?;
        }
        index::clear_from(segment.index(), position);
        self.sync_truncation(&segment)?;

        {
            let mut list = shared.segment_list();
            list.entries.truncate(keep + 1);
            if let Some(entry) = list.entries.back_mut() {
                entry.segment_records = segment_records;
            }
            list.rolled.retain(|rolled| rolled.last_sequence < kept.first_sequence);
            list.active = segment.clone();
        }
        maintenance.sealed_sync = None;
        maintenance.known_frames = None;
        drop(maintenance);
        self.active = segment;
        self.move_to(position);
        self.last_sequence = sequence;
        self.has_record_after_last = false;
        self.move_mark()
    }

    /// The marks hold on this boot from here on.
    fn reopen(&self, entry: SegmentEntry) -> Result<Arc<Segment>, JournalError> {
        let path = self.shared.segment_path(entry.first_sequence);
        let file = open_to_write(&path)?;
        let mut bytes = [0; crate::descriptor::FIXED_LENGTH];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0)
            .map_err(|error| JournalError::io("read", &path, error))?;
        let header = crate::descriptor::FixedHeader::from_bytes(&bytes).map_err(|fault| {
            let reason = format!("{fault:?}");
            JournalError::HeaderDamaged { segment: path.clone(), position: 0, reason }
        })?;
        let segment = Segment::map(path, file, header, self.shared.options.flush)?;
        let (low, high) = BootId::to_words(self.shared.options.environment.boot_id);
        segment.write_mark(BOOT_MARK_OFFSET, low, high);
        Ok(Arc::new(segment))
    }

    /// Newest first, each after its predecessor is no longer sealed, so that recovery does not miss it.
    fn remove_after(&self, entries: &[SegmentEntry]) -> Result<(), JournalError> {
        for pair in entries.windows(2).rev() {
            let (before, last) = (pair[0], pair[1]);
            let segment = self.reopen(before)?;
            if let Some(mark) = segment.mark(JOURNALED_MARK_OFFSET) {
                segment.write_mark(JOURNALED_MARK_OFFSET, mark.first & !SEALED_BIT, mark.second);
            }
            let path = self.shared.segment_path(last.first_sequence);
            checked_file::remove(&path).map_err(|error| JournalError::io("remove", &path, error))?;
            sync_directory(self.directory())?;
        }
        Ok(())
    }

    fn sync_truncation(&self, segment: &Segment) -> Result<(), JournalError> {
        let asked = self.shared.options.environment.check_disk(DiskOperation::Sync);
        asked.and_then(|()| segment.file.sync_data()).map_err(|source| {
            segment.write_mark(FAILED_MARK_OFFSET, 1, 0);
            JournalError::SyncFailed { segment: segment.path(), source }
        })
    }
}

fn position_after(segment: &Segment, first_sequence: u64, sequence: u64) -> Result<(usize, u64), JournalError> {
    let header = &segment.header;
    let frames_offset = header.frames_offset as usize;
    let mapping = crate::mapping::FileMapping::read_only(&segment.file, header.segment_length as usize)
        .map_err(|error| JournalError::io("map", segment.path(), error))?;
    // SAFETY: frames only, without the header, which has other writers and readers. This is the only writer of frames,
    // and it does not write while it reads.
    #[allow(unsafe_code)]
    let frames = unsafe { mapping.bytes(frames_offset..mapping.length()) };
    let limit = header.frame_length_max as usize;
    let from = |position: usize| &frames[position - frames_offset..];
    let is_frame = |first, position| scan::check_frame(from(position), first, limit).is_ok();
    let (mut at, mut position) = index::nearest(segment.index(), frames_offset..mapping.length(), sequence, is_frame)
        .unwrap_or((first_sequence, frames_offset));
    while at <= sequence {
        match scan::check_next(from(position), at, limit) {
            Ok(frame) => {
                position += gapless_wire::aligned_length(frame.length());
                at += u64::from(!scan::is_record(&frame));
            }
            Err(reason) => {
                return Err(JournalError::Corrupt {
                    segment: segment.path(),
                    position: position as u64,
                    sequence: at,
                    reason,
                    mark: crate::error::MarkName::Journaled,
                    mark_sequence: sequence,
                });
            }
        }
    }
    Ok((position, at - 1))
}

fn records_before(segment: &Segment, kept: SegmentEntry, position: usize) -> Result<SegmentRecords, JournalError> {
    match kept.segment_records {
        SegmentRecords::Empty => return Ok(SegmentRecords::Empty),
        SegmentRecords::Checkpoint { position: at, .. } if at < position as u64 => return Ok(kept.segment_records),
        // Some records are truncated, perhaps all: scan the frames before `position`.
        SegmentRecords::Records | SegmentRecords::Checkpoint { .. } => {}
    }
    let mapping = crate::mapping::FileMapping::read_only(&segment.file, segment.header.segment_length as usize)
        .map_err(|error| JournalError::io("map", segment.path(), error))?;
    let header = &segment.header;
    let frames_offset = header.frames_offset as usize;
    // SAFETY: as in `position_after`.
    #[allow(unsafe_code)]
    let frames = unsafe { mapping.bytes(frames_offset..position) };
    let mut segment_records = SegmentRecords::Empty;
    let limit = header.frame_length_max as usize;
    scan::scan(frames, 0, kept.first_sequence, limit, |frame, sequence, start, _| {
        if scan::is_record(frame) {
            segment_records = segment_records.with(is_checkpoint(frame), (frames_offset + start) as u64, sequence);
        }
    });
    Ok(segment_records)
}
