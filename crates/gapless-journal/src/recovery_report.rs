//! [`RecoveryReport`]: the findings and cuts of opening a journal.

use std::path::PathBuf;

use crate::error::{FrameFault, MarkName};

/// The findings and actions of a recovery.
#[derive(Clone, Debug)]
pub struct RecoveryReport {
    /// Whether the journal was made now.
    pub is_new: bool,
    /// Whether the journal was last written on this boot of this machine.
    pub is_same_boot: bool,
    /// The mark that was good, and the sequence up to which it vouches for every frame.
    pub good_mark: (MarkName, u64),
    /// The first sequence that the journal holds.
    pub first_sequence: u64,
    /// The last sequence that the journal holds; one before the first where there is none.
    pub last_sequence: u64,
    pub segments: usize,
    pub frames_scanned: u64,
    /// The cut from the end; `None` if there was none.
    pub cut: Option<Cut>,
    /// Whether the process before had a failed fdatasync, so that its frames were written again.
    pub is_rewritten: bool,
    /// Journaled marks one slot of which was damaged; the other was believed, and the mark is written anew.
    pub mended_marks: Vec<MendedMark>,
    /// Files that were removed: segments that were never used.
    pub removed: Vec<PathBuf>,
    /// Files that hold what was cut, now and before; none of them is ever deleted.
    pub kept_cuts: Vec<PathBuf>,
}

/// A journaled mark one slot of which was damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MendedMark {
    /// The file.
    pub segment: PathBuf,
    /// Where in the file the damaged slot begins.
    pub position: u64,
}

/// The part that recovery cut from the end of a journal: nothing that a good mark vouched for.
#[derive(Clone, Debug)]
pub struct Cut {
    pub segment: PathBuf,
    /// The files that hold what was cut, under other names.
    pub kept: Vec<PathBuf>,
    /// Where the first bad frame began.
    pub position: u64,
    /// The sequence that belonged there.
    pub sequence: u64,
    pub reason: FrameFault,
    /// How many bytes were cut, up to the last that was not zero.
    pub bytes: u64,
    /// How many intact frames were cut with it.
    pub frames: u64,
    /// How many intact records of consensus were cut with it.
    pub records: u64,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { segment, kept, position, sequence, reason, bytes, frames, records } = self;
        let segment = segment.display();
        write!(f, "{bytes} bytes from byte {position} of {segment} cut, {frames} intact frames ")?;
        if *records > 0 {
            write!(f, "and {records} intact records ")?;
        }
        write!(f, "among them: sequence {sequence} was expected there, but {reason}")?;
        let names: Vec<_> =
            kept.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy()).collect();
        if names.is_empty() { Ok(()) } else { write!(f, "; kept as {}", names.join(", ")) }
    }
}
