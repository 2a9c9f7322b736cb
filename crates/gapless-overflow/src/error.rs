//! [`OverflowError`]: what an elastic queue refuses and what it has lost; [`OptionsError`]: what none is made with.

use crate::priority::Priority;
use gapless_journal::JournalError;
use std::path::PathBuf;
use std::sync::Arc;

/// Why there is no room.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FullReason {
    /// The disk has room but has not taken yet what it has to; a moment later there is room.
    #[error("the disk takes records slower than they come")]
    Behind,
    /// The limit on disk is reached.
    #[error("the limit of {disk_bytes_max} bytes on disk is reached")]
    DiskLimit {
        /// The limit.
        disk_bytes_max: u64,
    },
    /// The disk, or the operating system, refuses; tried again each 100 ms.
    #[error("{reason}")]
    Refused {
        /// What it said, with the path.
        reason: Arc<str>,
    },
}

/// What no queue can be made with.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// A value out of range.
    #[error("{option}: {reason}")]
    Option {
        /// The option.
        option: &'static str,
        /// What was found, and what is allowed.
        reason: String,
    },
    /// The directory cannot be looked at.
    #[error("look for the directory {}: {source}", .path.display())]
    Directory {
        /// Which one.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}

/// What an elastic queue refuses and what it has lost.
#[derive(Debug, thiserror::Error)]
pub enum OverflowError {
    /// There is no room for the record, which was not taken. What was taken before is not touched.
    #[error(
        "the backlog {queue} is full, with {memory_bytes} bytes in memory and {disk_bytes} on disk: {reason}; take the record later, or raise its limits"
    )]
    Full {
        /// Whose it is.
        queue: Arc<str>,
        /// Bytes in memory.
        memory_bytes: usize,
        /// Bytes on disk.
        disk_bytes: u64,
        /// Which limit it is.
        reason: FullReason,
    },
    /// The record is longer than this queue takes.
    #[error("a record of {length_bytes} bytes is longer than the {limit_bytes} that the backlog {queue} takes")]
    TooLong {
        /// Whose it is.
        queue: Arc<str>,
        /// Its length.
        length_bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// Records that went to disk cannot be read back: they are lost. Said once, in their place in the order; the next
    /// `pop` of the class gives the record after them.
    #[error(
        "records {first_number} to {} of class {class:?} of the backlog {queue} are lost: {source}",
        first_number + records - 1
    )]
    Lost {
        /// Whose they are.
        queue: Arc<str>,
        /// Their class.
        class: Priority,
        /// The number that `push` gave the first of them.
        first_number: u64,
        /// How many they are.
        records: u64,
        /// Why, and where.
        source: Box<JournalError>,
    },
}
