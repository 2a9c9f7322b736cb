//! The writer: appends frames to the active segment and moves the journaled mark.
//!
//! One per directory, held by the thread that journals. `append` and `commit` on the mapped path, with
//! mapped marks, allocate nothing, take no lock and make no system call, except once per segment and for the
//! wake-up of a sleeping helper every few megabytes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gapless_agent::fault;
use gapless_wire::{HEADER_LENGTH, MESSAGE_ALIGNMENT};

use crate::descriptor::{INDEX_STRIDE, JOURNALED_MARK_OFFSET, SEALED_BIT};
use crate::error::JournalError;
use crate::index;
use crate::mark::MarkWriter;
use crate::options::{Flush, JournalOptions};
use crate::preparer::Preparer;
use crate::recovery::{self, Recovered, RecoveryReport};
use crate::scan::{first_sequence_of, split_batch};
use crate::segment::Segment;
use crate::shared::{Entry, Rolled, Shared};
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
    pub(crate) shared: Arc<Shared>,
    pub(crate) active: Arc<Segment>,
    /// Where the next frame goes.
    pub(crate) position: usize,
    /// The active segment's length.
    limit: usize,
    /// When a batch begins here or behind, there is an index entry to write or a helper to wake.
    threshold: usize,
    next_index_position: usize,
    wake_position: usize,
    pub(crate) last_sequence: u64,
    pub(crate) journaled_sequence: u64,
    pub(crate) released_sequence: u64,
    mark: MarkWriter,
    /// For [`Flush::Write`].
    pub(crate) buffer: Option<WriteBuffer>,
    /// Taken from the helper, not in use yet.
    next: Option<Arc<Segment>>,
}

impl Journal {
    /// Opens the journal of a directory, or makes one: takes the lock, recovers by decision D7, and
    /// stands behind the last whole frame. The report says what recovery found and cut.
    ///
    /// # Errors
    /// Options out of range, the lock held by another process, a disk that is full or read-only, and
    /// every damage that a good mark covers.
    pub fn open(options: JournalOptions) -> Result<(Self, RecoveryReport), JournalError> {
        let options = options.validate()?;
        let (recovered, report) = recovery::open(options)?;
        let Recovered { shared, active, position, last_sequence } = recovered;
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
            released_sequence: 0,
            buffer,
            next: None,
        };
        journal.stand_at(position);
        Ok((journal, report))
    }

    /// Appends whole frames as they stand in a window: contiguous, each padded with zeros to a
    /// multiple of 8 bytes, with gapless sequences `first_sequence..=last_sequence` that continue the
    /// journal. They are in the operating system's hands after [`Journal::commit`].
    ///
    /// # Errors
    /// A batch that does not continue the order or is malformed changes nothing. A full disk when the
    /// next segment is needed leaves out the frames from [`Journal::last_sequence`]` + 1` on, which
    /// may be appended again. After any other failure the journal refuses everything.
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
            self.put(frames, first_sequence)?;
        } else {
            self.append_across(frames, first_sequence, last_sequence)?;
        }
        self.last_sequence = last_sequence;
        fault::crash_point("after_journal_copy");
        Ok(())
    }

    /// Puts everything appended into the operating system's hands, where it survives this process,
    /// and moves the journaled mark. Returns the last journaled sequence.
    ///
    /// # Errors
    /// A failed write; the journal refuses everything afterwards.
    #[inline]
    pub fn commit(&mut self) -> Result<u64, JournalError> {
        self.shared.check_poison()?;
        if self.journaled_sequence != self.last_sequence {
            self.flush_buffer()?;
            fault::crash_point("before_journaled_mark");
            self.move_mark()?;
        }
        Ok(self.journaled_sequence)
    }

    /// As [`Journal::commit`], except that with [`Flush::Write`] and without
    /// [`JournalOptions::flush_on_commit`] frames may stay in the write buffer, where they do not
    /// survive this process (tier `memory`). Returns the last sequence that does survive it.
    ///
    /// # Errors
    /// As [`Journal::commit`].
    pub fn commit_buffered(&mut self) -> Result<u64, JournalError> {
        let may_stay = self.buffer.is_some() && !self.shared.options.flush_on_commit;
        if may_stay { self.shared.check_poison().map(|()| self.journaled_sequence) } else { self.commit() }
    }

    /// The last appended sequence; one before the first where there is none.
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// The oldest sequence that the journal holds; retention moves it.
    #[must_use]
    pub fn first_sequence(&self) -> u64 {
        // Acquire: pairs with the release of retention, which moves it after it has deleted.
        self.shared.first_sequence.load(Ordering::Acquire)
    }

    /// The last sequence in the operating system's hands.
    #[must_use]
    pub fn journaled_sequence(&self) -> u64 {
        self.journaled_sequence
    }

    /// The last sequence on the device.
    #[must_use]
    pub fn synced_sequence(&self) -> u64 {
        // Acquire: pairs with the release of the syncer.
        self.shared.synced_sequence.0.load(Ordering::Acquire)
    }

    /// Drawn when the directory was made and kept for its life.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.shared.incarnation
    }

    /// The options after their validation.
    #[must_use]
    pub fn options(&self) -> &JournalOptions {
        &self.shared.options
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.shared.options.directory
    }

    /// Says how far frames are released, which [`Journal::truncate_after`] never cuts.
    #[inline]
    pub fn set_released(&mut self, sequence: u64) {
        self.released_sequence = sequence;
    }

    /// Says that a snapshot holds everything up to `sequence`, so that retention may delete segments
    /// that are wholly at or below it.
    pub fn set_snapshot_sequence(&self, sequence: u64) {
        // Release: pairs with the acquire of retention.
        self.shared.snapshot_sequence.fetch_max(sequence, Ordering::Release);
        self.shared.wake.signal();
    }

    /// A handle that syncs, for a helper thread.
    #[must_use]
    pub fn syncer(&self) -> Syncer {
        Syncer::new(self.shared.clone())
    }

    /// A handle that works ahead of the writer and cleans up behind it, for a helper thread.
    #[must_use]
    pub fn preparer(&self) -> Preparer {
        Preparer::new(self.shared.clone())
    }

    /// Commits, syncs, and lets go of everything; afterwards the marks vouch for every frame on any
    /// boot of any machine. Dropping the journal instead is what a crash would be.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn close(mut self) -> Result<u64, JournalError> {
        let sequence = self.commit()?;
        let syncer = self.syncer();
        syncer.sync()?;
        syncer.sync_marks()?;
        Ok(sequence)
    }

    /// Stands at `position` of the active segment.
    pub(crate) fn stand_at(&mut self, position: usize) {
        let frames_offset = self.active.header.frames_offset as usize;
        self.position = position;
        self.limit = self.active.header.segment_length as usize;
        self.mark = self.active.mark_writer(JOURNALED_MARK_OFFSET);
        // The slot of `position` itself is free if `position` is where the slot begins; else its
        // entry is there already, from what was scanned.
        let slot = (position - frames_offset).div_ceil(INDEX_STRIDE);
        self.next_index_position = frames_offset + slot * INDEX_STRIDE;
        self.wake_position = position;
        self.threshold = position;
        if let Some(buffer) = &mut self.buffer {
            buffer.restart(position as u64);
        }
    }

    /// Copies frames that fit the active segment.
    #[inline]
    #[allow(unsafe_code)]
    fn put(&mut self, frames: &[u8], first_sequence: u64) -> Result<(), JournalError> {
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

    /// Writes an index entry and wakes the helper, where it is time for either.
    #[cold]
    fn cross_threshold(&mut self, first_sequence: u64) {
        let frames_offset = self.active.header.frames_offset as usize;
        if self.position >= self.next_index_position {
            let slot = index::slot_of(self.position, frames_offset);
            index::record(self.active.index(), slot, first_sequence, self.position);
            self.next_index_position = frames_offset + (slot + 1) * INDEX_STRIDE;
        }
        if self.position >= self.wake_position {
            let window = self.shared.options.populate_ahead_bytes as usize;
            let is_populated = self.buffer.is_none() && window > 0;
            // A quarter of what is kept ready, so that the helper wakes long before it is used up.
            let step = if is_populated { window / 4 } else { self.limit / 4 };
            self.wake_position = self.position + step.max(INDEX_STRIDE);
            self.shared.wake.signal();
        }
        self.threshold = self.next_index_position.min(self.wake_position);
    }

    /// Appends a batch that reaches into the next segment.
    #[cold]
    fn append_across(&mut self, frames: &[u8], first_sequence: u64, last_sequence: u64) -> Result<(), JournalError> {
        let frame_length_max = self.shared.options.frame_length_max;
        let count = last_sequence - first_sequence + 1;
        match split_batch(frames, usize::MAX, frame_length_max) {
            Ok((_, found)) if found == count => {}
            Ok((_, found)) => return Err(malformed(frames, 0, format!("{count} frames expected, {found} found"))),
            Err(offset) => return Err(malformed(frames, offset, "no frame of this stream is there".to_owned())),
        }
        // Before anything is copied, so that a full disk leaves the batch out as a whole.
        self.reserve_next()?;
        let (mut rest, mut sequence) = (frames, first_sequence);
        loop {
            let room = self.limit - self.position;
            let (length, count) = split_batch(rest, room, frame_length_max)
                .map_err(|offset| malformed(frames, offset, "no frame of this stream is there".to_owned()))?;
            if length > 0 {
                self.put(&rest[..length], sequence)?;
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

    /// Makes sure that there is a next segment.
    fn reserve_next(&mut self) -> Result<(), JournalError> {
        if self.next.is_none() {
            let prepared = self.shared.state().prepared.take();
            self.next = Some(match prepared {
                Some(segment) => segment,
                None => self.shared.prepare_at_once()?,
            });
        }
        Ok(())
    }

    /// Goes on in the next segment, whose first frame will have `first_sequence`.
    fn roll(&mut self, first_sequence: u64) -> Result<(), JournalError> {
        fault::crash_point("before_segment_roll");
        self.reserve_next()?;
        self.flush_buffer()?;
        let next = self.next.take().expect("reserve_next has just put it there");
        let opened_ns = (self.shared.options.environment.epoch_ns)();
        // In this order, so that a sealed segment always has another behind it.
        next.open_for(first_sequence, opened_ns);
        self.mark.write(
            self.active.mapping.mark(JOURNALED_MARK_OFFSET),
            self.position as u64 | SEALED_BIT,
            first_sequence - 1,
        );
        let old = std::mem::replace(&mut self.active, next);
        {
            let mut state = self.shared.state();
            let old_first_sequence = state.entries.back().map_or(1, |entry| entry.first_sequence);
            state.rolled.push_back(Rolled {
                file: old.file.clone(),
                segment: Some(old),
                first_sequence: old_first_sequence,
                last_sequence: first_sequence - 1,
                end: self.position as u64,
                sealed_ns: opened_ns,
            });
            state.unsettled.push_back((self.active.clone(), first_sequence));
            state.entries.push_back(Entry { first_sequence, opened_ns, length: self.active.header.segment_length });
            state.active = self.active.clone();
        }
        self.stand_at(self.active.header.frames_offset as usize);
        fault::crash_point("after_segment_roll");
        Ok(())
    }

    #[inline]
    fn flush_buffer(&mut self) -> Result<(), JournalError> {
        match &mut self.buffer {
            None => Ok(()),
            Some(buffer) => match buffer.flush(&self.active.file) {
                Ok(()) => Ok(()),
                Err(error) => Err(self.fail("write", error)),
            },
        }
    }

    /// Moves the journaled mark to the end of what was appended. It reaches its readers as
    /// [`JournalOptions::marks`] says.
    #[inline]
    pub(crate) fn move_mark(&mut self) -> Result<(), JournalError> {
        let value = (self.position as u64, self.last_sequence);
        let marks = self.shared.options.marks;
        if let Err(error) = self.active.move_mark(&mut self.mark, JOURNALED_MARK_OFFSET, value, marks) {
            return Err(self.fail("write", error));
        }
        self.journaled_sequence = self.last_sequence;
        if self.buffer.is_none() {
            self.active.mapping.prefetch_for_writing(self.position);
        }
        // Release: pairs with the acquire of the syncer; the frames are in the file before it.
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

fn malformed(frames: &[u8], offset: usize, reason: String) -> JournalError {
    JournalError::BatchMalformed { batch_bytes: frames.len(), offset, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handles_move_between_threads() {
        const fn is_send<T: Send>() {}
        const { is_send::<Journal>() };
        const { is_send::<Syncer>() };
        const { is_send::<Preparer>() };
        const { is_send::<crate::Replay>() };
        const { is_send::<crate::JournalReader>() };
    }

    #[test]
    fn the_helper_keeps_its_window_ahead_of_the_writer_and_into_the_next_segment() {
        let directory = tempfile::tempdir().unwrap();
        let mut options = JournalOptions::new(directory.path(), 1);
        options.segment_length_bytes = 8 << 20;
        options.populate_ahead_bytes = 3 << 20;
        let (mut journal, _) = Journal::open(options).unwrap();
        let work_off = |journal: &Journal| while journal.preparer().run_once().unwrap() {};
        work_off(&journal);
        let populated = |segment: &Segment| segment.populated_until.load(Ordering::SeqCst);
        assert!(populated(&journal.active) >= journal.position + (3 << 20));
        let frames = crate::fixture::frames(1, 7_000, 960);
        let mut first = 1;
        for batch in frames.chunks(1024 * 10) {
            journal.append(batch, first, first + batch.len() as u64 / 1024 - 1).unwrap();
            first += batch.len() as u64 / 1024;
        }
        journal.commit().unwrap();
        work_off(&journal);
        assert_eq!(populated(&journal.active), 8 << 20);
        let prepared = journal.shared.state().prepared.clone().unwrap();
        let beyond = journal.position + (3 << 20) - (8 << 20);
        assert!(populated(&prepared) >= prepared.header.frames_offset as usize + beyond);
        assert!(populated(&prepared) < 8 << 20);
    }
}
