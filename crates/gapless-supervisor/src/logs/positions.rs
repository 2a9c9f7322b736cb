//! `NAME.log.begin`: position at which a log file begins; a lock on the log protects both.

use gapless_agent::folder::Folder;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Limit of rotated files; files with higher numbers belong to others and are ignored.
pub const LOGS_KEPT_MAX: u32 = 100;
const LOCK_TRY_INTERVAL: Duration = Duration::from_millis(1);
/// Longer than a rotation or a read takes on a busy machine. A process that keeps the lock for longer is passed over.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// Wait of a thread with other work.
const LOCK_WAIT_SHORT: Duration = Duration::from_millis(100);
const POSITION_MAX: u64 = i64::MAX as u64;
/// Constant, so that a write does not change the file's length.
const DIGITS: usize = 20;

pub(super) fn kept(log: &Path, number: u32) -> PathBuf {
    with_suffix(log, &number.to_string())
}

pub(super) fn with_suffix(log: &Path, what: &str) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

/// The directory may belong to the instance's untrusted user.
#[derive(Debug)]
pub(super) struct LogFiles {
    pub folder: Folder,
    /// File name only.
    pub name: PathBuf,
}

impl LogFiles {
    /// `None` if the directory does not exist.
    pub fn of(log: &Path) -> io::Result<Option<Self>> {
        let (Some(folder), Some(name)) = (log.parent(), log.file_name()) else {
            return Err(io::Error::other("it has no name"));
        };
        match Folder::open(folder) {
            Ok(folder) => Ok(Some(Self { folder, name: name.into() })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens the log; `None` if it does not exist.
    pub fn open(&self, flags: OFlags) -> io::Result<Option<File>> {
        self.folder.open_file(&self.name, flags)
    }

    /// Position at which the file begins; 0 if unreadable or out of range, so that adding a file's length does not
    /// overflow. A wrong one only repeats or skips lines.
    pub fn begin(&self) -> u64 {
        let mut text = String::new();
        if let Ok(Some(file)) = self.folder.open_file(with_suffix(&self.name, "begin"), OFlags::RDONLY) {
            let _unreadable = file.take(DIGITS as u64 + 1).read_to_string(&mut text);
        }
        text.trim().parse().ok().filter(|begin| *begin <= POSITION_MAX).unwrap_or(0)
    }

    /// Overwrites the position at which the file begins, with a single write, which works on a full disk.
    pub fn write_begin(&self, position: u64) -> io::Result<()> {
        let log = self.open(OFlags::RDONLY)?.and_then(|log| log.metadata().ok());
        let mode = Mode::from_raw_mode(log.map_or(0o600, |log| log.mode() & 0o777));
        let name = with_suffix(&self.name, "begin");
        let file = match self.folder.open_or_create_file(&name, OFlags::WRONLY, mode) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => self.folder.create_file(&name, mode),
            opened => opened,
        }?;
        file.write_all_at(format!("{position:DIGITS$}\n").as_bytes(), 0)
    }
}

#[derive(Debug)]
pub(super) struct LockedLog {
    pub file: File,
}

impl LockedLog {
    /// Opens the log for reading with a shared lock; `None` if it does not exist.
    pub fn shared(log: &LogFiles) -> io::Result<Option<Self>> {
        Ok(Self::open(log, OFlags::RDONLY, FlockOperation::NonBlockingLockShared, LOCK_WAIT)?.map(|(locked, _)| locked))
    }

    /// Like [`LockedLog::shared`] with a short wait; `None` also if another process keeps the lock.
    pub fn shared_now(log: &LogFiles) -> io::Result<Option<Self>> {
        let opened = Self::open(log, OFlags::RDONLY, FlockOperation::NonBlockingLockShared, LOCK_WAIT_SHORT)?;
        Ok(opened.and_then(|(locked, is_free)| is_free.then_some(locked)))
    }

    /// Like [`LockedLog::shared`] with a short wait, then without the lock.
    pub fn shared_briefly(log: &LogFiles) -> io::Result<Option<Self>> {
        let opened = Self::open(log, OFlags::RDONLY, FlockOperation::NonBlockingLockShared, LOCK_WAIT_SHORT)?;
        Ok(opened.map(|(locked, _)| locked))
    }

    /// Opens the log for writing with an exclusive lock.
    pub fn exclusive(log: &LogFiles) -> io::Result<Option<Self>> {
        Ok(Self::open(log, OFlags::RDWR, FlockOperation::NonBlockingLockExclusive, LOCK_WAIT)?
            .map(|(locked, _)| locked))
    }

    /// Also returns whether no other process keeps the lock.
    fn open(log: &LogFiles, flags: OFlags, lock: FlockOperation, wait: Duration) -> io::Result<Option<(Self, bool)>> {
        let Some(file) = log.open(flags)? else { return Ok(None) };
        let begun = Instant::now();
        // Continues without a lock if the file system has none.
        while let Err(rustix::io::Errno::WOULDBLOCK) = flock(&file, lock) {
            if begun.elapsed() >= wait {
                return Ok(Some((Self { file }, false)));
            }
            std::thread::sleep(LOCK_TRY_INTERVAL);
        }
        Ok(Some((Self { file }, true)))
    }

    pub fn length(&self) -> io::Result<u64> {
        self.file.metadata().map(|file| file.len())
    }
}
