//! `RecoveryReport`: findings of opening a journal, and the bytes that it removed.

use std::path::PathBuf;

use crate::error::{FrameFault, MarkName};

/// Findings and actions of a recovery.
#[derive(Clone, Debug)]
pub struct RecoveryReport {
    pub is_new: bool,
    /// Set if the journal was last written on this boot of this machine.
    pub is_same_boot: bool,
    /// The mark, and the sequence up to which it vouches for every frame.
    pub good_mark: (MarkName, u64),
    pub first_sequence: u64,
    /// One before the first in an empty journal.
    pub last_sequence: u64,
    pub segments: usize,
    pub frames_scanned: u64,
    pub removed_tail: Option<RemovedTail>,
    /// A sync of the previous process had failed.
    pub is_rewritten: bool,
    /// The other slot was trusted, and the mark rewritten.
    pub repaired_marks: Vec<RepairedMark>,
    /// Segments that were never in use.
    pub removed: Vec<PathBuf>,
    /// Files with removed bytes, of this and earlier recoveries; the journal never deletes them.
    pub removed_tail_files: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairedMark {
    pub segment: PathBuf,
    pub position: u64,
}

/// No good mark vouched for these bytes.
#[derive(Clone, Debug)]
pub struct RemovedTail {
    pub segment: PathBuf,
    pub files: Vec<PathBuf>,
    /// First bad frame.
    pub position: u64,
    pub sequence: u64,
    pub reason: FrameFault,
    /// Up to the last nonzero one.
    pub bytes: u64,
    pub frames: u64,
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
