//! A lock is a `flock`, which the kernel drops with its process, and a lock of the open file description
//! (`F_OFD_SETLK`), because only that one can be queried, through every mount and in every namespace. Without the
//! second lock, a query tries the first and releases it at once: some file systems, and programs of an earlier version,
//! have only that.

use nix::fcntl::{FcntlArg, fcntl};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::time::Duration;

/// Another process may be querying the lock.
const ASKING: (Duration, u32) = (Duration::from_millis(1), 50);

/// Locks a file that is open for writing; false if another process holds the lock.
///
/// # Errors
/// An error of the operating system.
pub fn try_lock(file: &File) -> io::Result<bool> {
    for _ in 0..ASKING.1 {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // Only for queries: without it they try the other lock.
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

/// Releases the lock; closing alone leaves it to a child process being started by another thread, until its exec.
pub fn unlock(file: &File) {
    // A lock that cannot be released here is released when the file is closed.
    let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&whole(libc::F_UNLCK)));
    let _ = flock(file, FlockOperation::Unlock);
}

/// Whether a process holds the lock of a file, other than through `file`, which is open for reading.
///
/// # Errors
/// An error of the operating system.
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
    fn held_lock_is_visible_to_others() {
        let (_folder, [one, other]) = files();
        assert!(!is_locked(&other).unwrap());
        assert!(try_lock(&one).unwrap() && !try_lock(&other).unwrap());
        assert!(is_locked(&other).unwrap() && !is_marked(&one), "its own lock does not count");
        unlock(&one);
        assert!(!is_locked(&other).unwrap() && try_lock(&other).unwrap());
    }

    #[test]
    fn flock_alone_is_seen() {
        let (_folder, [one, other]) = files();
        flock(&one, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(is_locked(&other).unwrap() && !is_marked(&other) && !try_lock(&other).unwrap());
        drop(one);
        assert!(!is_locked(&other).unwrap());
    }

    #[test]
    fn lock_waits_for_a_query() {
        let (_folder, [one, other]) = files();
        flock(&one, FlockOperation::NonBlockingLockShared).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| while !try_lock(&other).unwrap() {});
            unlock(&one);
        });
    }

    #[test]
    fn read_only_file_can_query() {
        let (folder, [one, _]) = files();
        let reader = File::open(folder.path().join("lock")).unwrap();
        assert!(!is_locked(&reader).unwrap() && try_lock(&one).unwrap() && is_locked(&reader).unwrap());
    }
}
