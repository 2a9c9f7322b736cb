//! [`Disk`]: simulates full and failing disks; a real journal has none.

use crate::JournalError;
use gapless_agent::folder::Folder;
use std::path::Path;
use std::sync::{LockResult, PoisonError};
use std::{fmt, io};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskOperation {
    Allocate,
    Write,
    Sync,
}

pub trait Disk: fmt::Debug + Send + Sync {
    /// Called before each operation.
    ///
    /// # Errors
    /// The error with which the operation fails, without being executed.
    fn check(&self, operation: DiskOperation) -> io::Result<()>;
}

/// Ignores poison: the values are consistent after each statement.
pub(crate) fn unpoisoned<T>(result: LockResult<T>) -> T {
    result.unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn sync_directory(directory: &Path) -> Result<(), JournalError> {
    let synced = Folder::open(directory).and_then(|folder| folder.sync());
    synced.map_err(|error| JournalError::io("sync the directory", directory, error))
}
