//! Where a log begins: `NAME.log.begin`, and the lock on the log under which that, the file and the kept ones change
//! together.

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a lock is tried: it is held for some microseconds, unless somebody means harm.
const TRIES: u32 = 100;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(1);
/// Digits of a position.
const DIGITS: usize = 20;

/// `NAME.log.1` of `NAME.log`, and so on.
pub(super) fn kept(log: &Path, number: u32) -> PathBuf {
    behind(log, &number.to_string())
}

/// A file beside a log.
pub(super) fn behind(log: &Path, what: &str) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".");
    name.push(what);
    name.into()
}

/// A log that is open, locked until it is dropped. Without its lock, where somebody does not let it go.
#[derive(Debug)]
pub(super) struct LockedLog {
    pub file: File,
}

impl LockedLog {
    /// Opens it for reading, and shares its lock; `None` if it is not there.
    pub fn shared(log: &Path) -> io::Result<Option<Self>> {
        Self::open(log, OFlags::RDONLY, FlockOperation::NonBlockingLockShared)
    }

    /// Opens it for changing, with the lock alone.
    pub fn exclusive(log: &Path) -> io::Result<Option<Self>> {
        Self::open(log, OFlags::RDWR, FlockOperation::NonBlockingLockExclusive)
    }

    fn open(log: &Path, flags: OFlags, lock: FlockOperation) -> io::Result<Option<Self>> {
        let Some(file) = open(log, flags)? else { return Ok(None) };
        for _ in 0..TRIES {
            match flock(&file, lock) {
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                // Where there are no locks it is as good as it can be.
                _ => break,
            }
        }
        Ok(Some(Self { file }))
    }

    /// Bytes in the file.
    pub fn length(&self) -> io::Result<u64> {
        self.file.metadata().map(|file| file.len())
    }
}

/// Opens a log; `None` if it is not there. No link, and nothing that could hold up its reader.
pub(super) fn open(log: &Path, flags: OFlags) -> io::Result<Option<File>> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file: File = match rustix::fs::open(log, flags, Mode::empty()) {
        Ok(file) => file.into(),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(io::Error::other("it is no file")) }
}

/// The position at which the file begins. Whatever stands there: a wrong one shows lines twice, or not.
pub(super) fn begin(log: &Path) -> u64 {
    let text = std::fs::read_to_string(behind(log, "begin")).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Writes the position at which the file begins. In one piece, over the one before: also on a full disk.
pub(super) fn write_begin(log: &Path, position: u64) -> io::Result<()> {
    let mode = open(log, OFlags::RDONLY)?.and_then(|log| log.metadata().ok()).map_or(0o600, |log| log.mode() & 0o777);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file: File = rustix::fs::open(behind(log, "begin"), flags, Mode::from_raw_mode(mode))?.into();
    file.write_all_at(format!("{position:DIGITS$}\n").as_bytes(), 0)
}
