//! Durable segments of frames: writing, recovery, replay, retention.
//!
//! | module | what lives there |
//! |---|---|
//! | [`descriptor`] | the layout of a segment |
//! | [`options`] | [`JournalOptions`] and its defaults |
//! | [`journal`] | [`Journal`], the one writer of a directory |
//! | [`syncer`], [`preparer`] | [`Syncer`] and [`Preparer`], for helper threads |
//! | [`recovery`] | [`RecoveryReport`]: what opening found and cut (decision D7) |
//! | [`reader`], [`replay`] | [`JournalReader`] and [`Replay`], without the lock |
//! | [`records`] | [`Record`]: what consensus keeps, among the frames |
//! | [`disk`] | [`Disk`]: one that may refuse, for simulations |
//! | [`points`] | [`FilePoint`]: what files beside a journal say of it |
//! | [`inspect`] | [`inspect::info`] and [`inspect::verify`] |
//! | [`restore`] | [`Restore`]: a copy that was put back becomes a new incarnation |
//! | [`error`] | [`JournalError`] |
//!
//! A journal keeps the frames of one stream, byte for byte as they stand in the window, in
//! preallocated segments. Two marks in each segment's header say how far frames are in the operating
//! system's hands (`journaled`) and on the device (`synced`); opening trusts the one that is good on
//! this boot of the machine and never shortens what it vouches for.

#![deny(unsafe_code)]

mod boot;
mod cutting;
pub mod descriptor;
mod directory;
pub mod disk;
pub mod error;
mod evaluation;
#[cfg(test)]
mod fixture;
mod frame_batch;
mod history;
mod index;
pub mod inspect;
pub mod journal;
mod mapping;
mod mark;
pub mod options;
pub mod points;
pub mod preparer;
pub mod reader;
mod record_writer;
pub mod records;
pub mod recovery;
pub mod replay;
pub mod restore;
mod retention;
mod rolling;
mod scan;
mod segment;
mod shared;
pub mod syncer;
mod times;
mod truncation;
mod wake;
mod works;
mod write_buffer;

pub use boot::BootId;
pub use directory::DirectoryLock;
pub use disk::{Disk, DiskWork};
pub use error::{FrameFault, JournalError, MarkName};
pub use frame_batch::FrameBatch;
pub use inspect::{JournalInfo, SegmentInfo, Verdict, VerifyReport, info, verify};
pub use journal::Journal;
pub use options::{Environment, Flush, JournalOptions, RecoveryCheck, Retention};
pub use points::{FilePoint, PointFault};
pub use preparer::Preparer;
pub use reader::JournalReader;
pub use records::{Record, Records};
pub use recovery::{Cut, RecoveryReport};
pub use replay::{Replay, ReplayStop};
pub use restore::Restore;
pub use syncer::Syncer;
