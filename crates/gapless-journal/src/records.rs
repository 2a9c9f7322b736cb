//! Records of consensus among the frames of a journal: the records in a segment, and how they are read back.
//!
//! A record is a frame of kind [`Kind::Consensus`](gapless_wire::Kind::Consensus) with sequence 0, whose `session_seq` is
//! the sequence of the frame before it, so that one in a wrong place is noticed as a frame is. A flag says that it is a
//! checkpoint. Written by `record_writer`, passed over by every replay, collected here for
//! [`crate::JournalReader::records`].

use crate::FrameFault;
use gapless_wire::Frame;
use gapless_wire::descriptor::CHECKPOINT_FLAG;
use std::path::PathBuf;

use crate::descriptor::RECORDS_MARK_OFFSET;
use crate::mapping::Mapping;
use crate::mark;

/// One record of consensus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The sequence of the last frame before it; one before the journal's first where there is none.
    pub behind_sequence: u64,
    /// Whether everything that consensus keeps is in it, so that no record before it is needed.
    pub is_checkpoint: bool,
    /// The payload that [`crate::Journal::append_record`] was given.
    pub payload: Vec<u8>,
}

/// The records of a journal, oldest first. Made by [`crate::JournalReader::records`].
#[derive(Debug)]
pub struct Records {
    records: std::vec::IntoIter<Record>,
    stop: Option<ReplayStop>,
}

impl Records {
    pub(crate) fn new(records: Vec<Record>, stop: Option<ReplayStop>) -> Self {
        Self { records: records.into_iter(), stop }
    }

    /// Why the journal ended before its bytes do, if it did; as [`crate::Replay::stop`].
    #[must_use]
    pub fn stop(&self) -> Option<&ReplayStop> {
        self.stop.as_ref()
    }
}

impl Iterator for Records {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.records.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

impl ExactSizeIterator for Records {}

/// Whether a checked record is a checkpoint.
pub(crate) fn is_checkpoint(record: &Frame<'_>) -> bool {
    record.flags() & CHECKPOINT_FLAG != 0
}

/// The records in a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SegmentRecords {
    /// No record.
    #[default]
    Nothing,
    /// Records, and no checkpoint among them.
    Records,
    /// Records; the newest checkpoint stands at `position`, after the frame of `behind_sequence`.
    Checkpoint { position: u64, behind_sequence: u64 },
}

impl SegmentRecords {
    /// As the records mark says. It is only a hint where the frames beside it may be damaged; a mark that was never
    /// written says the same as one that is damaged.
    pub(crate) fn read(mapping: &Mapping) -> Self {
        match mark::read(mapping.mark(RECORDS_MARK_OFFSET)) {
            None => Self::Nothing,
            Some(mark) if mark.first == 0 => {
                // Taken back by a truncation, see `SegmentRecords::to_words`.
                if mark.second == 0 { Self::Records } else { Self::Nothing }
            }
            Some(mark) => Self::Checkpoint { position: mark.first, behind_sequence: mark.second },
        }
    }

    /// The two values of the records mark.
    pub(crate) fn to_words(self) -> (u64, u64) {
        match self {
            Self::Nothing => (0, 1),
            Self::Records => (0, 0),
            Self::Checkpoint { position, behind_sequence } => (position, behind_sequence),
        }
    }

    /// With one more record, which stands at `position`.
    pub(crate) fn with(self, is_checkpoint: bool, position: u64, behind_sequence: u64) -> Self {
        match (is_checkpoint, self) {
            (true, _) => Self::Checkpoint { position, behind_sequence },
            (false, Self::Nothing) => Self::Records,
            (false, segment_records) => segment_records,
        }
    }
}

/// The notes of a replay on the records that it passes over.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) count: u64,
    /// Their length in bytes, padding included.
    pub(crate) bytes: u64,
    /// Where the newest checkpoint stands: the first sequence of its segment, and the position there.
    pub(crate) checkpoint: Option<(u64, u64)>,
    /// Segment and position of the last one. A replay that has met no frame after records meets them again.
    last: Option<(u64, usize)>,
    /// From the newest checkpoint on.
    pub(crate) collected: Option<Vec<Record>>,
}

impl Passed {
    /// Notes a checked record at `position` of the segment that begins with `segment`.
    #[cold]
    pub(crate) fn note(&mut self, segment: u64, position: usize, record: &Frame<'_>) {
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
            let (behind_sequence, payload) = (record.session_seq(), record.payload().to_vec());
            collected.push(Record { behind_sequence, is_checkpoint, payload });
        }
    }
}

/// Why a replay ended before the bytes of the journal do. Only on another boot than the one on which
/// it was written; opening the journal for writing cuts there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayStop {
    pub segment: PathBuf,
    /// Where the first bad frame begins.
    pub position: u64,
    /// The sequence that belongs there.
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
