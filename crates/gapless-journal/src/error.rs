//! Errors of a journal, worded for its operator.

use std::io;
use std::path::PathBuf;

use gapless_wire::FrameError;

/// Vouches for frames (decision 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkName {
    /// Frames that the operating system has; good on the same boot.
    Journaled,
    /// Frames on the device; good on any boot.
    Synced,
}

impl std::fmt::Display for MarkName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Journaled => "journaled (good on the same boot)",
            Self::Synced => "synced (good on any boot)",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("frame length {length_bytes} is above the stream's limit of {limit_bytes} bytes")]
    TooLong { length_bytes: usize, limit_bytes: usize },
    #[error("sequence {expected} expected, {found} found")]
    Sequence { expected: u64, found: u64 },
    #[error("a record after sequence {expected} expected, one after sequence {found} found")]
    RecordPosition { expected: u64, found: u64 },
    /// Nonzero bytes between two frames.
    #[error("the padding behind the frame is not zero")]
    Padding,
    /// The length field is zero, or a header does not fit.
    #[error("no frame is there")]
    Empty,
    /// Inside the frame or before it.
    #[error("the file ends after {file_bytes} bytes")]
    EndOfFile { file_bytes: u64 },
    /// The frame does not end at the position of the journaled mark.
    #[error("sequence {sequence} ends at byte {found}, the journaled mark says {expected}")]
    MarkDisagrees { sequence: u64, expected: u64, found: u64 },
}

/// Error of a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Correct the option.
    #[error("journal option {option}: {reason}")]
    Options { option: &'static str, reason: String },
    /// The operating system refused. Check the permissions, the limits and the disk.
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "no space for the next {needed_bytes} bytes of the journal at {path}: {source}; free some space, lower the retention \
         or the segment length, then start again"
    )]
    NoSpace { path: PathBuf, needed_bytes: u64, source: io::Error },
    #[error("cannot {action} {path}: the file system is read-only; mount it writable or choose another directory")]
    ReadOnly { action: &'static str, path: PathBuf },
    #[error(
        "{directory} is in use by {holder}; stop it, or choose another directory (reading needs no lock: `gapless journal dump`)"
    )]
    Locked {
        /// The journal, or the directory around it.
        directory: PathBuf,
        /// Process identifier and program, as the holder wrote them to the lock file.
        holder: String,
    },
    #[error("{directory} holds no segment of a journal; is it the right directory?")]
    NoJournal { directory: PathBuf },
    /// The file is foreign, or its first bytes are destroyed.
    #[error(
        "{segment} is not a segment of a journal: its first bytes are {found:02x?}; move it away if it is foreign, else put it back from a copy of this directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    NotASegment { segment: PathBuf, found: Vec<u8> },
    #[error(
        "{segment} has layout version {found}, this program knows {expected}; read it with the program that wrote it"
    )]
    Version { segment: PathBuf, expected: u32, found: u32 },
    /// The header page fails its checks.
    #[error(
        "the header of {segment} is damaged at byte {position}: {reason}; put the same segment back from a copy of this directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    HeaderDamaged { segment: PathBuf, position: u64, reason: String },
    /// Recovery needs the mark to tell whether frames are missing.
    #[error(
        "both slots of the {mark} mark of {segment} at byte {position} are damaged; put the same segment back from a \
         copy of this directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    MarkDamaged { segment: PathBuf, position: u64, mark: MarkName },
    /// The intact slot may be the older one.
    #[error(
        "one slot of the journaled mark of {segment} is damaged, at byte {position}; the other slot covers the \
         sequences to {mark_sequence}, and there may have been more: a start of its program continues after the last \
         whole frame and rewrites the mark"
    )]
    MarkSlotDamaged {
        segment: PathBuf,
        position: u64,
        /// Sequence in the other slot.
        mark_sequence: u64,
    },
    #[error("{segment} belongs to stream {found:032x}, {expected:032x} was expected; is it the right directory?")]
    ForeignStream {
        segment: PathBuf,
        /// Stream given by the caller, or that of the other segments.
        expected: u128,
        found: u128,
    },
    /// The segment is from another incarnation of the stream, such as a copy from before a restore.
    #[error(
        "{segment} belongs to incarnation {found:016x}, the segments before it to {expected:016x}; move away the one \
         that does not belong here"
    )]
    ForeignIncarnation {
        segment: PathBuf,
        /// Incarnation of the segments before it.
        expected: u64,
        found: u64,
    },
    /// The file was renamed.
    #[error(
        "{segment} begins with sequence {found} by its header, not with the one in its name; give it back its name {expected_name}"
    )]
    NameMismatch {
        segment: PathBuf,
        /// First sequence by the header.
        found: u64,
        expected_name: String,
    },
    #[error("{first} and {second} both hold sequence {sequence}; move the one away that does not belong here")]
    Duplicate { first: PathBuf, second: PathBuf, sequence: u64 },
    #[error(
        "sequences {missing_from}..={missing_to} are missing between {before} and {after}; put the missing segments back (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    Gap { before: PathBuf, after: PathBuf, missing_from: u64, missing_to: u64 },
    /// The newest segment is sealed, so that there was one after it.
    #[error(
        "the segment after {segment} is missing or damaged: it begins with sequence {sequence}; put it back from a \
         copy of this directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    SuccessorMissing {
        segment: PathBuf,
        /// First sequence of the missing segment.
        sequence: u64,
    },
    /// A damaged frame was written completely once: the mark proves it.
    #[error(
        "{segment} is corrupt at byte {position}, where sequence {sequence} belongs: {reason}. The mark {mark} covers \
         everything up to sequence {mark_sequence}, so nothing was cut; put the same segment back from a copy of this \
         directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    Corrupt {
        segment: PathBuf,
        position: u64,
        sequence: u64,
        reason: FrameFault,
        /// Mark that covers it.
        mark: MarkName,
        /// Last sequence that the mark covers.
        mark_sequence: u64,
    },
    #[error(
        "{before} and {after} do not come from one history: the frame of sequence {sequence} is of {before_ns} ns in the first, of {after_ns} ns by the header of the second; one of them was exchanged, put back the one that belongs here"
    )]
    OtherTimes {
        before: PathBuf,
        after: PathBuf,
        /// Last sequence of the first segment.
        sequence: u64,
        /// Time stamp of the frame there, ns since the epoch.
        before_ns: u64,
        /// Time stamp according to the second segment, ns since the epoch.
        after_ns: u64,
    },
    /// The state, the snapshot or the journal was put back from a copy.
    #[error(
        "{file} stands at sequence {sequence} and does not come from one history with {journal}: {fault}. Nothing was changed; {}", fault.remedy()
    )]
    OtherHistory {
        file: PathBuf,
        sequence: u64,
        /// The journal, or its segment that contradicts the file.
        journal: PathBuf,
        fault: Box<PointFault>,
    },
    /// The bytes changed after they were written.
    #[error(
        "an unlinked segment in {directory} is damaged at byte {position}, where sequence {sequence} belongs: \
         {reason}; its contents are lost; check the disk"
    )]
    UnlinkedDamaged {
        /// Directory of the file system; the file has no path.
        directory: PathBuf,
        position: u64,
        sequence: u64,
        reason: FrameFault,
    },
    #[error(
        "{path}, which lists the required segments, is damaged in both of its slots; if `gapless journal verify` finds \
         nothing else, remove it, and it is rewritten from the segments"
    )]
    HistoryDamaged { path: PathBuf },
    #[error(
        "{history} belongs to stream and incarnation {history_says}, {segment} to {segment_says}; put back the one that belongs here"
    )]
    ForeignHistory {
        history: PathBuf,
        /// Stream and incarnation in the history file.
        history_says: String,
        segment: PathBuf,
        /// Stream and incarnation of that segment.
        segment_says: String,
    },
    #[error(
        "sequences {first}..={last} are archived at {path}, which cannot be used: {reason}; mount the archive, or put that file back ({stub} stands for it)"
    )]
    ArchiveUnusable { path: PathBuf, stub: PathBuf, first: u64, last: u64, reason: String },
    #[error(
        "sequences {missing_from}..={missing_to} are missing before {oldest}: {path} says that they were not deleted; put the missing segments back"
    )]
    OldestMissing {
        /// Oldest existing segment.
        oldest: PathBuf,
        path: PathBuf,
        missing_from: u64,
        missing_to: u64,
    },
    #[error(
        "the segment from sequence {sequence} on is missing after {newest}: {path} says that it was in use; put it \
         back from a copy of this directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    NewestMissing {
        /// Newest existing segment.
        newest: PathBuf,
        path: PathBuf,
        /// First sequence of the missing segment.
        sequence: u64,
    },
    #[error(
        "all segments are missing in {directory}: {path} says that the journal began with sequence {first} and that its newest segment began with {newest}; put them back, or choose another directory"
    )]
    SegmentsMissing {
        directory: PathBuf,
        path: PathBuf,
        /// Lowest sequence that must exist.
        first: u64,
        /// First sequence of the newest segment.
        newest: u64,
    },
    #[error("{path} says that `gapless journal restore` was interrupted here; run it again")]
    RestoreUnfinished { path: PathBuf },
    /// Nothing was written. Append frames in the order of the stream.
    #[error("a batch must begin with sequence {expected}, this one begins with {found}")]
    BatchSequence { expected: u64, found: u64 },
    /// Nothing was written. A batch consists of whole frames.
    #[error("a batch of {batch_bytes} bytes is malformed at byte {offset}: {reason}")]
    BatchMalformed { batch_bytes: usize, offset: usize, reason: String },
    /// The journal is unchanged and accepts more.
    #[error("a record makes a frame of {length_bytes} bytes, the stream's limit is {limit_bytes}")]
    RecordTooLong {
        /// Length with the header.
        length_bytes: usize,
        limit_bytes: usize,
    },
    /// Every segment needs at least one frame. The journal is unchanged: append a frame, then retry.
    #[error(
        "{segment} is full of records up to byte {position} without a frame among them; the rest is reserved for a \
         frame, which must come first"
    )]
    RecordsFull {
        segment: PathBuf,
        /// Position of the next record.
        position: u64,
    },
    /// Other processes may have acted on the frames. Nothing was cut.
    #[error("truncation after sequence {sequence} would cut released frames: {released} is released")]
    TruncatesReleased { sequence: u64, released: u64 },
    /// The frame was deleted by the retention, or is not written yet. Start at a sequence in this range.
    #[error("sequence {sequence} is not in the journal {directory}, which holds {first}..={last}")]
    NotHeld { directory: PathBuf, sequence: u64, first: u64, last: u64 },
    /// The writer cut frames that were not released, and this reader had read them.
    #[error(
        "the journal was truncated before the position of this reader, byte {position} of {segment}, and ends at \
         {end}; replay again"
    )]
    Rewound {
        segment: PathBuf,
        /// Position of the reader.
        position: u64,
        end: u64,
    },
    /// Another process removed, exchanged, shortened or overwrote the file. A check once a second detects it.
    #[error(
        "{path} {loss} while this process was writing it, and its contents may be lost: no other process may write to, \
         cut or move the files of a running program. Move it back if it was moved; else restore an older copy of the \
         directory with `gapless journal restore` (a member of a cluster: never a copy, but `gapless cluster add \
         --replace`; a relay or an archive: move its directory away, and it fetches again what its stream holds)"
    )]
    FileLost { path: PathBuf, loss: FileLoss },
    /// Stop the program, check the disk, and start it again.
    #[error(
        "syncing {segment} failed: {source}. It is never retried, because the kernel may have dropped the data; nothing after the last synced sequence is safe"
    )]
    SyncFailed { segment: PathBuf, source: io::Error },
    /// A retry fails, too. Remove the cause of the first failure and start the program again.
    #[error("the journal has failed and accepts no more operations: {reason}")]
    Poisoned {
        /// Text of the first failure.
        reason: String,
    },
}

impl JournalError {
    /// A full disk and a read-only file system have their own variants.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { action, path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::NoSpace { path, needed_bytes: 0, source }
            }
            _ => Self::Io { action, path, source },
        }
    }

    pub(crate) fn allocation(path: impl Into<PathBuf>, needed_bytes: u64, source: io::Error) -> Self {
        match Self::io("allocate", path, source) {
            Self::NoSpace { path, source, .. } => Self::NoSpace { path, needed_bytes, source },
            other => other,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileLoss {
    #[error("was removed or moved")]
    Removed,
    #[error("was exchanged for another file")]
    Exchanged,
    #[error("was cut from {from_bytes} to {to_bytes} bytes")]
    Shortened { from_bytes: u64, to_bytes: u64 },
    #[error("was written over, at or behind byte {position},")]
    Overwritten { position: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointFault {
    Identity { found: (u128, u64), expected: (u128, u64) },
    Ahead { last_sequence: u64, is_damaged: bool },
    NoJournal,
    TimeStamp { file_ns: u64, journal_ns: u64 },
}

impl PointFault {
    const fn remedy(&self) -> &'static str {
        match self {
            Self::NoJournal => {
                "put the folder `journal` back from a copy of this directory: without it the stream cannot go on here; or choose \
                 another directory, for a stream of its own"
            }
            _ => {
                "put the files back that belong together, or make what is here a history of its own with `gapless journal \
                 restore` (a member of a cluster: neither, but `gapless cluster add --replace`)"
            }
        }
    }
}

impl std::fmt::Display for PointFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Identity { found, expected } => write!(
                f,
                "it belongs to stream {:032x} incarnation {:016x}, the journal to {:032x} {:016x}",
                found.0, found.1, expected.0, expected.1
            ),
            Self::Ahead { last_sequence, is_damaged } => {
                write!(f, "the journal ends at sequence {last_sequence}")?;
                if *is_damaged { f.write_str(", where what follows is damaged") } else { Ok(()) }
            }
            Self::NoJournal => f.write_str("there is no segment of a journal"),
            Self::TimeStamp { file_ns, journal_ns } => {
                write!(f, "the journal's frame with that sequence is of {journal_ns} ns, the file's of {file_ns} ns")
            }
        }
    }
}
