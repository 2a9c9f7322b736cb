//! [`HeldLock`]: a lock that ends with the last process that has it, and [`LockRecord`]: what stands in its file.
//!
//! A lock is `flock`, which belongs to the open file: whoever inherits the descriptor holds it, too. To ask whether it is
//! held one has to take it, shared and for a moment; so that this refuses nobody, it is tried for some milliseconds.
//!
//! A descriptor that programs inherit is open for reading only, which is enough for `flock`: they may run as another user, and whoever
//! writes the record says which process is adopted and killed as the copy.

use super::files::{self, PRIVATE_FILE};
use super::process::ProcessIdentity;
use crate::clock::unix_ms;
use crate::error::SupervisorError;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock};
use rustix::io::{Errno, FdFlags};
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

/// The file of a lock, open twice.
#[derive(Debug)]
pub(super) struct LockFile {
    /// For the lock: for reading, so that it can be lent to programs of other users.
    pub lock: File,
    /// For the record, which only this process writes.
    record: File,
}

impl LockFile {
    /// Opens the file, which it makes if need be.
    pub fn open(path: &Path, inherited: Inherited) -> Result<Self, SupervisorError> {
        let record = files::open_to_write(path, OFlags::empty(), PRIVATE_FILE)?;
        let failed = || SupervisorError::system(format!("opening {} for its lock", path.display()));
        // The same file, whatever has its name by now.
        let same = format!("/proc/self/fd/{}", record.as_raw_fd());
        let lock = rustix::fs::open(same, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed())?;
        if inherited == Inherited::Yes {
            rustix::io::fcntl_setfd(&lock, FdFlags::empty()).map_err(failed())?;
        }
        Ok(Self { lock: lock.into(), record: record.into() })
    }

    /// Writes who has the lock.
    pub fn write(&self, record: &LockRecord) -> Result<(), SupervisorError> {
        record.write(&self.record)
    }
}

/// A lock that this process has taken. It ends when this is dropped and no other process has inherited it.
#[derive(Debug)]
pub struct HeldLock {
    file: LockFile,
}

impl HeldLock {
    /// Takes the lock of this file, which it makes if need be; `None` if somebody else holds it.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    pub fn take(path: &Path, inherited: Inherited) -> Result<Option<Self>, SupervisorError> {
        let failed = || SupervisorError::system(format!("locking {}", path.display()));
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(PAUSE);
            }
            let file = LockFile::open(path, inherited)?;
            match flock(&file.lock, FlockOperation::NonBlockingLockExclusive) {
                // Of a file that was removed meanwhile, it would be a lock that nobody else sees.
                Ok(()) if is_at(&file.lock, path) => return Ok(Some(Self { file })),
                Ok(()) | Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(failed()(errno)),
            }
        }
        Ok(None)
    }

    /// What the one before has left.
    pub fn previous(&self) -> Option<LockRecord> {
        LockRecord::read(&self.file.lock)
    }

    /// Whether its file is still this one in a directory: of one that was removed, nobody else sees that it is held.
    pub(super) fn is_in(&self, directory: BorrowedFd<'_>, name: &str) -> bool {
        let named = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let held = rustix::fs::fstat(&self.file.lock);
        matches!((named, held), (Ok(named), Ok(held)) if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino))
    }

    /// Writes who has it.
    ///
    /// # Errors
    /// The system's, such as a full disk, if there was no record before.
    pub fn record(&self, record: &LockRecord) -> Result<(), SupervisorError> {
        self.file.write(record)
    }
}

impl AsFd for HeldLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.lock.as_fd()
    }
}

/// Device and inode.
fn identity(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|found| (found.dev(), found.ino()))
}

fn is_at(opened: &File, path: &Path) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_directory::SingletonLock;
    use gapless_testkit::process::Process;
    use std::process::{Command, Stdio};

    /// How a new program that inherits this process's descriptors has a file open: the access modes.
    fn inherited(path: &Path) -> Vec<OFlags> {
        let program = Process::start_as(Command::new("sleep").arg("1000").stdout(Stdio::null()));
        let process = Path::new("/proc").join(program.pid().as_raw_pid().to_string());
        let descriptors = std::fs::read_dir(process.join("fd")).unwrap().flatten();
        let named = descriptors.filter(|found| std::fs::read_link(found.path()).is_ok_and(|target| target == path));
        let modes = named.map(|found| {
            let text = std::fs::read_to_string(process.join("fdinfo").join(found.file_name())).unwrap();
            let flags = text.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
            OFlags::from_bits_retain(u32::from_str_radix(flags.trim(), 8).unwrap()) & OFlags::RWMODE
        });
        modes.collect()
    }

    /// Its program may run as another user, who could name any process in the record.
    #[test]
    fn an_inherited_lock_is_only_readable() {
        let folder = tempfile::tempdir().unwrap();
        let [copy, role, singleton] = ["copy", "role", "singleton"].map(|name| folder.path().join(name));
        let held = HeldLock::take(&copy, Inherited::Yes).unwrap().unwrap();
        held.record(&LockRecord::of_this(1).unwrap()).unwrap();
        let _role = HeldLock::take(&role, Inherited::No).unwrap().unwrap();
        let active = SingletonLock::open(&singleton).unwrap();
        assert!(active.try_take().unwrap());
        active.record(&LockRecord::of_this(1).unwrap()).unwrap();
        assert_eq!(inherited(&copy), [OFlags::RDONLY]);
        assert_eq!(inherited(&singleton), [OFlags::RDONLY]);
        assert_eq!(inherited(&role), []);
    }
}
