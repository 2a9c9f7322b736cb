//! Both ends of an admitted publisher's rings: one half becomes a [`PublisherLink`] here or goes to another process,
//! the other half, [`ServiceEnds`], stays with the service.

use crate::TransportError;
use crate::handshake::{WELCOME_DESCRIPTORS, Welcome};
use crate::link::{ConnectionId, RingSizes};
use crate::publisher_link::{PublisherLink, new_eventfd};
use gapless_log::{MemoryKind, RingReader, RingWriter, StreamIdentity, Window, ring};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

pub struct PublisherRings {
    command_writer: RingWriter,
    reply_reader: RingReader,
    service: ServiceEnds,
}

pub struct ServiceEnds {
    pub connection: ConnectionId,
    pub commands: RingReader,
    pub replies: RingWriter,
    pub wake: Arc<OwnedFd>,
}

impl PublisherRings {
    /// Sizes from `link`, in `memory`.
    ///
    /// # Errors
    /// No memory, or no descriptors.
    pub fn create(
        connection: ConnectionId,
        link: RingSizes,
        memory: &MemoryKind,
        identity: StreamIdentity,
    ) -> Result<Self, TransportError> {
        let (command_writer, commands) = ring::create(memory, link.command_ring_bytes, identity)?;
        let (replies, reply_reader) = ring::create(memory, link.reply_ring_bytes, identity)?;
        let wake = Arc::new(new_eventfd()?);
        let service = ServiceEnds { connection, commands, replies, wake };
        Ok(Self { command_writer, reply_reader, service })
    }

    #[must_use]
    pub const fn connection(&self) -> ConnectionId {
        self.service.connection
    }

    /// Splits the rings for a publisher of this process, which wakes the service by `wake_service` and reads `window`,
    /// if any.
    ///
    /// # Errors
    /// The process has no free descriptor.
    pub fn split(
        self,
        welcome: Welcome,
        wake_service: BorrowedFd<'_>,
        window: Option<Window>,
    ) -> Result<(PublisherLink, ServiceEnds), TransportError> {
        let wake_service = duplicate(wake_service)?;
        let wake_publisher = duplicate(self.service.wake.as_fd())?;
        let link = PublisherLink {
            welcome,
            writer: self.command_writer,
            reader: self.reply_reader,
            wake_service,
            wake_publisher,
            socket: None,
            window,
            failures: None,
            pump: None,
        };
        Ok((link, self.service))
    }

    /// In the order of a welcome.
    pub(crate) fn descriptors<'a>(&'a self, wake_service: BorrowedFd<'a>) -> [BorrowedFd<'a>; WELCOME_DESCRIPTORS] {
        [self.command_writer.fd(), self.reply_reader.fd(), wake_service, self.service.wake.as_fd()]
    }

    /// The other process has its own ends over the same memory: dropping ours must not announce a close.
    pub(crate) fn leave_to_peer(self) -> ServiceEnds {
        self.command_writer.leave_to_peer();
        self.reply_reader.leave_to_peer();
        self.service
    }
}

fn duplicate(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, TransportError> {
    rustix::io::fcntl_dupfd_cloexec(descriptor, 0).map_err(TransportError::system("duplicating a descriptor"))
}
