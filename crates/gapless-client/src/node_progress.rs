//! Words in a cache line of the node's answer ring, read by the sequencer's process for status requests. No decision
//! depends on them.

use gapless_log::{RingNotes, RingReader};

const POSITION: usize = 0;
const STATE: usize = 1;
const PUBLISHED: usize = 2;
const RESENT: usize = 3;
const IN_FLIGHT: usize = 4;

/// A node never writes 0.
const REWINDING: u64 = 1;
const LIVE: u64 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeProgress {
    /// Next sequence to be read; 0 before it is known.
    pub position: u64,
    /// Everything available has been read; `None` before the first report.
    pub is_live: Option<bool>,
    /// Includes resent ones.
    pub frames_published: u64,
    pub frames_resent: u64,
    /// Published and not yet seen in the stream.
    pub in_flight: u32,
}

impl NodeProgress {
    /// Any values are possible, because another process wrote them.
    #[must_use]
    pub fn read(notes: &RingNotes) -> Self {
        let is_live = match notes.read(STATE) {
            REWINDING => Some(false),
            LIVE => Some(true),
            _ => None,
        };
        Self {
            position: notes.read(POSITION),
            is_live,
            frames_published: notes.read(PUBLISHED),
            frames_resent: notes.read(RESENT),
            in_flight: u32::try_from(notes.read(IN_FLIGHT)).unwrap_or(u32::MAX),
        }
    }
}

#[derive(Default)]
pub(crate) struct ProgressWriter {
    written: ProgressReport,
    frames_published: u64,
    is_begun: bool,
}

impl ProgressWriter {
    /// Called once in a poll; one store unless more than the position has changed.
    #[inline]
    pub fn write(&mut self, ring: &RingReader, position: u64, frames_published: u64, progress: ProgressReport) {
        ring.note(POSITION, position);
        if !self.is_begun || self.written != progress || self.frames_published != frames_published {
            (self.is_begun, self.written, self.frames_published) = (true, progress, frames_published);
            ring.note(STATE, if progress.is_live { LIVE } else { REWINDING });
            ring.note(PUBLISHED, frames_published);
            ring.note(RESENT, progress.frames_resent);
            ring.note(IN_FLIGHT, u64::from(progress.in_flight));
        }
    }
}

/// Passed by a node to its link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressReport {
    /// Everything available has been read.
    pub is_live: bool,
    pub frames_resent: u64,
    /// Published and not yet seen in the stream.
    pub in_flight: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_log::{MemoryKind, StreamIdentity, ring};

    #[test]
    fn progress_round_trip() {
        let (writer, reader) = ring::create(&MemoryKind::Anonymous, 4096, StreamIdentity::default()).unwrap();
        let notes = writer.notes();
        assert_eq!(NodeProgress::read(&notes), NodeProgress::default(), "no report yet");
        let mut noting = ProgressWriter::default();
        noting.write(&reader, 7, 3, ProgressReport { is_live: false, frames_resent: 2, in_flight: 1 });
        let expected =
            NodeProgress { position: 7, is_live: Some(false), frames_published: 3, frames_resent: 2, in_flight: 1 };
        assert_eq!(NodeProgress::read(&notes), expected);
        noting.write(&reader, 9, 3, ProgressReport { is_live: true, frames_resent: 2, in_flight: 0 });
        let expected = NodeProgress { position: 9, is_live: Some(true), in_flight: 0, ..expected };
        assert_eq!(NodeProgress::read(&notes), expected);
        reader.note(STATE, 99);
        reader.note(IN_FLIGHT, u64::MAX);
        let hostile = NodeProgress::read(&notes);
        assert_eq!((hostile.is_live, hostile.in_flight), (None, u32::MAX), "any values are accepted");
    }
}
