//! [`PublisherLink`]: a publisher's end of a connection.

use crate::StreamError;
use crate::handshake::Welcome;
use crate::pump::Pump;
use gapless_log::{RingReader, RingWriter, Window};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

/// A publisher's end of a connection.
pub struct PublisherLink {
    /// What the doorman said.
    pub welcome: Welcome,
    /// To the sequencer.
    pub writer: RingWriter,
    /// From the service.
    pub reader: RingReader,
    /// Wakes the sequencer's thread.
    pub wake_service: OwnedFd,
    /// Wakes the publisher.
    pub wake_publisher: OwnedFd,
    /// Closed by the operating system when either process dies; `None` inside one process.
    pub socket: Option<OwnedFd>,
    /// The stream's window, for one that reads it.
    pub window: Option<Window>,
    /// What carries the rings' frames where the service is elsewhere.
    pub(crate) pump: Option<Box<Pump>>,
}

impl PublisherLink {
    /// A publisher's end over rings whose other ends somebody in this process has.
    ///
    /// # Errors
    /// The process has as many descriptors as it may have.
    pub fn of_rings(welcome: Welcome, writer: RingWriter, reader: RingReader) -> Result<Self, StreamError> {
        // Nobody sleeps at the other ends.
        let (wake_service, wake_publisher) = (new_eventfd()?, new_eventfd()?);
        Ok(Self { welcome, writer, reader, wake_service, wake_publisher, socket: None, window: None, pump: None })
    }
}

pub(crate) fn new_eventfd() -> Result<OwnedFd, StreamError> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(StreamError::system("making an eventfd"))
}
