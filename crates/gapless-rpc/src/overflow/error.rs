//! `OverflowError`: refused and lost records of an elastic queue; `OptionsError`: invalid options.

use crate::overflow::priority::Priority;
use gapless_journal::JournalError;
use std::path::PathBuf;
use std::sync::Arc;

/// Reason for which there is no room.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FullReason {
    /// The disk has room but lags; there will be room a moment later.
    #[error("the disk takes records slower than they come")]
    Lagging,
    #[error("the limit of {disk_bytes_max} bytes on disk is reached")]
    DiskLimit { disk_bytes_max: u64 },
    /// The disk, or the operating system, refuses; retried each 100 ms.
    #[error("{reason}")]
    Refused {
        /// The system's message, with the path.
        reason: Arc<str>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    #[error("{option}: {reason}")]
    Option { option: &'static str, reason: String },
    /// The directory cannot be accessed.
    #[error("look for the directory {}: {source}", .path.display())]
    Directory { path: PathBuf, source: std::io::Error },
}

/// Refused or lost records of an elastic queue.
#[derive(Debug, thiserror::Error)]
pub enum OverflowError {
    /// The record was not taken; records in the queue are not affected.
    #[error(
        "the backlog {queue} is full, with {memory_bytes} bytes in memory and {disk_bytes} on disk: {reason}; retry \
         later, or raise its limits"
    )]
    Full { queue: Arc<str>, memory_bytes: usize, disk_bytes: u64, reason: FullReason },
    /// The record was not taken. Send less at a time, or raise the limit.
    #[error("a record of {length_bytes} bytes is longer than the {limit_bytes} that the backlog {queue} takes")]
    TooLong { queue: Arc<str>, length_bytes: usize, limit_bytes: usize },
    /// The records cannot be read back from disk. Returned once, in their place in the order; the next call returns the
    /// record after them.
    #[error(
        "records {first_number} to {} of class {class:?} of the backlog {queue} are lost: {source}",
        first_number + records - 1
    )]
    Lost { queue: Arc<str>, class: Priority, first_number: u64, records: u64, source: Box<JournalError> },
}
