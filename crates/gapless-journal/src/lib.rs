//! Durable segments of frames: writing, recovery, replay, retention.
//!
//! | module | what lives there |
//! |---|---|
//! | [`history_check`] | whether a file beside a journal and the journal come from one history |
//! | [`inspect`] | [`inspect::info`] and [`inspect::verify`] |
//! | [`restore`] | [`Restore`]: a copy that was put back becomes a new incarnation |
//! | [`archiving`] | [`archive`]: the oldest segments are moved elsewhere, where they stay readable |
//! | `unlinked` | [`UnlinkedSegment`]: frames in a file without a name, which ends with its process |
//! | `test_frames` | frames for the tests |
//! | `record_writer` | appending records of consensus |
//! | `deletion` | deletes the segments that somebody has asked to be deleted |
//! | `retention` | deletes the oldest segments |
//! | `rolling` | from one segment to the next |
//! | `truncation` | taking back frames that nobody has acted on yet |
//! | [`journal`] | [`Journal`], the one writer of a directory |
//! | [`syncer`], [`segment_preparer`] | [`Syncer`] and [`SegmentPreparer`], for helper threads |
//! | `recovery` | opening a journal: the first segment is made, or the directory is recovered (decision 7) |
//! | [`recovery_report`] | [`RecoveryReport`]: the findings and cuts of an opening |
//! | [`reader`], [`replay`] | [`JournalReader`] and [`Replay`], without the lock |
//! | `cut_files` | the bytes that recovery cuts are kept under another name |
//! | `evaluation` | which bytes of the segments belong to the journal (decision 7) |
//! | `frame_batch` | a run of checked frames, as replay hands them out |
//! | `segment_maintenance` | the work on segments beside the writer, step by step |
//! | `file_watch` | ends a journal whose files are lost |
//! | `shared_journal` | the shared state of the writer and its helper threads |
//! | `directory` | the lock, and the survey of the segments |
//! | [`records`] | [`Record`]: the records of consensus, among the frames |
//! | `unpacking` | a compressed segment of an archive, unpacked as it is read |
//! | `archived` | the stub of a segment that lies elsewhere |
//! | `compressed` | a segment compressed by LZ4 |
//! | `history` | the file that names the journal and the segments which must be there |
//! | `segment_times` | by which time stamps two neighbouring segments know each other |
//! | `own_file` | what is written in place has one name |
//! | [`durable_file`] | [`FileReplacement`]: a small file's content is replaced as a whole |
//! | `file_check` | whether the files that are being written are still there |
//! | `segment` | one segment file as its writer holds it |
//! | [`options`] | [`JournalOptions`] and its defaults |
//! | `boot` | which boot of the machine this is: decides which mark is good |
//! | `index` | from a sequence to a position near it |
//! | `mapping` | mapped files |
//! | `mark` | two values that a crash cannot tear |
//! | `lock_holder` | who holds the lock of a journal, asked from outside |
//! | [`descriptor`] | the layout of a segment |
//! | `scan` | checking frames one after the other |
//! | `wake` | waking the helper thread |
//! | [`disk`] | [`Disk`]: one that may refuse, for simulations |
//! | [`error`] | [`JournalError`] |
//! | `write_buffer` | collects frames for `pwrite` |
//!
//! A journal keeps the frames of one stream, byte for byte as they stand in the window, in
//! preallocated segments. Two marks in each segment's header say how far frames are in the operating
//! system's hands (`journaled`) and on the device (`synced`); opening trusts the one that is good on
//! this boot of the machine and never shortens what it vouches for.

#![deny(unsafe_code)]

mod archived;
pub mod archiving;
mod boot;
mod compressed;
mod cut_files;
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

pub use archived::ArchiveForm;
pub use archiving::{ArchiveOptions, ArchiveReport, ArchivedSegment, archive};
pub use boot::BootId;
pub use directory::DirectoryLock;
pub use disk::{Disk, DiskWork};
pub use durable_file::{FileReplacement, replace_file};
pub use error::{FileLoss, FrameFault, JournalError, MarkName, PointFault};
pub use frame_batch::FrameBatch;
pub use inspect::{JournalInfo, SegmentInfo, Verdict, VerifyReport, info, verify};
pub use journal::Journal;
pub use lock_holder::lock_holder;
pub use options::{Environment, FilePoint, Flush, JournalOptions, RecoveryCheck, Retention, Zeroing};
pub use own_file::own_file;
pub use reader::JournalReader;
pub use records::{Record, Records, ReplayStop};
pub use recovery_report::{Cut, MendedMark, RecoveryReport};
pub use replay::Replay;
pub use restore::Restore;
pub use segment_preparer::SegmentPreparer;
pub use syncer::Syncer;
pub use unlinked::UnlinkedSegment;
