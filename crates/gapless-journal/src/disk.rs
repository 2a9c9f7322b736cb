//! [`Disk`]: stands between a journal and its disk, so that a simulation says when the disk is full or fails. A journal
//! on a machine has none.

use crate::JournalError;
use crate::own_file::own_file;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt;
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
    File::open(directory)
        .and_then(|opened| opened.sync_all())
        .map_err(|error| JournalError::io("sync the directory", directory, error))
}

/// Opens a file to change it in place: a copy of its own, if it has several names.
pub(crate) fn open_to_write(path: &Path) -> Result<File, JournalError> {
    own_file(path).map_err(|error| JournalError::io("copy, because it has several names,", path, error))?;
    let opened = File::options().read(true).write(true).open(path);
    opened.map_err(|error| JournalError::io("open for writing", path, error))
}

/// Bytes of a small file at most.
const SMALL_BYTES_MAX: u64 = 64 << 10;

/// Reads a small file of text.
///
/// # Errors
/// Those of an open, what is no regular file or no text, and that it is longer than 64 KiB.
pub fn read_small_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.take(SMALL_BYTES_MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 > SMALL_BYTES_MAX {
        true => Err(io::Error::other(format!("it is longer than {SMALL_BYTES_MAX} bytes"))),
        false => Ok(text),
    }
}

/// Opens a regular file for reading. Nothing else is waited for: the open of a pipe with nobody behind it would never end.
///
/// # Errors
/// Those of an open, and that something else stands there.
pub fn open_regular(path: &Path) -> std::io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(std::io::Error::other("it is no regular file; remove it, and put back what was there"))
}
