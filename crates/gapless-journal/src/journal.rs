//! The writer, one per directory, owned by the journaling thread. `append` and `commit` on the mapped path, with mapped
//! marks, allocate nothing, take no lock and make no system call, except once per segment and to wake the helper every
//! few megabytes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gapless_agent::fault;
use gapless_wire::{HEADER_LENGTH, MESSAGE_ALIGNMENT};

use crate::descriptor::{INDEX_STRIDE, JOURNALED_MARK_OFFSET};
use crate::disk::DiskOperation;
use crate::error::JournalError;
use crate::index;
use crate::mark::MarkWriter;
use crate::options::{Flush, JournalOptions};
use crate::records::SegmentRecords;
use crate::recovery::{self, AppendPosition};
use crate::recovery_report::RecoveryReport;
use crate::scan::{first_sequence_of, split_batch};
use crate::segment::Segment;
use crate::segment_preparer::SegmentPreparer;
use crate::shared_journal::SharedJournal;
use crate::syncer::Syncer;
use crate::write_buffer::WriteBuffer;

/// A directory of segments, open for appending.
///
/// ```
/// use gapless_journal::{Journal, JournalOptions, JournalReader};
/// use gapless_wire::{FrameHeader, FrameWriter};
/// # let directory = std::env::temp_dir().join(format!("gapless-journal-doc-{}", std::process::id()));
/// let (mut journal, report) = Journal::open(JournalOptions::new(&directory, 7))?;
/// let mut batch = [0u8; 72];
/// let mut writer = FrameWriter::new(&mut batch);
/// writer.payload_mut()[..5].copy_from_slice(b"hello");
/// let sequence = report.last_sequence + 1;
/// writer.finish(&FrameHeader { sequence, ..FrameHeader::default() }, 5);
/// journal.append(&batch, sequence, sequence)?;
/// assert_eq!(journal.commit()?, sequence);
///
/// let mut replay = JournalReader::open(&directory)?.replay(1)?;
/// assert_eq!(replay.next_frame()?.map(|frame| frame.payload().to_vec()), Some(b"hello".to_vec()));
/// assert!(replay.next_frame()?.is_none());
/// # drop(journal);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), gapless_journal::JournalError>(())
/// ```
#[derive(Debug)]
pub struct Journal {
    pub(crate) shared: Arc<SharedJournal>,
    pub(crate) active: Arc<Segment>,
    pub(crate) position: usize,
    pub(crate) limit: usize,
    pub(crate) active_first_sequence: u64,
    /// Position from which a batch must write an index entry or wake a helper.
    threshold: usize,
    next_index_position: usize,
    wake_position: usize,
    pub(crate) last_sequence: u64,
    pub(crate) journaled_sequence: u64,
    /// 0 if it has not moved in the active segment.
    pub(crate) journaled_position: usize,
    pub(crate) released_sequence: u64,
    pub(crate) mark: MarkWriter,
    pub(crate) buffer: Option<WriteBuffer>,
    pub(crate) next: Option<Arc<Segment>>,
    pub(crate) segments_begun: u64,
    pub(crate) segment_records: SegmentRecords,
    pub(crate) published_records: SegmentRecords,
    pub(crate) records_appended: u64,
    pub(crate) records_journaled: u64,
    /// A record follows the last frame; after opening, one may.
    pub(crate) has_record_after_last: bool,
    pub(crate) record: Vec<u8>,
}

impl Journal {
    /// Takes the lock, recovers by decision 7, and continues after the last valid frame.
    ///
    /// # Errors
    /// Options out of range, the lock held by another process, a full or read-only disk, and damage that a good mark
    /// covers.
    pub fn open(options: JournalOptions) -> Result<(Self, RecoveryReport), JournalError> {
        let options = options.validate()?;
        let (recovered, report) = recovery::open(options)?;
        let AppendPosition { shared, active, position, last_sequence } = recovered;
        let buffer = (shared.options.flush == Flush::Write)
            .then(|| WriteBuffer::new(shared.options.write_buffer_bytes, position as u64));
        let mut journal = Self {
            mark: active.mark_writer(JOURNALED_MARK_OFFSET),
            limit: 0,
            threshold: 0,
            next_index_position: 0,
            wake_position: 0,
            shared,
            active,
            position,
            last_sequence,
            journaled_sequence: last_sequence,
            journaled_position: position,
            released_sequence: 0,
            buffer,
            next: None,
            segments_begun: u64::from(report.is_new),
            active_first_sequence: 0,
            segment_records: SegmentRecords::Empty,
            published_records: SegmentRecords::Empty,
            records_appended: 0,
            records_journaled: 0,
            has_record_after_last: false,
            record: Vec::new(),
        };
        journal.move_to(position);
        // Relaxed: there are no other handles yet.
        let left_records = journal.shared.journaled_records.load(Ordering::Relaxed);
        (journal.records_appended, journal.records_journaled) = (left_records, left_records);
        journal.has_record_after_last = journal.may_have_record_after_last();
        Ok((journal, report))
    }

    /// Appends contiguous frames in the format of a window, each padded with zeros to a multiple of 8 bytes, that
    /// continue the journal without a gap. The operating system has them after [`Journal::commit`].
    ///
    /// # Errors
    /// A batch that does not continue the sequence or is malformed changes nothing. If the disk is full when the next
    /// segment is needed, the frames from [`Journal::last_sequence`]` + 1` on are left out, and may be appended again.
    /// After any other failure the journal refuses everything.
    #[inline]
    pub fn append(&mut self, frames: &[u8], first_sequence: u64, last_sequence: u64) -> Result<(), JournalError> {
        let is_in_order = first_sequence == self.last_sequence + 1
            && last_sequence >= first_sequence
            && frames.len() >= HEADER_LENGTH
            && frames.len().is_multiple_of(MESSAGE_ALIGNMENT)
            && first_sequence_of(frames) == Some(first_sequence);
        if !is_in_order {
            return Err(self.refusal(frames, first_sequence, last_sequence));
        }
        debug_assert_eq!(
            split_batch(frames, usize::MAX, self.shared.options.frame_length_max),
            Ok((frames.len(), last_sequence - first_sequence + 1)),
            "a batch holds whole frames of the stream, one for each of its sequences"
        );
        self.shared.check_poison()?;
        fault::crash_point("before_journal_copy");
        if frames.len() <= self.limit - self.position {
            self.put(frames, Some(first_sequence))?;
        } else {
            self.append_across(frames, first_sequence, last_sequence)?;
        }
        self.last_sequence = last_sequence;
        self.has_record_after_last = false;
        fault::crash_point("after_journal_copy");
        Ok(())
    }

    /// Passes all appended frames to the operating system, where they survive this process. Returns the last journaled
    /// sequence.
    ///
    /// # Errors
    /// A failed write; the journal refuses everything afterwards.
    #[inline]
    pub fn commit(&mut self) -> Result<u64, JournalError> {
        self.shared.check_poison()?;
        // Not the sequence: records move only the position.
        if self.journaled_position != self.position {
            self.flush_buffer()?;
            fault::crash_point("before_journaled_mark");
            self.move_mark()?;
        }
        Ok(self.journaled_sequence)
    }

    /// Like [`Journal::commit`], but with [`Flush::Write`] and without [`JournalOptions::flush_on_commit`] frames may
    /// stay in the write buffer (tier `memory`). Returns the last sequence that survives this process.
    ///
    /// # Errors
    /// As [`Journal::commit`].
    pub fn commit_buffered(&mut self) -> Result<u64, JournalError> {
        let may_stay = self.buffer.is_some() && !self.shared.options.flush_on_commit;
        if may_stay { self.shared.check_poison().map(|()| self.journaled_sequence) } else { self.commit() }
    }

    /// Returns the last appended sequence; one before the first in an empty journal.
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Returns the oldest sequence in the journal; retention moves it.
    #[must_use]
    pub fn first_sequence(&self) -> u64 {
        // Pairs with the release of retention, after it has deleted.
        self.shared.first_sequence.load(Ordering::Acquire)
    }

    #[must_use]
    pub fn journaled_sequence(&self) -> u64 {
        self.journaled_sequence
    }

    #[must_use]
    pub fn synced_sequence(&self) -> u64 {
        // Pairs with the release of the syncer.
        self.shared.synced_sequence.0.load(Ordering::Acquire)
    }

    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.shared.incarnation
    }

    #[must_use]
    pub fn options(&self) -> &JournalOptions {
        &self.shared.options
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.shared.options.directory
    }

    /// Checks that the journal and its helper threads have not failed: for a writer with nothing to append.
    ///
    /// # Errors
    /// [`JournalError::FileLost`], [`JournalError::Poisoned`].
    #[inline]
    pub fn check_usable(&self) -> Result<(), JournalError> {
        self.shared.check_poison()
    }

    /// [`Journal::truncate_after`] never removes frames up to `sequence`.
    #[inline]
    pub fn set_released(&mut self, sequence: u64) {
        self.released_sequence = sequence;
    }

    /// Retention may delete segments wholly at or below `sequence`, covered by a snapshot.
    pub fn set_snapshot_sequence(&self, sequence: u64) {
        // Pairs with the acquire of retention.
        self.shared.snapshot_sequence.fetch_max(sequence, Ordering::Release);
        self.shared.wake.signal();
    }

    /// Returns a handle that syncs, for a helper thread.
    #[must_use]
    pub fn syncer(&self) -> Syncer {
        Syncer::new(self.shared.clone())
    }

    /// Returns a handle for preparing and cleaning up segments, for a helper thread.
    #[must_use]
    pub fn preparer(&self) -> SegmentPreparer {
        SegmentPreparer::new(self.shared.clone())
    }

    /// Commits, syncs and closes; then the marks vouch for every frame on any boot. Dropping the journal instead is
    /// like a crash.
    ///
    /// # Errors
    /// A failed write or sync; [`JournalError::FileLost`].
    pub fn close(mut self) -> Result<u64, JournalError> {
        let sequence = self.commit()?;
        let syncer = self.syncer();
        syncer.sync_and_check()?;
        syncer.sync_marks()?;
        Ok(sequence)
    }

    pub(crate) fn move_to(&mut self, position: usize) {
        let frames_offset = self.active.header.frames_offset as usize;
        if let Some(entry) = self.shared.segment_list().entries.back() {
            self.active_first_sequence = entry.first_sequence;
            (self.segment_records, self.published_records) = (entry.segment_records, entry.segment_records);
        }
        self.position = position;
        self.limit = self.active.header.segment_length as usize;
        self.mark = self.active.mark_writer(JOURNALED_MARK_OFFSET);
        // Scanned frames have their entry already, unless the slot has only records.
        let slot = index::slot_of(position, frames_offset);
        let is_free = index::is_free(self.active.index(), slot);
        self.next_index_position = if is_free { position } else { frames_offset + (slot + 1) * INDEX_STRIDE };
        self.wake_position = position;
        self.threshold = position;
        if let Some(buffer) = &mut self.buffer {
            buffer.restart(position as u64);
        }
    }

    /// The frames fit the active segment; a record has no first sequence.
    #[inline]
    #[allow(unsafe_code)]
    pub(crate) fn put(&mut self, frames: &[u8], first_sequence: Option<u64>) -> Result<(), JournalError> {
        if self.position >= self.threshold {
            self.cross_threshold(first_sequence);
        }
        match &mut self.buffer {
            // SAFETY: `&mut self` makes this the one writer, and `position` is never before the mark.
            None => unsafe { self.active.mapping.copy_in(self.position, frames) },
            Some(buffer) => {
                if let Err(error) = buffer.push(&self.active.file, frames) {
                    return Err(self.fail("write", error));
                }
            }
        }
        self.position += frames.len();
        Ok(())
    }

    #[cold]
    fn cross_threshold(&mut self, first_sequence: Option<u64>) {
        let frames_offset = self.active.header.frames_offset as usize;
        // The index leads only to frames.
        if let Some(first_sequence) = first_sequence
            && self.position >= self.next_index_position
        {
            let slot = index::slot_of(self.position, frames_offset);
            index::record(self.active.index(), slot, first_sequence, self.position);
            self.next_index_position = frames_offset + (slot + 1) * INDEX_STRIDE;
        }
        if self.position >= self.wake_position {
            let window = self.shared.options.populate_ahead_bytes as usize;
            let is_populated = self.buffer.is_none() && window > 0;
            // The helper wakes long before the prepared length is used up.
            let step = if is_populated { window / 4 } else { self.limit / 4 };
            self.wake_position = self.position + step.max(INDEX_STRIDE);
            self.shared.wake.signal();
        }
        self.threshold = self.next_index_position.min(self.wake_position);
    }

    #[inline]
    pub(crate) fn flush_buffer(&mut self) -> Result<(), JournalError> {
        match &mut self.buffer {
            None => Ok(()),
            Some(buffer) => {
                let asked = self.shared.options.environment.check_disk(DiskOperation::Write);
                asked.and_then(|()| buffer.flush(&self.active.file)).map_err(|error| self.fail("write", error))
            }
        }
    }

    /// Readers see it as defined by [`JournalOptions::marks`].
    #[inline]
    pub(crate) fn move_mark(&mut self) -> Result<(), JournalError> {
        let value = (self.position as u64, self.last_sequence);
        let marks = self.shared.options.marks;
        if let Err(error) = self.active.move_mark(&mut self.mark, JOURNALED_MARK_OFFSET, value, marks) {
            return Err(self.fail("write", error));
        }
        self.journaled_sequence = self.last_sequence;
        self.journaled_position = self.position;
        if self.records_journaled != self.records_appended {
            self.count_records();
        }
        if self.buffer.is_none() {
            self.active.mapping.prefetch_for_writing(self.position);
        }
        // Pairs with the acquire of the syncer; the frames are in the file before it.
        self.shared.journaled_sequence.0.store(self.last_sequence, Ordering::Release);
        Ok(())
    }

    #[cold]
    fn refusal(&self, frames: &[u8], first_sequence: u64, last_sequence: u64) -> JournalError {
        if first_sequence != self.last_sequence + 1 {
            return JournalError::BatchSequence { expected: self.last_sequence + 1, found: first_sequence };
        }
        if last_sequence < first_sequence {
            return JournalError::BatchSequence { expected: first_sequence, found: last_sequence };
        }
        let reason = if frames.len() < HEADER_LENGTH || !frames.len().is_multiple_of(MESSAGE_ALIGNMENT) {
            format!("whole frames are expected, padded to multiples of {MESSAGE_ALIGNMENT} bytes")
        } else {
            let found = first_sequence_of(frames).unwrap_or(0);
            format!("the first frame has sequence {found}, {first_sequence} was announced")
        };
        malformed(frames, 0, reason)
    }

    #[cold]
    fn fail(&self, action: &'static str, error: std::io::Error) -> JournalError {
        let error = JournalError::io(action, self.active.path(), error);
        self.shared.poison(&error);
        error
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.shared.wake.end();
    }
}

pub(crate) fn malformed(frames: &[u8], offset: usize, reason: String) -> JournalError {
    JournalError::BatchMalformed { batch_bytes: frames.len(), offset, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_send() {
        const fn is_send<T: Send>() {}
        const { is_send::<Journal>() };
        const { is_send::<Syncer>() };
        const { is_send::<SegmentPreparer>() };
        const { is_send::<crate::Replay>() };
        const { is_send::<crate::JournalReader>() };
    }

    #[test]
    fn helper_populates_ahead() {
        let directory = tempfile::tempdir().unwrap();
        let mut options = JournalOptions::new(directory.path(), 1);
        options.segment_length_bytes = 8 << 20;
        options.populate_ahead_bytes = 3 << 20;
        let (mut journal, _) = Journal::open(options).unwrap();
        let work_off = |journal: &Journal| while journal.preparer().run_once().unwrap() {};
        work_off(&journal);
        let populated = |segment: &Segment| segment.populated_until.load(Ordering::SeqCst);
        assert!(populated(&journal.active) >= journal.position + (3 << 20));
        let frames = crate::test_frames::frames(1, 7_000, 960);
        let mut first = 1;
        for batch in frames.chunks(1024 * 10) {
            journal.append(batch, first, first + batch.len() as u64 / 1024 - 1).unwrap();
            first += batch.len() as u64 / 1024;
        }
        journal.commit().unwrap();
        work_off(&journal);
        assert_eq!(populated(&journal.active), 8 << 20);
        let prepared = journal.shared.segment_list().prepared.clone().unwrap();
        let beyond = journal.position + (3 << 20) - (8 << 20);
        assert!(populated(&prepared) >= prepared.header.frames_offset as usize + beyond);
        assert!(populated(&prepared) < 8 << 20);
    }
}
