//! [`Journaler`]: copies appended frames into the journal, and releases them or hands them to the sync thread.

use crate::counters::counters;
use crate::syncer::SyncRequests;
use crate::{AgentRole, StreamError};
use gapless_agent::fault::mutant;
use gapless_agent::{Agent, AgentError, Now, Waker};
use gapless_journal::Journal;
use gapless_log::{GatingCursor, Releaser};
use gapless_wire::descriptor::{FRAGMENT_OFFSET, SEQUENCE_OFFSET};
use gapless_wire::frame::peek_length;
use gapless_wire::{Fragment, aligned_length};

/// The step at which a frame reaches the stream's tier.
pub enum Release {
    WhenJournaled(Releaser),
    WhenSynced(SyncRequests<SyncedEnd>),
}

/// Extent of the frames on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncedEnd {
    /// Window position after the last.
    pub position: u64,
    /// Sequence of the last one.
    pub sequence: u64,
}

pub struct Journaler {
    cursor: GatingCursor,
    journal: Journal,
    release: Release,
    downstream: Vec<Waker>,
    /// A long backlog is released in steps.
    batch_bytes_max: usize,
    counters: JournalerCounters,
}

counters! {
    #[derive(Debug)]
    pub struct JournalerCounters {
        /// Last journaled sequence.
        last_sequence: "journaler.last_sequence",
        /// Journaled bytes since the start.
        bytes: "journaler.bytes",
    }
}

const SINGLE_MESSAGES_PER_POLL: usize = 64;

impl Journaler {
    /// An agent that reads all appended frames by `cursor`.
    #[must_use]
    pub fn new(
        cursor: GatingCursor,
        journal: Journal,
        release: Release,
        downstream: Vec<Waker>,
        batch_bytes_max: usize,
        counters: JournalerCounters,
    ) -> Self {
        Self { cursor, journal, release, downstream, batch_bytes_max, counters }
    }

    fn journal_batch(&mut self) -> Result<usize, StreamError> {
        let frames = self.cursor.available()?;
        if frames.is_empty() {
            return Ok(0);
        }
        let batch = JournalBatch::of(frames, self.batch_bytes_max);
        let position = self.cursor.position() + batch.length as u64;
        if mutant("acknowledge_before_journal") {
            self.release.reached(position, batch.last_sequence);
            // Makes the journal as slow as a busy disk, so that the injected defect can show.
            self.downstream.iter().for_each(Waker::wake);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let frames = self.cursor.available()?;
        self.journal.append(&frames[..batch.length], batch.first_sequence, batch.last_sequence)?;
        self.journal.commit()?;
        self.cursor.advance(batch.length);
        if !mutant("acknowledge_before_journal") {
            self.release.reached(position, batch.last_sequence);
        }
        if matches!(self.release, Release::WhenJournaled(_)) {
            self.downstream.iter().for_each(Waker::wake);
        }
        self.counters.last_sequence.set(batch.last_sequence);
        self.counters.bytes.add(batch.length as u64);
        Ok((batch.last_sequence - batch.first_sequence + 1) as usize)
    }
}

impl Release {
    fn reached(&mut self, position: u64, sequence: u64) {
        match self {
            Self::WhenJournaled(releaser) => releaser.release(position, sequence),
            Self::WhenSynced(requests) => requests.journaled(SyncedEnd { position, sequence }),
        }
    }
}

struct JournalBatch {
    length: usize,
    first_sequence: u64,
    last_sequence: u64,
}

impl JournalBatch {
    /// At least one message, with all fragments: each release is of whole messages.
    fn of(frames: &[u8], bytes_max: usize) -> Self {
        let sequence_at = |position: usize| {
            let field = frames[position + SEQUENCE_OFFSET..].first_chunk().expect("a frame holds a header");
            u64::from_le_bytes(*field)
        };
        let (mut length, mut last, mut is_whole) = (0, 0, true);
        while length < frames.len() && (length == 0 || length < bytes_max || !is_whole) {
            let frame = peek_length(&frames[length..], frames.len()).expect("the window holds whole frames only");
            let field = frames[length + FRAGMENT_OFFSET..].first_chunk().expect("a frame holds a header");
            is_whole = Fragment::from_bits(u32::from_le_bytes(*field)).is_none_or(Fragment::is_last);
            last = length;
            length += aligned_length(frame);
        }
        Self { length, first_sequence: sequence_at(0), last_sequence: sequence_at(last) }
    }
}

impl Agent for Journaler {
    fn name(&self) -> &str {
        AgentRole::Journaler.name()
    }

    fn poll(&mut self, _now: Now) -> Result<usize, AgentError> {
        // A helper may have found that a file is gone.
        self.journal.check_usable().map_err(StreamError::from)?;
        if let Release::WhenSynced(requests) = &self.release {
            requests.synced().map_err(|failure| StreamError::System {
                action: "syncing the journal".to_owned(),
                source: std::io::Error::other(failure),
            })?;
        }
        let mut work = self.journal_batch()?;
        // A flush after every message: several small batches.
        for _ in 1..if self.batch_bytes_max == 1 { SINGLE_MESSAGES_PER_POLL } else { 1 } {
            match self.journal_batch()? {
                0 => break,
                frames => work += frames,
            }
        }
        Ok(work)
    }

    fn is_drained(&self) -> bool {
        self.cursor.is_at_limit()
    }
}
