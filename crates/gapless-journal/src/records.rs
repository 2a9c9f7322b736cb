//! Consensus records among the frames: of kind [`Kind::Consensus`](gapless_wire::Kind::Consensus) with sequence 0.
//! Their `session_seq` is the sequence of the frame before, so a misplaced record is detected like a misplaced frame. A
//! flag marks a checkpoint.

use crate::FrameFault;
use gapless_wire::Frame;
use gapless_wire::descriptor::CHECKPOINT_FLAG;
use std::path::PathBuf;

use crate::descriptor::RECORDS_MARK_OFFSET;
use crate::mapping::FileMapping;
use crate::mark;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsensusRecord {
    /// Frame before it; one before the journal's first if none.
    pub after_sequence: u64,
    /// A record with the whole state of consensus.
    pub is_checkpoint: bool,
    pub payload: Vec<u8>,
}

/// Oldest first.
#[derive(Debug)]
pub struct ConsensusRecords {
    records: std::vec::IntoIter<ConsensusRecord>,
    stop: Option<ReplayStop>,
}

impl ConsensusRecords {
    pub(crate) fn new(records: Vec<ConsensusRecord>, stop: Option<ReplayStop>) -> Self {
        Self { records: records.into_iter(), stop }
    }

    /// Set if the journal ended before its bytes; see [`crate::Replay::stop`].
    #[must_use]
    pub fn stop(&self) -> Option<&ReplayStop> {
        self.stop.as_ref()
    }
}

impl Iterator for ConsensusRecords {
    type Item = ConsensusRecord;

    fn next(&mut self) -> Option<ConsensusRecord> {
        self.records.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

impl ExactSizeIterator for ConsensusRecords {}

pub(crate) fn is_checkpoint(record: &Frame<'_>) -> bool {
    record.flags() & CHECKPOINT_FLAG != 0
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SegmentRecords {
    #[default]
    Empty,
    Records,
    /// Newest checkpoint, at `position`, after frame `after_sequence`.
    Checkpoint {
        position: u64,
        after_sequence: u64,
    },
}

impl SegmentRecords {
    /// Reads the records mark. It is only a hint if the segment may be damaged: a damaged mark reads like one that was
    /// never written.
    pub(crate) fn read(mapping: &FileMapping) -> Self {
        match mark::read(mapping.mark(RECORDS_MARK_OFFSET)) {
            None => Self::Empty,
            Some(mark) if mark.first == 0 => {
                // Written by a truncation, see `SegmentRecords::to_words`.
                if mark.second == 0 { Self::Records } else { Self::Empty }
            }
            Some(mark) => Self::Checkpoint { position: mark.first, after_sequence: mark.second },
        }
    }

    pub(crate) fn to_words(self) -> (u64, u64) {
        match self {
            Self::Empty => (0, 1),
            Self::Records => (0, 0),
            Self::Checkpoint { position, after_sequence } => (position, after_sequence),
        }
    }

    pub(crate) fn with(self, is_checkpoint: bool, position: u64, after_sequence: u64) -> Self {
        match (is_checkpoint, self) {
            (true, _) => Self::Checkpoint { position, after_sequence },
            (false, Self::Empty) => Self::Records,
            (false, segment_records) => segment_records,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct SkippedRecords {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Position of the newest: first sequence of its segment, and offset there.
    pub(crate) checkpoint: Option<(u64, u64)>,
    /// Segment and position. A replay that has met no frame after records meets them again.
    last: Option<(u64, usize)>,
    pub(crate) collected: Option<Vec<ConsensusRecord>>,
}

impl SkippedRecords {
    #[cold]
    pub(crate) fn add(&mut self, segment: u64, position: usize, record: &Frame<'_>) {
        if self.last.is_some_and(|last| last >= (segment, position)) {
            return;
        }
        self.last = Some((segment, position));
        self.count += 1;
        self.bytes += gapless_wire::aligned_length(record.length()) as u64;
        let is_checkpoint = is_checkpoint(record);
        if is_checkpoint {
            self.checkpoint = Some((segment, position as u64));
        }
        if let Some(collected) = &mut self.collected {
            if is_checkpoint {
                collected.clear();
            }
            let (after_sequence, payload) = (record.session_seq(), record.payload().to_vec());
            collected.push(ConsensusRecord { after_sequence, is_checkpoint, payload });
        }
    }
}

/// Reason why a replay ended before the journal's bytes. Only on another boot than the writer's; opening the journal
/// for writing truncates there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayStop {
    pub segment: PathBuf,
    /// First bad frame.
    pub position: u64,
    pub sequence: u64,
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
