//! Eventfds that wake a thread of another process: creating, checking and writing them.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::OFlags;

/// Creates an eventfd that does not block.
///
/// # Errors
/// There is no free descriptor, or no memory.
pub fn create() -> rustix::io::Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
}

/// Checks a descriptor from another process: a write to anything but an eventfd could block this thread.
///
/// # Errors
/// Kind of the descriptor.
pub fn check(passed: &OwnedFd) -> Result<(), String> {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", passed.as_raw_fd()));
    let name = name.map_err(|error| format!("its eventfd cannot be looked at: {error}"))?;
    if name.as_os_str() != "anon_inode:[eventfd]" {
        return Err(format!("an eventfd is expected, {} was found", name.display()));
    }
    let flags = rustix::fs::fcntl_getfl(passed).map_err(|errno| format!("its eventfd cannot be looked at: {errno}"))?;
    if !flags.contains(OFlags::NONBLOCK) {
        return Err("an eventfd that does not block is expected, one that does was found".to_owned());
    }
    Ok(())
}

pub fn signal(eventfd: impl AsFd) {
    // Fails only if the counter is full, which wakes as well.
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocking_eventfd_is_refused() {
        let good = create().unwrap();
        assert_eq!(check(&good), Ok(()));
        rustix::io::write(&good, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        signal(&good);
        let blocking = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        assert!(check(&blocking).unwrap_err().contains("that does not block"));
        let (reader, writer) = std::io::pipe().unwrap();
        for passed in [OwnedFd::from(reader), OwnedFd::from(writer)] {
            assert!(check(&passed).unwrap_err().contains("pipe:"));
        }
    }
}
