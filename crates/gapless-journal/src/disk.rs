//! [`Disk`]: stands between a journal and its disk, so that a simulation says when the disk is full or fails. A journal
//! on a machine has none.

use crate::JournalError;
use gapless_agent::folder::Folder;
use std::path::Path;
use std::sync::{LockResult, PoisonError};
use std::{fmt, io};

/// A request to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskWork {
    /// Room for a file.
    Allocate,
    /// To take bytes, where there is room for them.
    Write,
    /// To put on the device what it was given.
    Sync,
}

/// A disk that may refuse.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Asked before each work.
    ///
    /// # Errors
    /// The error that the work ends with, instead of being done.
    fn ask(&self, work: DiskWork) -> io::Result<()>;
}

/// A mutex poisoned by a panic guards values that are whole after each statement, so its content is used all the same.
pub(crate) fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// Puts a directory's entries on the device.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), JournalError> {
    let synced = Folder::open(directory).and_then(|folder| folder.sync());
    synced.map_err(|error| JournalError::io("sync the directory", directory, error))
}
