//! Sealed memory files. The seals fix the length for good, so checks hold for as long as the memory is mapped, and no
//! access ever faults.

use crate::LogError;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

pub(crate) const LENGTH_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);

pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> LogError {
    let action = action.into();
    move |errno| LogError::System { action, source: errno.into() }
}

pub(crate) fn foreign(field: &'static str, found: impl ToString, expected: impl ToString) -> LogError {
    LogError::Foreign { field, found: found.to_string(), expected: expected.to_string() }
}

pub(crate) fn create(name: &'static str) -> Result<OwnedFd, LogError> {
    rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(system("creating a memory file"))
}

/// Exceeding the process's limit is an error here: the kernel would send a signal that ends the process.
pub(crate) fn size(fd: &OwnedFd, length: u64, what: &str) -> Result<(), LogError> {
    if let Some(most) = getrlimit(Resource::Fsize).current.filter(|most| *most < length) {
        let action = format!("sizing {what} of {length} bytes where files have at most {most} (ulimit -f)");
        return Err(system(action)(Errno::FBIG));
    }
    rustix::fs::ftruncate(fd, length).map_err(system(format!("sizing {what} of {length} bytes")))
}

pub(crate) fn seal(fd: &OwnedFd, more: SealFlags) -> Result<(), LogError> {
    rustix::fs::fcntl_add_seals(fd, LENGTH_SEALS | SealFlags::SEAL | more).map_err(system("sealing a memory file"))
}

pub(crate) fn check(fd: &OwnedFd) -> Result<(), LogError> {
    // Other files have no seals.
    let seals = rustix::fs::fcntl_get_seals(fd).unwrap_or(SealFlags::empty());
    if seals.contains(LENGTH_SEALS) {
        return Ok(());
    }
    Err(foreign("seals", format!("{seals:?}"), format!("{LENGTH_SEALS:?} at least")))
}

pub(crate) fn read_only(fd: &OwnedFd) -> Result<OwnedFd, LogError> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(system("opening a memory file for reading only"))
}
