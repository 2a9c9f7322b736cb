//! The errors of a journal, in words for the person who operates it.

use std::io;
use std::path::PathBuf;

use gapless_wire::FrameError;

/// The mark of decision 7 that vouches for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkName {
    /// The end of the frames in the operating system's hands; good on the same boot of the machine.
    Journaled,
    /// The last sequence that was on the device; good on any boot.
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

/// Why the bytes at a position are not the frame that belongs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// The frame itself is malformed or fails a checksum.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Longer than the stream allows.
    #[error("frame length {length_bytes} is above the stream's limit of {limit_bytes} bytes")]
    TooLong { length_bytes: usize, limit_bytes: usize },
    /// A whole frame, but not the next one.
    #[error("sequence {expected} expected, {found} found")]
    Sequence {
        /// The sequence that continues the order.
        expected: u64,
        /// The frame's sequence.
        found: u64,
    },
    /// A whole record of consensus, but after another frame.
    #[error("a record behind sequence {expected} expected, one behind sequence {found} found")]
    RecordPosition {
        /// The sequence of the frame before it.
        expected: u64,
        /// The record's sequence.
        found: u64,
    },
    /// The bytes between a frame and the next are not zero.
    #[error("the padding behind the frame is not zero")]
    Padding,
    /// No frame begins here: the length field is zero, or there is no room for a header.
    #[error("no frame is there")]
    Empty,
    /// The file ends inside the frame or before it.
    #[error("the file ends after {file_bytes} bytes")]
    EndOfFile { file_bytes: u64 },
    /// The frame does not end where the journaled mark says.
    #[error("sequence {sequence} ends at byte {found}, the journaled mark says {expected}")]
    MarkDisagrees {
        /// The last journaled sequence.
        sequence: u64,
        /// The position of the mark.
        expected: u64,
        /// Where the frame ends.
        found: u64,
    },
}

/// Everything that a journal refuses or fails at.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// An option is out of its range.
    #[error("journal option {option}: {reason}")]
    Options { option: &'static str, reason: String },
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// No space for a segment.
    #[error(
        "no space for the next {needed_bytes} bytes of the journal at {path}: {source}; free some space, lower the retention \
         or the segment length, then start again"
    )]
    NoSpace {
        path: PathBuf,
        /// How much was asked for.
        needed_bytes: u64,
        source: io::Error,
    },
    /// The file system does not take writes.
    #[error("cannot {action} {path}: the file system is read-only; mount it writable or choose another directory")]
    ReadOnly { action: &'static str, path: PathBuf },
    /// Another process has the journal.
    #[error(
        "{directory} is in use by {holder}; stop it, or choose another directory (reading needs no lock: `gapless journal dump`)"
    )]
    Locked {
        /// The journal, or the directory that it lies in.
        directory: PathBuf,
        /// Process identifier and program, as the holder wrote them into the lock file.
        holder: String,
    },
    /// There is no journal to read.
    #[error("{directory} holds no segment of a journal; is it the right directory?")]
    NoJournal { directory: PathBuf },
    /// Not a segment, or its first bytes are destroyed.
    #[error(
        "{segment} is not a segment of a journal: its first bytes are {found:02x?}; move it away if it is foreign, else put it back from a copy of this directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    NotASegment {
        segment: PathBuf,
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// Written by a program with another layout.
    #[error(
        "{segment} has layout version {found}, this program knows {expected}; read it with the program that wrote it"
    )]
    Version {
        segment: PathBuf,
        /// The version of this program.
        expected: u32,
        found: u32,
    },
    /// The header page fails its checks.
    #[error(
        "the header of {segment} is damaged at byte {position}: {reason}; put the same segment back from a copy of this directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    HeaderDamaged { segment: PathBuf, position: u64, reason: String },
    /// A mark on which recovery depends cannot be read.
    #[error(
        "the {mark} mark of {segment} at byte {position} is damaged, both of its slots; put the same segment back from a copy of this directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    MarkDamaged { segment: PathBuf, position: u64, mark: MarkName },
    /// One slot of the journaled mark cannot be read, so that the other may say less than was promised.
    #[error(
        "one slot of the two of the journaled mark of {segment} is damaged, at byte {position}; the other vouches for sequences to {mark_sequence}, and there may have been more: a start of its program goes on behind the last whole frame and writes the mark anew"
    )]
    MarkSlotDamaged {
        segment: PathBuf,
        /// Where the slot begins.
        position: u64,
        /// The sequence in the other slot.
        mark_sequence: u64,
    },
    /// The segment belongs to another stream.
    #[error("{segment} belongs to stream {found:032x}, {expected:032x} was expected; is it the right directory?")]
    ForeignStream {
        segment: PathBuf,
        /// The value that the caller asked for, or that of the other segments.
        expected: u128,
        /// The segment's value.
        found: u128,
    },
    /// The segment belongs to another incarnation of the stream.
    #[error(
        "{segment} belongs to incarnation {found:016x}, the segments before it to {expected:016x}; move away what does not belong here"
    )]
    ForeignIncarnation {
        segment: PathBuf,
        /// The value of the segments before it.
        expected: u64,
        /// The segment's value.
        found: u64,
    },
    /// A segment's name and its header disagree.
    #[error(
        "{segment} begins with sequence {found} by its header, not with the one in its name; give it back its name {expected_name}"
    )]
    NameMismatch {
        segment: PathBuf,
        /// The header's value.
        found: u64,
        /// The name it should have.
        expected_name: String,
    },
    /// Two segments hold the same sequences.
    #[error("{first} and {second} both hold sequence {sequence}; move the one away that does not belong here")]
    Duplicate {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// A sequence that both hold.
        sequence: u64,
    },
    /// A segment in the middle is missing.
    #[error(
        "sequences {missing_from}..={missing_to} are missing between {before} and {after}; put the missing segments back (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    Gap {
        /// The segment before the gap.
        before: PathBuf,
        /// The segment after it.
        after: PathBuf,
        missing_from: u64,
        missing_to: u64,
    },
    /// The newest segment is sealed, so there was one after it.
    #[error(
        "the segment behind {segment} is missing or damaged: it begins with sequence {sequence}; put it back from a copy of this directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    SuccessorMissing {
        segment: PathBuf,
        /// The first sequence of the missing one.
        sequence: u64,
    },
    /// A bad frame that a good mark covers.
    #[error(
        "{segment} is corrupt at byte {position}, where sequence {sequence} belongs: {reason}. The mark {mark} vouches for everything \
         up to sequence {mark_sequence}, so nothing was cut; put the same segment back from a copy of this directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    Corrupt {
        segment: PathBuf,
        /// Where the bad frame begins.
        position: u64,
        /// The sequence that belongs there.
        sequence: u64,
        reason: FrameFault,
        /// The mark that covers it.
        mark: MarkName,
        /// How far that mark reaches.
        mark_sequence: u64,
    },
    /// Two neighbouring segments were not written one after the other.
    #[error(
        "{before} and {after} do not come from one history: the frame of sequence {sequence} is of {before_ns} ns in the first, of {after_ns} ns by the header of the second; one of them was exchanged, put back the one that belongs here"
    )]
    OtherTimes {
        /// The segment that holds the frame.
        before: PathBuf,
        /// The segment after it.
        after: PathBuf,
        /// The last sequence of the first.
        sequence: u64,
        /// Its time stamp there, ns since the epoch.
        before_ns: u64,
        /// Its time stamp by the second.
        after_ns: u64,
    },
    /// A file beside the journal, a state or a snapshot, is not of the journal's history.
    #[error(
        "{file} stands at sequence {sequence} and does not come from one history with {journal}: {fault}. Nothing was changed; {}", fault.advice()
    )]
    OtherHistory {
        file: PathBuf,
        /// Where it stands.
        sequence: u64,
        /// The journal, or the segment of it that says otherwise.
        journal: PathBuf,
        fault: Box<PointFault>,
    },
    /// Bytes of an unlinked segment are not those that were written.
    #[error(
        "an unlinked segment in {directory} is damaged at byte {position}, where sequence {sequence} belongs: {reason}; what was there is lost, check the disk"
    )]
    UnlinkedDamaged {
        /// Where the file has its room; it has no path of its own.
        directory: PathBuf,
        /// Where the bad frame begins.
        position: u64,
        /// The sequence that belongs there.
        sequence: u64,
        reason: FrameFault,
    },
    /// The file that says which segments must be there cannot be read.
    #[error(
        "{path}, which says what segments there must be, is damaged in both of its slots; if `gapless journal verify` finds nothing else, remove it, and it is written anew from the segments"
    )]
    HistoryDamaged { path: PathBuf },
    /// The file that says which segments must be there was written for others.
    #[error(
        "{history} belongs to stream and incarnation {history_says}, {segment} to {segment_says}; put back the one that belongs here"
    )]
    ForeignHistory {
        /// The file `history`.
        history: PathBuf,
        /// Its stream and incarnation.
        history_says: String,
        /// The oldest segment.
        segment: PathBuf,
        /// Its stream and incarnation.
        segment_says: String,
    },
    /// An archived segment cannot be used.
    #[error(
        "sequences {first}..={last} are archived at {path}, which cannot be used: {reason}; mount the archive, or put that file back ({stub} stands for it)"
    )]
    ArchiveUnusable {
        /// The file in the archive.
        path: PathBuf,
        /// What stands for it in the journal's folder.
        stub: PathBuf,
        /// The first sequence in it.
        first: u64,
        /// The last one.
        last: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The oldest segment is missing.
    #[error(
        "sequences {missing_from}..={missing_to} are missing before {oldest}: {path} says that they were not deleted; put the missing segments back"
    )]
    OldestMissing {
        /// The oldest segment that is there.
        oldest: PathBuf,
        /// The file `history`.
        path: PathBuf,
        missing_from: u64,
        missing_to: u64,
    },
    /// The newest segment is missing.
    #[error(
        "the segment from sequence {sequence} on is missing behind {newest}: {path} says that it was in use; put it back from a copy of this directory (a member of a cluster: `gapless cluster add --replace` instead)"
    )]
    NewestMissing {
        /// The newest segment that is there.
        newest: PathBuf,
        /// The file `history`.
        path: PathBuf,
        /// The first sequence of the missing one.
        sequence: u64,
    },
    /// All segments are missing.
    #[error(
        "all segments are missing in {directory}: {path} says that the journal began with sequence {first} and that its newest segment began with {newest}; put them back, or choose another directory"
    )]
    SegmentsGone {
        directory: PathBuf,
        /// The file `history`.
        path: PathBuf,
        /// The first sequence that must be there.
        first: u64,
        /// The first sequence of the newest segment.
        newest: u64,
    },
    /// A restore was interrupted.
    #[error("{path} says that `gapless journal restore` was interrupted here; run it again")]
    RestoreUnfinished {
        /// The file `history`.
        path: PathBuf,
    },
    /// A batch does not continue the order.
    #[error("a batch must begin with sequence {expected}, this one begins with {found}")]
    BatchSequence {
        /// The sequence that continues the order.
        expected: u64,
        /// The sequence that the caller gave.
        found: u64,
    },
    /// A batch is not made of whole frames.
    #[error("a batch of {batch_bytes} bytes is malformed at byte {offset}: {reason}")]
    BatchMalformed {
        /// Length of the batch.
        batch_bytes: usize,
        /// Where in the batch.
        offset: usize,
        reason: String,
    },
    /// A record of consensus makes a longer frame than the stream allows.
    #[error("a record makes a frame of {length_bytes} bytes, the stream's limit is {limit_bytes}")]
    RecordTooLong {
        /// The length of the record, header included.
        length_bytes: usize,
        limit_bytes: usize,
    },
    /// Each segment but the newest holds a frame, and in this one there is room for nothing else.
    #[error(
        "{segment} is full of records up to byte {position} without a frame among them; what is left is for a frame, which must come first"
    )]
    RecordsFull {
        segment: PathBuf,
        /// Where the next record would go.
        position: u64,
    },
    /// A truncation would cut frames that others have acted on.
    #[error("truncation after sequence {sequence} would cut released frames: {released} is released")]
    TruncatesReleased {
        sequence: u64,
        /// How far frames are released.
        released: u64,
    },
    /// The sequence is no longer, or was never, in this journal.
    #[error("sequence {sequence} is not in the journal {directory}, which holds {first}..={last}")]
    NotHeld { directory: PathBuf, sequence: u64, first: u64, last: u64 },
    /// The writer cut what this reader has read already.
    #[error(
        "the journal was truncated behind this reader: it stands at byte {position} of {segment}, the journal ends at {end}; replay again"
    )]
    Rewound {
        segment: PathBuf,
        /// Where the reader stands.
        position: u64,
        /// Where the journal ends now.
        end: u64,
    },
    /// Somebody has removed, exchanged, cut or overwritten a file that this process writes. Found by a look at it, once a second.
    #[error(
        "{path} {loss} while this process was writing it, and what it held may be lost: nothing may write to, cut or move the files of a running program. Move it back where it was moved; else an older copy of the directory goes on with `gapless journal restore` (a member of a cluster: never a copy, but `gapless cluster add --replace`; a relay or an archive: move its directory away, and it fetches again what its stream holds)"
    )]
    FileLost { path: PathBuf, loss: FileLoss },
    /// The device refused to take data; its contents are unknown from here on.
    #[error(
        "syncing {segment} failed: {source}. It is never retried, because the kernel may have dropped the data; nothing after the last synced sequence is safe"
    )]
    SyncFailed { segment: PathBuf, source: io::Error },
    /// The journal has failed before and takes nothing more.
    #[error("the journal has failed and takes nothing more: {reason}")]
    Poisoned {
        /// The first failure.
        reason: String,
    },
}

impl JournalError {
    /// Wraps an answer of the system, telling a full disk and a read-only file system from the rest.
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

    /// As [`JournalError::io`], where the length that was asked for is known.
    pub(crate) fn allocation(path: impl Into<PathBuf>, needed_bytes: u64, source: io::Error) -> Self {
        match Self::io("allocate", path, source) {
            Self::NoSpace { path, source, .. } => Self::NoSpace { path, needed_bytes, source },
            other => other,
        }
    }
}

/// What has become of a file that its process has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileLoss {
    /// Nothing has its name.
    #[error("was removed or moved")]
    Gone,
    /// Its name leads to another file.
    #[error("was exchanged for another file")]
    Exchanged,
    /// It is shorter than it was.
    #[error("was cut from {from_bytes} to {to_bytes} bytes")]
    Cut { from_bytes: u64, to_bytes: u64 },
    /// It has other bytes than were written.
    #[error("was written over, at or behind byte {position},")]
    Overwritten { position: u64 },
}

/// Why a file and the journal beside it do not come from one history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointFault {
    /// The file is another stream's, or another incarnation's.
    Identity {
        /// Stream and incarnation of the file.
        found: (u128, u64),
        /// Those of the journal.
        expected: (u128, u64),
    },
    /// The journal ends before the file's last frame.
    Ahead {
        /// The last frame of the journal.
        last_sequence: u64,
        /// Whether there are bytes after that frame which are no frame that belongs there.
        is_damaged: bool,
    },
    /// There is no journal.
    NoJournal,
    /// The journal's frame with this sequence has another time stamp.
    TimeStamp {
        /// That of the file, ns since the epoch.
        file_ns: u64,
        /// That of the journal, ns since the epoch.
        journal_ns: u64,
    },
}

impl PointFault {
    /// What helps.
    const fn advice(&self) -> &'static str {
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
