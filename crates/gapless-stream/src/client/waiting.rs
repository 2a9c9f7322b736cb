//! Sleeping until the other side sends something, and noticing that it is gone.

use super::Client;
use crate::StreamError;
use crate::doorman::PublisherLink;
use rustix::event::{PollFd, PollFlags, poll};
use std::time::Duration;

impl Client {
    /// Sleeps until the service sends something, or `timeout`. Returns at once if something is there.
    ///
    /// # Errors
    /// [`StreamError::Disconnected`] if the service is gone.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), StreamError> {
        self.flush();
        self.link.reader.arm();
        if self.link.reader.next_length()?.is_none() {
            self.link.sleep(timeout)?;
        }
        self.link.reader.disarm();
        if self.link.reader.next_length()?.is_none() {
            self.check_connected()?;
        }
        Ok(())
    }

    pub(super) fn check_connected(&mut self) -> Result<(), StreamError> {
        self.empty_polls = 0;
        if self.link.is_gone() && self.link.reader.next_length()?.is_none() {
            return Err(StreamError::Disconnected { peer: self.peer() });
        }
        Ok(())
    }
}

impl PublisherLink {
    /// Sleeps until it is woken, the other side hangs up, or `timeout`. The reader is armed, and has nothing.
    pub(crate) fn sleep(&self, timeout: Duration) -> Result<(), StreamError> {
        let mut fds = vec![PollFd::new(&self.wake_publisher, PollFlags::IN)];
        if let Some(socket) = &self.socket {
            fds.push(PollFd::new(socket, PollFlags::IN));
        }
        let timeout = rustix::time::Timespec {
            tv_sec: timeout.as_secs().min(i64::MAX as u64) as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(StreamError::system("waiting for the stream")(errno)),
        }
        // Empties the counter; an empty one says so, which is as good.
        let _ = rustix::io::read(&self.wake_publisher, &mut [0u8; 8]);
        Ok(())
    }

    /// Whether nothing more comes but what is in the ring.
    pub(crate) fn is_gone(&self) -> bool {
        let hung_up = self.socket.as_ref().is_some_and(|socket| {
            !matches!(
                rustix::net::recv(socket, &mut [0u8; 1], rustix::net::RecvFlags::DONTWAIT),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR)
            )
        });
        // A stream or node that has failed gives its rings up while its process may still live.
        hung_up || self.reader.is_writer_closed()
    }
}
