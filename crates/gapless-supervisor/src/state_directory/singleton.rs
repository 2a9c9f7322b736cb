//! Inherited by exec and fork, the lock ends with the active instance and its descendants; the kernel then hands it to
//! a waiting launcher, even without supervisor and guardian.

use super::lock::{Inheritance, LockFile, LockRecord};
use crate::error::SupervisorError;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Lock of a singleton: opened, and held after [`SingletonLock::wait`] or [`SingletonLock::try_take`].
#[derive(Debug)]
pub struct SingletonLock {
    file: LockFile,
}

impl SingletonLock {
    /// Opens or creates the file; children and exec'd programs inherit it.
    pub fn open(path: &Path) -> Result<Self, SupervisorError> {
        Ok(Self { file: LockFile::open(path, Inheritance::Yes)? })
    }

    /// Takes the lock if it is free; false if not.
    pub fn try_take(&self) -> Result<bool, SupervisorError> {
        loop {
            match flock(&self.file.lock, FlockOperation::NonBlockingLockExclusive) {
                // The previous holder may have closed it and still be alive.
                Ok(()) => {
                    return Ok(
                        LockRecord::read(&self.file.lock).is_none_or(|last| matches!(last.process.open(), Ok(None)))
                    );
                }
                Err(Errno::WOULDBLOCK) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(SupervisorError::system("taking the lock of a singleton")(errno)),
            }
        }
    }

    /// Waits without timeout for the lock, and for the end of a holder that has closed its descriptor.
    ///
    /// # Errors
    /// I/O errors; the file was removed in the meantime.
    pub fn wait(&self) -> Result<(), SupervisorError> {
        loop {
            match flock(&self.file.lock, FlockOperation::LockExclusive) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(SupervisorError::system("waiting for the lock of a singleton")(errno)),
            }
        }
        let links =
            self.file.lock.metadata().map_err(SupervisorError::io("looking at the lock of a singleton"))?.nlink();
        if links == 0 {
            return Err(SupervisorError::Refused("the lock of its singleton was removed".to_owned()));
        }
        while let Some(last) = LockRecord::read(&self.file.lock)
            && let Some(pidfd) = last.process.open()?
        {
            // On EINTR the loop checks again.
            let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None);
        }
        Ok(())
    }

    pub fn record(&self, record: &LockRecord) -> Result<(), SupervisorError> {
        self.file.write(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::process::Process;
    use std::process::{Command, Stdio};

    #[test]
    fn lock_passes_on_after_heirs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let first = SingletonLock::open(&path).unwrap();
        assert!(first.try_take().unwrap());
        let inherited = rustix::io::dup(&first.file.lock).unwrap();
        let mut heir =
            Process::start_as(Command::new("sleep").arg("1000").stdin(Stdio::from(inherited)).stdout(Stdio::null()));
        let second = SingletonLock::open(&path).unwrap();
        assert!(!second.try_take().unwrap());
        drop(first);
        assert!(!second.try_take().unwrap(), "the heir is alive");
        heir.kill();
        heir.wait();
        second.wait().unwrap();
        assert!(!SingletonLock::open(&path).unwrap().try_take().unwrap());
    }

    #[test]
    fn live_holder_keeps_closed_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut process = Process::start_as(Command::new("sleep").arg("1000").stdout(Stdio::null()));
        let first = SingletonLock::open(&path).unwrap();
        assert!(first.try_take().unwrap());
        let identity = super::super::ProcessIdentity::of(process.pid().as_raw_pid() as u32).unwrap().unwrap();
        first.record(&LockRecord { process: identity, ..LockRecord::of_this(1).unwrap() }).unwrap();
        drop(first);
        let second = SingletonLock::open(&path).unwrap();
        assert!(!second.try_take().unwrap());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| second.wait());
            assert!(!waits.is_finished());
            process.kill();
            process.wait();
            waits.join().unwrap().unwrap();
        });
    }

    #[test]
    fn removed_lock_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let lock = SingletonLock::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(lock.wait().unwrap_err().to_string().contains("removed"));
    }
}
