//! Locks of files: [`try_lock`], [`unlock`], and [`is_locked`] for other processes.
//!
//! A lock is a `flock`, which the kernel drops with its process, and beside it a lock of the open file description (`F_OFD_SETLK`),
//! because only that one can be asked for. Both are the same through every mount and in every namespace; the kernel's list of locks
//! names other devices than `stat` on btrfs and overlay. Where nobody has the second, the first is tried and let go at once: file systems
//! and programs of an earlier version may have only that.

use nix::fcntl::{FcntlArg, fcntl};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::time::Duration;

/// Pause before the next attempt, and the number of them, where nobody has the lock for good: somebody may be asking.
const ASKING: (Duration, u32) = (Duration::from_millis(1), 50);

/// Takes the lock of a file that is open for writing; false where another process has it.
///
/// # Errors
/// The system's.
pub fn try_lock(file: &File) -> io::Result<bool> {
    for _ in 0..ASKING.1 {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // It is only for those who ask: without it they try the other one.
                let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&whole(libc::F_WRLCK)));
                return Ok(true);
            }
            Err(Errno::WOULDBLOCK) if is_marked(file) => return Ok(false),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(ASKING.0),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(false)
}

/// Lets go of the lock. Closing alone leaves it to a child that another thread is starting, until the child runs its own program.
pub fn unlock(file: &File) {
    // What fails here is let go when the file is closed.
    let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&whole(libc::F_UNLCK)));
    let _ = flock(file, FlockOperation::Unlock);
}

/// Whether a process has the lock of a file that is open for reading, and not by `file`.
///
/// # Errors
/// The system's.
pub fn is_locked(file: &File) -> io::Result<bool> {
    if is_marked(file) {
        return Ok(true);
    }
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => flock(file, FlockOperation::Unlock).map(|()| false).map_err(Into::into),
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether the lock that can be asked for is another's.
fn is_marked(file: &File) -> bool {
    let mut asked = whole(libc::F_WRLCK);
    let answer = fcntl(file, FcntlArg::F_OFD_GETLK(&mut asked));
    answer.is_ok() && asked.l_type != libc::F_UNLCK as libc::c_short
}

fn whole(kind: i32) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> (tempfile::TempDir, [File; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let files = [open(), open()];
        (folder, files)
    }

    #[test]
    fn one_has_it_and_all_can_ask() {
        let (_folder, [one, other]) = files();
        assert!(!is_locked(&other).unwrap());
        assert!(try_lock(&one).unwrap() && !try_lock(&other).unwrap());
        assert!(is_locked(&other).unwrap() && !is_marked(&one), "its own is none");
        unlock(&one);
        assert!(!is_locked(&other).unwrap() && try_lock(&other).unwrap());
    }

    #[test]
    fn a_lock_without_a_mark_is_seen() {
        let (_folder, [one, other]) = files();
        flock(&one, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(is_locked(&other).unwrap() && !is_marked(&other) && !try_lock(&other).unwrap());
        drop(one);
        assert!(!is_locked(&other).unwrap());
    }

    #[test]
    fn whoever_asks_is_waited_for() {
        let (_folder, [one, other]) = files();
        flock(&one, FlockOperation::NonBlockingLockShared).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| while !try_lock(&other).unwrap() {});
            unlock(&one);
        });
    }

    #[test]
    fn only_a_reader_asks_too() {
        let (folder, [one, _]) = files();
        let reader = File::open(folder.path().join("lock")).unwrap();
        assert!(!is_locked(&reader).unwrap() && try_lock(&one).unwrap() && is_locked(&reader).unwrap());
    }
}
