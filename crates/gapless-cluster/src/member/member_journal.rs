//! `MemberJournal`: a member's journal: frames, and after them the records that describe them.

use super::ballot::Ballot;
use super::journal_sync::JournalSync;
use super::pending_checkpoint::PendingCheckpoint;
use crate::ClusterError;
use crate::consensus::{ConsensusRecord, Effects};
use gapless_agent::fault::crash_point;
use gapless_journal::{Journal, JournalError};
use gapless_log::{GatingCursor, LogError};
use gapless_stream::StreamError;
use gapless_wire::{Frame, aligned_length};

pub(super) struct MemberJournal {
    journal: Journal,
    cursor: GatingCursor,
    records: Vec<ConsensusRecord>,
    /// Whether the records must be on the device before any answer.
    must_sync: bool,
    /// Term and vote that must be on the device.
    vote: Option<Vec<u8>>,
    ballot: Ballot,
    number: u64,
    journaled_number: u64,
    segments_begun: u64,
    worker: Option<JournalSync>,
    pending_checkpoint: PendingCheckpoint,
    is_flushed_by_frame: bool,
}

impl MemberJournal {
    pub fn new(
        (journal, cursor): (Journal, GatingCursor),
        worker: Option<JournalSync>,
        (pending_checkpoint, ballot): (PendingCheckpoint, Ballot),
        is_flushed_by_frame: bool,
    ) -> Self {
        let (records, segments_begun) = (Vec::new(), journal.segments_begun());
        Self {
            journal,
            cursor,
            records,
            must_sync: false,
            vote: None,
            ballot,
            number: 0,
            journaled_number: 0,
            segments_begun,
            worker,
            pending_checkpoint,
            is_flushed_by_frame,
        }
    }

    /// Last journaled sequence.
    pub fn last_sequence(&self) -> u64 {
        self.journal.last_sequence()
    }

    /// Oldest journaled sequence.
    pub fn first_sequence(&self) -> u64 {
        self.journal.first_sequence()
    }

    /// Frames of the window to be journaled, back to back.
    pub fn unjournaled(&mut self) -> Result<&[u8], ClusterError> {
        Ok(self.cursor.available().map_err(StreamError::from)?)
    }

    /// Skips frames that were read from this journal.
    pub fn pass_over(&mut self, length_bytes: usize) -> Result<(), ClusterError> {
        let available = self.unjournaled()?.len();
        assert!(length_bytes <= available, "they are in the window");
        self.cursor.advance(length_bytes);
        Ok(())
    }

    /// Takes the records of the last poll, and its demand for a sync.
    pub fn take(&mut self, effects: &mut Effects) {
        self.records.append(&mut effects.records);
        self.must_sync |= effects.must_sync;
        if let Some(vote) = effects.ballot.take() {
            self.vote = Some(vote);
        }
    }

    /// Returns the list for records that are produced before their poll.
    pub fn records(&mut self) -> &mut Vec<ConsensusRecord> {
        &mut self.records
    }

    /// Whether journaled frames are at once as durable as the tier requires.
    pub fn is_durable_at_once(&self) -> bool {
        self.worker.is_none()
    }

    /// The taken records belong to polls up to `number`.
    pub fn note_polled(&mut self, number: u64) {
        self.number = number;
    }

    /// Journals `length_bytes` of frames up to `last_sequence`, and the records after them. Returns the last poll that
    /// is as durable as the tier requires; `checkpoint` gives the whole state for a new segment.
    pub fn keep(
        &mut self,
        length_bytes: usize,
        last_sequence: u64,
        checkpoint: impl FnOnce() -> Vec<u8>,
    ) -> Result<u64, ClusterError> {
        // Checked also without frames: a helper may have found that a file is gone.
        self.journal.check_usable()?;
        if length_bytes > 0 {
            let frames = self.cursor.available().map_err(StreamError::from)?;
            let first_sequence = self.journal.last_sequence() + 1;
            append(
                &mut self.journal,
                &frames[..length_bytes],
                first_sequence,
                last_sequence,
                self.is_flushed_by_frame,
            )?;
            self.cursor.advance(length_bytes);
        }
        let is_news = self.number != self.journaled_number || !self.records.is_empty();
        let appended = self.append_records();
        let is_new_segment = self.journal.segments_begun() != self.segments_begun;
        if is_new_segment || matches!(appended, Err(JournalError::RecordsFull { .. })) {
            let checkpoint = checkpoint();
            match appended.and_then(|()| self.journal.append_checkpoint(&checkpoint)) {
                // Each start and election adds a record: one checkpoint replaces all.
                Err(JournalError::RecordsFull { .. }) => self.cut(self.journal.last_sequence(), &checkpoint)?,
                appended => appended?,
            }
            self.segments_begun = self.journal.segments_begun();
        } else {
            appended?;
        }
        if length_bytes > 0 || is_news {
            self.journal.commit()?;
        }
        if std::mem::take(&mut self.must_sync) {
            self.journal.sync()?;
        }
        if let Some(vote) = self.vote.take() {
            self.ballot.write(&vote)?;
        }
        self.journaled_number = self.number;
        let Some(worker) = &mut self.worker else { return Ok(self.number) };
        if length_bytes > 0 || is_news {
            worker.request(self.number);
        }
        worker.synced_number()
    }

    fn append_records(&mut self) -> Result<(), JournalError> {
        for record in self.records.drain(..) {
            if record.is_checkpoint {
                self.journal.append_checkpoint(&record.payload)?;
            } else {
                self.journal.append_record(&record.payload)?;
            }
        }
        Ok(())
    }

    /// Cuts everything after `sequence`, records included, and appends `checkpoint` with their content. A crash in
    /// between loses nothing.
    pub fn cut(&mut self, sequence: u64, checkpoint: &[u8]) -> Result<(), ClusterError> {
        // The frames of the checkpoint must be durable before it.
        self.journal.sync()?;
        crash_point("cut_before_checkpoint");
        self.pending_checkpoint.write(checkpoint)?;
        crash_point("cut_after_checkpoint");
        if sequence < self.journal.last_sequence() {
            self.journal.truncate_after(sequence)?;
        }
        crash_point("cut_after_truncation");
        match self.journal.append_checkpoint(checkpoint) {
            Err(JournalError::RecordsFull { .. }) => {
                // No frame is cut, but removed records make room.
                self.journal.truncate_after(sequence)?;
                self.journal.append_checkpoint(checkpoint)?;
            }
            appended => appended?,
        }
        self.journal.sync()?;
        crash_point("cut_before_removal");
        self.pending_checkpoint.remove()?;
        match self.cursor.available() {
            Ok(_) => {}
            Err(LogError::Truncated { .. }) => self.cursor.rewind(),
            Err(error) => return Err(StreamError::from(error).into()),
        }
        Ok(())
    }

    /// Released frames are never cut.
    pub fn set_released(&mut self, sequence: u64) {
        self.journal.set_released(sequence);
    }
}

fn append(
    journal: &mut Journal,
    frames: &[u8],
    first_sequence: u64,
    last_sequence: u64,
    is_flushed_by_frame: bool,
) -> Result<(), JournalError> {
    if !is_flushed_by_frame {
        return journal.append(frames, first_sequence, last_sequence);
    }
    let mut rest = frames;
    while !rest.is_empty() {
        let frame = Frame::parse(rest).expect("the window holds whole frames");
        let (sequence, length) = (frame.sequence(), aligned_length(frame.length()));
        journal.append(&rest[..length], sequence, sequence)?;
        journal.commit()?;
        rest = &rest[length..];
    }
    Ok(())
}
