//! [`Disk`]: hook between a journal and its disk, for simulations of full and failing disks. A real journal has none.

use crate::JournalError;
use gapless_agent::folder::Folder;
use std::path::Path;
use std::sync::{LockResult, PoisonError};
use std::{fmt, io};

/// Request to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOperation {
    /// Allocates space for a file.
    Allocate,
    /// Writes into allocated space.
    Write,
    /// Syncs written data to the device.
    Sync,
}

/// A disk that may refuse requests.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Called before each operation.
    ///
    /// # Errors
    /// The error with which the operation fails, without being executed.
    fn check(&self, operation: DiskOperation) -> io::Result<()>;
}

/// Ignores a poisoned mutex: its value is consistent after each statement, so a panic does not invalidate it.
pub(crate) fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// Syncs a directory's entries to the device.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), JournalError> {
    let synced = Folder::open(directory).and_then(|folder| folder.sync());
    synced.map_err(|error| JournalError::io("sync the directory", directory, error))
}
