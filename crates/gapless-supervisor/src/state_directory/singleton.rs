//! [`SingletonLock`]: the lock that makes one copy of a singleton active, and lets the others stand by.
//!
//! It is inherited over exec and fork as the lock of a copy is, so it ends with the active copy and all that it has started,
//! and the kernel hands it to one that waits: neither supervisor nor guardian need live for that.

use super::lock::{Inherited, LockFile, LockRecord};
use crate::error::SupervisorError;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The lock of a singleton: opened, and held once it has been waited for.
#[derive(Debug)]
pub struct SingletonLock {
    file: LockFile,
}

impl SingletonLock {
    /// Opens the file, which it makes if need be. Whatever this process becomes and forks has it, too.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path) -> Result<Self, SupervisorError> {
        Ok(Self { file: LockFile::open(path, Inherited::Yes)? })
    }

    /// Takes it if nobody has it: whether it was taken.
    ///
    /// # Errors
    /// The system's.
    pub fn try_take(&self) -> Result<bool, SupervisorError> {
        loop {
            match flock(&self.file.lock, FlockOperation::NonBlockingLockExclusive) {
                // One that was given up by a process that lives.
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

    /// Waits until it is held, without a limit. A process that has closed the lock, as programs do that close everything, is
    /// waited for, too.
    ///
    /// # Errors
    /// The system's; the file was removed meanwhile.
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
            // Ended by a signal, it looks again.
            let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None);
        }
        Ok(())
    }

    /// Writes who has it.
    ///
    /// # Errors
    /// As [`HeldLock::record`](super::HeldLock::record).
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
    fn one_has_it_and_another_gets_it_when_all_who_inherited_it_are_dead() {
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
        assert!(!second.try_take().unwrap(), "its heir lives");
        heir.kill();
        heir.wait();
        second.wait().unwrap();
        assert!(!SingletonLock::open(&path).unwrap().try_take().unwrap());
    }

    #[test]
    fn one_that_was_given_up_by_a_process_that_lives_is_not_free() {
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
    fn one_that_was_removed_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let lock = SingletonLock::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(lock.wait().unwrap_err().to_string().contains("removed"));
    }
}
