//! Sealed memory files: made, sealed and checked in one place. With the seals the length of a memory can never change: what is
//! checked of it holds for as long as it is mapped, and no access to it ever faults.

use crate::LogError;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// The length can neither grow nor shrink.
pub(crate) const LENGTH_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> LogError {
    let action = action.into();
    move |errno| LogError::System { action, source: errno.into() }
}

pub(crate) fn foreign(field: &'static str, found: impl ToString, expected: impl ToString) -> LogError {
    LogError::Foreign { field, found: found.to_string(), expected: expected.to_string() }
}

/// Makes a memory file without a length, which is not sealed yet.
pub(crate) fn create(name: &'static str) -> Result<OwnedFd, LogError> {
    rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(system("creating a memory file"))
}

/// Gives a memory file its length. What the process may not make so long is an error: the kernel would send a signal, which ends the
/// process.
pub(crate) fn size(fd: &OwnedFd, length: u64, what: &str) -> Result<(), LogError> {
    if let Some(most) = getrlimit(Resource::Fsize).current.filter(|most| *most < length) {
        let action = format!("sizing {what} of {length} bytes where files have at most {most} (ulimit -f)");
        return Err(system(action)(Errno::FBIG));
    }
    rustix::fs::ftruncate(fd, length).map_err(system(format!("sizing {what} of {length} bytes")))
}

/// Seals the length for good, and whatever else `more` says.
pub(crate) fn seal(fd: &OwnedFd, more: SealFlags) -> Result<(), LogError> {
    rustix::fs::fcntl_add_seals(fd, LENGTH_SEALS | SealFlags::SEAL | more).map_err(system("sealing a memory file"))
}

/// Refuses what another process passed, unless its length is sealed.
pub(crate) fn check(fd: &OwnedFd) -> Result<(), LogError> {
    // What is no memory file has none.
    let seals = rustix::fs::fcntl_get_seals(fd).unwrap_or(SealFlags::empty());
    if seals.contains(LENGTH_SEALS) {
        return Ok(());
    }
    Err(foreign("seals", format!("{seals:?}"), format!("{LENGTH_SEALS:?} at least")))
}

/// A new descriptor of the same memory that cannot write.
pub(crate) fn read_only(fd: &OwnedFd) -> Result<OwnedFd, LogError> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(system("opening a memory file for reading only"))
}
