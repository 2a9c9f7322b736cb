//! Durable segments of frames: writing, recovery, replay, retention.
//!
//! | module | contents |
//! |---|---|
//! | [`history_check`] | check that a journal and a file next to it come from one history |
//! | [`inspect`] | [`inspect::info`] and [`inspect::verify`] |
//! | [`restore`] | [`JournalRestore`]: starts a new incarnation from a restored copy |
//! | [`archiving`] | [`archive`]: moves the oldest segments to an archive, where they stay readable |
//! | `unlinked` | [`UnlinkedSegment`]: frames in an unnamed file, which ends with its process |
//! | `test_frames` | frames for tests |
//! | `record_writer` | appends consensus records |
//! | `deletion` | deletes segments on request |
//! | `retention` | deletes the oldest segments |
//! | `rolling` | moves from one segment to the next |
//! | `truncation` | removes the newest frames, before others have acted on them |
//! | [`journal`] | [`Journal`], the only writer of a directory |
//! | [`syncer`], [`segment_preparer`] | [`Syncer`] and [`SegmentPreparer`], for helper threads |
//! | `recovery` | opens a journal: creates the first segment, or recovers the directory (decision 7) |
//! | [`recovery_report`] | [`RecoveryReport`]: findings of an opening, and removed bytes |
//! | [`reader`], [`replay`] | [`JournalReader`] and [`Replay`], without the lock |
//! | `removed_tail_files` | keeps the bytes that recovery removes under another name |
//! | `evaluation` | decides which bytes of the segments belong to the journal (decision 7) |
//! | `frame_batch` | consecutive checked frames, returned by a replay |
//! | `segment_maintenance` | work of the helper thread on segments, step by step |
//! | `file_watch` | ends a journal whose files are lost |
//! | `shared_journal` | state shared by the writer and its helper threads |
//! | `directory` | the lock, and the survey of the segments |
//! | [`records`] | [`ConsensusRecord`]: consensus records among the frames |
//! | `unpacking` | unpacks a compressed segment of an archive while it is read |
//! | `archived` | stub of an archived segment |
//! | `compressed` | a segment compressed by LZ4 |
//! | `history` | file with the journal's identity and its required segments |
//! | `segment_times` | time stamps on which neighbouring segments must agree |
//! | `own_file` | check that a file written in place has only one name |
//! | [`durable_file`] | [`FileReplacement`]: replaces a small file atomically |
//! | `file_check` | check that the files of a running writer still exist |
//! | `segment` | a segment file in the hands of its writer |
//! | [`options`] | [`JournalOptions`] and its defaults |
//! | `boot` | identity of the machine's boot, which decides which mark is good |
//! | `index` | from a sequence to a nearby position |
//! | `mapping` | mapped files |
//! | `mark` | two values that a crash cannot tear |
//! | `lock_holder` | holder of a journal's lock, for other programs |
//! | [`descriptor`] | layout of a segment |
//! | `scan` | checks consecutive frames |
//! | `wake` | wakes the helper thread |
//! | [`disk`] | [`Disk`]: a disk that may refuse, for simulations |
//! | [`error`] | [`JournalError`] |
//! | `write_buffer` | collects frames for `pwrite` |
//!
//! A journal stores the frames of one stream, byte for byte in the format of the window, in preallocated segments. Two
//! marks in each segment's header give the end of the frames that the operating system has (`journaled`) and that are
//! on the device (`synced`). Opening trusts the mark that is good on this boot of the machine, and never removes a
//! frame that it vouches for.

#![deny(unsafe_code)]

mod archived;
pub mod archiving;
mod boot;
mod compressed;
mod deletion;
pub mod descriptor;
mod directory;
pub mod disk;
pub mod durable_file;
pub mod error;
mod evaluation;
mod file_check;
mod file_watch;
mod frame_batch;
mod history;
pub mod history_check;
mod index;
pub mod inspect;
pub mod journal;
mod lock_holder;
mod mapping;
mod mark;
pub mod options;
mod own_file;
pub mod reader;
mod record_writer;
pub mod records;
mod recovery;
pub mod recovery_report;
mod removed_tail_files;
pub mod replay;
pub mod restore;
mod retention;
mod rolling;
mod scan;
mod segment;
mod segment_maintenance;
pub mod segment_preparer;
mod segment_times;
mod shared_journal;
pub mod syncer;
#[cfg(test)]
mod test_frames;
mod truncation;
mod unlinked;
mod unpacking;
mod wake;
mod write_buffer;

pub use archived::ArchiveFormat;
pub use archiving::{ArchiveOptions, ArchiveReport, ArchivedSegment, archive};
pub use boot::BootId;
pub use directory::DirectoryLock;
pub use disk::{Disk, DiskOperation};
pub use durable_file::{FileReplacement, replace_file};
pub use error::{FileLoss, FrameFault, JournalError, MarkName, PointFault};
pub use frame_batch::FrameBatch;
pub use inspect::{JournalInfo, SegmentInfo, VerifyReport, VerifyVerdict, info, verify};
pub use journal::Journal;
pub use lock_holder::lock_holder;
pub use options::{FilePoint, Flush, JournalEnvironment, JournalOptions, RecoveryCheck, Retention, Zeroing};
pub use own_file::own_file;
pub use reader::JournalReader;
pub use records::{ConsensusRecord, ConsensusRecords, ReplayStop};
pub use recovery_report::{RecoveryReport, RemovedTail, RepairedMark};
pub use replay::Replay;
pub use restore::JournalRestore;
pub use segment_preparer::SegmentPreparer;
pub use syncer::Syncer;
pub use unlinked::UnlinkedSegment;
