//! [`Interest`]: sleeping for a link that other threads use meanwhile.

use crate::TransportError;
use crate::readiness;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Copies of the descriptors that end a sleep for a link.
#[derive(Debug)]
pub struct Interest {
    descriptors: Vec<OwnedFd>,
    /// Whether the one descriptor is that of a connection, which may have no room for bytes.
    is_connection: bool,
}

impl Interest {
    pub(crate) fn in_all(descriptors: &[BorrowedFd<'_>]) -> Result<Self, TransportError> {
        let copied = descriptors.iter().map(|descriptor| rustix::io::fcntl_dupfd_cloexec(descriptor, 0));
        let descriptors = copied.collect::<Result<_, _>>().map_err(TransportError::system("copying a descriptor"))?;
        Ok(Self { descriptors, is_connection: false })
    }

    pub(crate) fn in_connection(descriptor: BorrowedFd<'_>) -> Result<Self, TransportError> {
        Ok(Self { is_connection: true, ..Self::in_all(&[descriptor])? })
    }

    /// Sleeps until one of the descriptors or `other` is ready, until bytes can be sent if `sends`, or for `timeout`.
    ///
    /// # Errors
    /// The operating system cannot wait.
    pub fn wait(&self, other: impl AsFd, sends: bool, timeout: Duration) -> Result<(), TransportError> {
        let flags = if sends && self.is_connection { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut all = vec![PollFd::from_borrowed_fd(other.as_fd(), PollFlags::IN)];
        all.extend(self.descriptors.iter().map(|descriptor| PollFd::new(descriptor, flags)));
        readiness::wait(&mut all, Some(timeout)).map_err(TransportError::system("waiting for a service"))
    }
}

/// Sleeps until `descriptor` is ready, or for `timeout`.
///
/// # Errors
/// The operating system cannot wait.
pub fn wait_for(descriptor: impl AsFd, timeout: Duration) -> Result<(), TransportError> {
    let mut one = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)];
    readiness::wait(&mut one, Some(timeout)).map_err(TransportError::system("waiting for a wake-up"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::publisher_link::new_eventfd;
    use gapless_agent::wake_fd;
    use std::time::Instant;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn any_descriptor_ends_a_sleep() {
        let (first, second, other) = (new_eventfd().unwrap(), new_eventfd().unwrap(), new_eventfd().unwrap());
        let interest = Interest::in_all(&[first.as_fd(), second.as_fd()]).unwrap();
        interest.wait(&other, true, Duration::ZERO).unwrap();
        for ready in [&first, &second, &other] {
            wake_fd::signal(ready);
            let begun = Instant::now();
            interest.wait(&other, false, PATIENCE).unwrap();
            wait_for(ready, PATIENCE).unwrap();
            assert!(begun.elapsed() < PATIENCE);
            rustix::io::read(ready, &mut [0u8; 8]).unwrap();
        }
        drop((first, second));
        interest.wait(&other, false, Duration::ZERO).unwrap();
    }
}
