//! [`HeldLock`]: a lock by `flock`, so it belongs to the open file description and lasts as long as any process that
//! has inherited it. Checking a lock takes it shared for a moment; takers therefore retry for some milliseconds.
//! Inherited descriptors are read-only: programs of other users must not write the record ([`LockRecord`]), because the
//! recorded process is adopted and killed as the instance.

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

/// Record padded with spaces to a constant length: one write replaces it even on a full disk.
const RECORD_BYTES: usize = 512;
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// The process that has taken the lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRecord {
    /// Incarnation of an instance; 0 for a role.
    pub incarnation: u64,
    #[serde(flatten)]
    pub process: ProcessIdentity,
    pub unix_time_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct LockFileContent {
    #[serde(flatten)]
    record: LockRecord,
    /// Device and inode; they differ if the directory was copied.
    #[serde(default)]
    file: Option<(u64, u64)>,
}

impl LockRecord {
    /// Record of this process at this time.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn of_this(incarnation: u64) -> Result<Self, SupervisorError> {
        Ok(Self { incarnation, process: ProcessIdentity::of_this()?, unix_time_ms: unix_ms() })
    }

    pub(super) fn write(&self, file: &File) -> Result<(), SupervisorError> {
        let written = LockFileContent { record: self.clone(), file: identity(file) };
        let mut bytes = serde_json::to_vec(&written).expect("a record has nothing that JSON has not");
        assert!(bytes.len() <= RECORD_BYTES, "a boot's identifier has some dozen bytes");
        bytes.resize(RECORD_BYTES, b' ');
        file.write_all_at(&bytes, 0).map_err(SupervisorError::io("writing who has a lock"))
    }

    pub(super) fn read(file: &File) -> Option<Self> {
        let mut bytes = [0; RECORD_BYTES];
        let length = file.read_at(&mut bytes, 0).ok()?;
        let written: LockFileContent = serde_json::from_slice(&bytes[..length]).ok()?;
        let is_own = written.file.is_none() || written.file == identity(file);
        is_own.then_some(written.record)
    }
}

/// Whether children and exec'd programs hold the lock as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inheritance {
    Yes,
    No,
}

#[derive(Debug)]
pub(super) struct LockFile {
    /// Read-only, so that programs of other users can inherit it.
    pub lock: File,
    record: File,
}

impl LockFile {
    /// Opens the file, and creates it if necessary.
    pub fn open(path: &Path, inherited: Inheritance) -> Result<Self, SupervisorError> {
        let record = files::open_to_write(path, OFlags::empty(), PRIVATE_FILE)?;
        let failed = || SupervisorError::system(format!("opening {} for its lock", path.display()));
        // Reopened by descriptor, so that it is the same file even if the path has changed.
        let same = format!("/proc/self/fd/{}", record.as_raw_fd());
        let lock = rustix::fs::open(same, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed())?;
        if inherited == Inheritance::Yes {
            rustix::io::fcntl_setfd(&lock, FdFlags::empty()).map_err(failed())?;
        }
        Ok(Self { lock: lock.into(), record: record.into() })
    }

    pub fn write(&self, record: &LockRecord) -> Result<(), SupervisorError> {
        record.write(&self.record)
    }
}

/// A lock taken by this process, until this is dropped and all inherited descriptors are closed.
#[derive(Debug)]
pub struct HeldLock {
    file: LockFile,
}

impl HeldLock {
    /// Takes the lock of this file, created if necessary; `None` if another process holds it.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    pub fn take(path: &Path, inherited: Inheritance) -> Result<Option<Self>, SupervisorError> {
        let failed = || SupervisorError::system(format!("locking {}", path.display()));
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(PAUSE);
            }
            let file = LockFile::open(path, inherited)?;
            match flock(&file.lock, FlockOperation::NonBlockingLockExclusive) {
                // A lock on a removed file would be invisible to others.
                Ok(()) if is_at(&file.lock, path) => return Ok(Some(Self { file })),
                Ok(()) | Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(failed()(errno)),
            }
        }
        Ok(None)
    }

    pub fn previous(&self) -> Option<LockRecord> {
        LockRecord::read(&self.file.lock)
    }

    pub(super) fn is_in(&self, directory: BorrowedFd<'_>, name: &str) -> bool {
        let named = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let held = rustix::fs::fstat(&self.file.lock);
        matches!((named, held), (Ok(named), Ok(held)) if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino))
    }

    /// Writes the record.
    ///
    /// # Errors
    /// I/O errors; a full disk only without a previous record.
    pub fn record(&self, record: &LockRecord) -> Result<(), SupervisorError> {
        self.file.write(record)
    }
}

impl AsFd for HeldLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.lock.as_fd()
    }
}

fn identity(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|found| (found.dev(), found.ino()))
}

fn is_at(opened: &File, path: &Path) -> bool {
    let Ok(opened) = rustix::fs::fstat(opened) else { return false };
    std::fs::symlink_metadata(path).is_ok_and(|named| (named.dev(), named.ino()) == (opened.st_dev, opened.st_ino))
}

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

    #[test]
    fn inherited_lock_is_read_only() {
        let folder = tempfile::tempdir().unwrap();
        let [instance, role, singleton] = ["instance", "role", "singleton"].map(|name| folder.path().join(name));
        let held = HeldLock::take(&instance, Inheritance::Yes).unwrap().unwrap();
        held.record(&LockRecord::of_this(1).unwrap()).unwrap();
        let _role = HeldLock::take(&role, Inheritance::No).unwrap().unwrap();
        let active = SingletonLock::open(&singleton).unwrap();
        assert!(active.try_take().unwrap());
        active.record(&LockRecord::of_this(1).unwrap()).unwrap();
        assert_eq!(inherited(&instance), [OFlags::RDONLY]);
        assert_eq!(inherited(&singleton), [OFlags::RDONLY]);
        assert_eq!(inherited(&role), []);
    }
}
