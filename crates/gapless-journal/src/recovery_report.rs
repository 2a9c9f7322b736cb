//! [`RecoveryReport`]: findings of opening a journal, and the bytes that it removed.

use std::path::PathBuf;

use crate::error::{FrameFault, MarkName};

/// Findings and actions of a recovery.
#[derive(Clone, Debug)]
pub struct RecoveryReport {
    /// Set if the journal was created now.
    pub is_new: bool,
    /// Set if the journal was last written on this boot of this machine.
    pub is_same_boot: bool,
    /// Good mark, and the sequence up to which it vouches for every frame.
    pub good_mark: (MarkName, u64),
    /// First sequence in the journal.
    pub first_sequence: u64,
    /// Last sequence in the journal; one before the first in an empty journal.
    pub last_sequence: u64,
    pub segments: usize,
    pub frames_scanned: u64,
    /// Bytes removed from the end, if any.
    pub removed_tail: Option<RemovedTail>,
    /// Set if a sync of the previous process had failed, so that its frames were rewritten.
    pub is_rewritten: bool,
    /// Journaled marks with a damaged slot; the other slot was trusted, and the mark rewritten.
    pub repaired_marks: Vec<RepairedMark>,
    /// Removed files: segments that were never in use.
    pub removed: Vec<PathBuf>,
    /// Files with removed bytes, of this and earlier recoveries; the journal never deletes them.
    pub removed_tail_files: Vec<PathBuf>,
}

/// A journaled mark with a damaged slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairedMark {
    pub segment: PathBuf,
    /// Position of the damaged slot in the file.
    pub position: u64,
}

/// Bytes that recovery removed from the end of a journal. No good mark vouched for them.
#[derive(Clone, Debug)]
pub struct RemovedTail {
    pub segment: PathBuf,
    /// Files that keep these bytes.
    pub files: Vec<PathBuf>,
    /// Position of the first bad frame.
    pub position: u64,
    /// Expected sequence.
    pub sequence: u64,
    pub reason: FrameFault,
    /// Number of bytes, up to the last nonzero one.
    pub bytes: u64,
    /// Number of intact frames among them.
    pub frames: u64,
    /// Number of intact consensus records among them.
    pub records: u64,
}

impl std::fmt::Display for RemovedTail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { segment, files, position, sequence, reason, bytes, frames, records } = self;
        let segment = segment.display();
        write!(f, "{bytes} bytes from byte {position} of {segment} cut, {frames} intact frames ")?;
        if *records > 0 {
            write!(f, "and {records} intact records ")?;
        }
        write!(f, "among them: sequence {sequence} was expected there, but {reason}")?;
        let names: Vec<_> =
            files.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy()).collect();
        if names.is_empty() { Ok(()) } else { write!(f, "; kept as {}", names.join(", ")) }
    }
}
