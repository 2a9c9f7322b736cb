//! Sleeping until a descriptor is ready, for the links, listeners and connections of this crate.

use rustix::event::{PollFd, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::time::Duration;

/// Sleeps until one of `descriptors` is ready, a signal arrives, or for `timeout`.
pub(crate) fn wait(descriptors: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<(), Errno> {
    match poll(descriptors, timeout.map(timespec).as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Saturates.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs().min(i64::MAX as u64) as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}
