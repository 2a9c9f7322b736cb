//! Where a log begins: `NAME.log.begin`, and the lock on the log under which that, the file and the kept ones change
//! together.

use gapless_agent::folder::Folder;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Older files of a log at most, whatever the file in force says; more are another's, and are not looked at.
pub const LOGS_KEPT_MAX: u32 = 100;
/// How often a lock is tried: it is held for some microseconds, unless somebody means harm.
const TRIES: u32 = 100;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(1);
/// Position at which a file begins at most: as long as a file can be.
const POSITION_MAX: u64 = i64::MAX as u64;
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

/// The files of one log. Its folder may belong to the user of the copy that writes it, who is not trusted.
#[derive(Debug)]
pub(super) struct LogFiles {
    pub folder: Folder,
    /// Without its folder.
    pub name: PathBuf,
}

impl LogFiles {
    /// `None` if there is no such folder.
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

    /// Opens the log itself; `None` if it is not there.
    pub fn open(&self, flags: OFlags) -> io::Result<Option<File>> {
        self.folder.open_file(&self.name, flags)
    }

    /// The position at which the file begins. Whatever stands there: a wrong one shows lines twice, or not. With the length of a file
    /// it is still a position.
    pub fn begin(&self) -> u64 {
        let mut text = String::new();
        if let Ok(Some(file)) = self.folder.open_file(behind(&self.name, "begin"), OFlags::RDONLY) {
            let _unreadable = file.take(DIGITS as u64 + 1).read_to_string(&mut text);
        }
        text.trim().parse().ok().filter(|begin| *begin <= POSITION_MAX).unwrap_or(0)
    }

    /// Writes the position at which the file begins. In one piece, over the one before: also on a full disk.
    pub fn write_begin(&self, position: u64) -> io::Result<()> {
        let log = self.open(OFlags::RDONLY)?.and_then(|log| log.metadata().ok());
        let mode = Mode::from_raw_mode(log.map_or(0o600, |log| log.mode() & 0o777));
        let name = behind(&self.name, "begin");
        let file = match self.folder.open_or_create_file(&name, OFlags::WRONLY, mode) {
            // Something else stands there.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => self.folder.create_file(&name, mode),
            opened => opened,
        }?;
        file.write_all_at(format!("{position:DIGITS$}\n").as_bytes(), 0)
    }
}

/// A log that is open, locked until it is dropped. Without its lock, where somebody does not let it go.
#[derive(Debug)]
pub(super) struct LockedLog {
    pub file: File,
}

impl LockedLog {
    /// Opens it for reading, and shares its lock; `None` if it is not there.
    pub fn shared(log: &LogFiles) -> io::Result<Option<Self>> {
        Self::open(log, OFlags::RDONLY, FlockOperation::NonBlockingLockShared)
    }

    /// Opens it for changing, with the lock alone.
    pub fn exclusive(log: &LogFiles) -> io::Result<Option<Self>> {
        Self::open(log, OFlags::RDWR, FlockOperation::NonBlockingLockExclusive)
    }

    fn open(log: &LogFiles, flags: OFlags, lock: FlockOperation) -> io::Result<Option<Self>> {
        let Some(file) = log.open(flags)? else { return Ok(None) };
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
