//! [`HeldLock`]: a lock that ends with the last process that has it, and [`LockRecord`]: what stands in its file.
//!
//! A lock is `flock`, which belongs to the open file: whoever inherits the descriptor holds it, too. To ask whether it is
//! held one has to take it, shared and for a moment; so that this refuses nobody, it is tried for some milliseconds.

use super::files::{self, PRIVATE_FILE};
use super::process::ProcessIdentity;
use crate::clock::unix_ms;
use crate::error::SupervisorError;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

/// Length of a record with the spaces behind it, bytes: written over the one before in one piece, also on a full disk.
const RECORD_BYTES: usize = 512;
/// How often a lock is tried that somebody may only be asking about.
const TRIES: u32 = 20;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(1);

/// What stands in a lock's file: who has taken it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRecord {
    /// Of a copy: the incarnation of its intent; else 0.
    pub incarnation: u64,
    /// The process.
    #[serde(flatten)]
    pub process: ProcessIdentity,
    /// When, in milliseconds since 1970.
    pub unix_time_ms: u64,
}

/// A record as it stands in its file.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    record: LockRecord,
    /// Device and inode of the file: in a copy of the directory it is of the one that was copied. Earlier programs write none.
    #[serde(default)]
    file: Option<(u64, u64)>,
}

impl LockRecord {
    /// Of the process that asks, now.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn of_this(incarnation: u64) -> Result<Self, SupervisorError> {
        Ok(Self { incarnation, process: ProcessIdentity::of_this()?, unix_time_ms: unix_ms() })
    }

    /// Writes it over the one before.
    pub(super) fn write(&self, file: &File) -> Result<(), SupervisorError> {
        let written = Written { record: self.clone(), file: identity(file) };
        let mut bytes = serde_json::to_vec(&written).expect("a record has nothing that JSON has not");
        assert!(bytes.len() <= RECORD_BYTES, "a boot's identifier has some dozen bytes");
        bytes.resize(RECORD_BYTES, b' ');
        file.write_all_at(&bytes, 0).map_err(SupervisorError::io("writing who has a lock"))
    }

    /// What stands in this file; `None` of a new or damaged one, of the copy of another one, and while another is written.
    pub(super) fn read(file: &File) -> Option<Self> {
        let mut bytes = [0; RECORD_BYTES];
        let length = file.read_at(&mut bytes, 0).ok()?;
        let written: Written = serde_json::from_slice(&bytes[..length]).ok()?;
        let is_own = written.file.is_none() || written.file == identity(file);
        is_own.then_some(written.record)
    }
}

/// Whether the programs that a process becomes, and the children that it makes, hold its lock, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherited {
    /// They do.
    Yes,
    /// It ends with the process that has taken it.
    No,
}

/// A lock that this process has taken. It ends when this is dropped and no other process has inherited it.
#[derive(Debug)]
pub struct HeldLock {
    file: File,
}

impl HeldLock {
    /// Takes the lock of this file, which it makes if need be; `None` if somebody else holds it.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    pub fn take(path: &Path, inherited: Inherited) -> Result<Option<Self>, SupervisorError> {
        let failed = || SupervisorError::system(format!("locking {}", path.display()));
        let flags = match inherited {
            Inherited::Yes => OFlags::empty(),
            Inherited::No => OFlags::CLOEXEC,
        };
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(PAUSE);
            }
            let opened = files::open_to_write(path, flags, PRIVATE_FILE)?;
            match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
                // Of a file that was removed meanwhile, it would be a lock that nobody else sees.
                Ok(()) if is_at(&opened, path) => return Ok(Some(Self { file: opened.into() })),
                Ok(()) | Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(failed()(errno)),
            }
        }
        Ok(None)
    }

    /// What the one before has left.
    pub fn previous(&self) -> Option<LockRecord> {
        LockRecord::read(&self.file)
    }

    /// Whether its file is still this one in a directory: of one that was removed, nobody else sees that it is held.
    pub(super) fn is_in(&self, directory: BorrowedFd<'_>, name: &str) -> bool {
        let named = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let held = rustix::fs::fstat(&self.file);
        matches!((named, held), (Ok(named), Ok(held)) if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino))
    }

    /// Writes who has it.
    ///
    /// # Errors
    /// The system's, such as a full disk, if there was no record before.
    pub fn record(&self, record: &LockRecord) -> Result<(), SupervisorError> {
        record.write(&self.file)
    }
}

impl AsFd for HeldLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Device and inode.
fn identity(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|found| (found.dev(), found.ino()))
}

fn is_at(opened: &OwnedFd, path: &Path) -> bool {
    let Ok(opened) = rustix::fs::fstat(opened) else { return false };
    std::fs::symlink_metadata(path).is_ok_and(|named| (named.dev(), named.ino()) == (opened.st_dev, opened.st_ino))
}

/// Whether anybody holds the lock of this file.
pub(super) fn is_held(file: &File) -> Result<bool, SupervisorError> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                let failed = SupervisorError::system("unlocking what was only asked about");
                return flock(file, FlockOperation::Unlock).map(|()| false).map_err(failed);
            }
            Err(Errno::WOULDBLOCK) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(SupervisorError::system("asking whether a lock is held")(errno)),
        }
    }
}
