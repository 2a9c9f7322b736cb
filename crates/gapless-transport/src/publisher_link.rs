//! `PublisherLink`: a publisher's end of a connection.

use crate::TransportError;
use crate::handshake::{REASON_BYTES_MAX, WELCOME_LENGTH, Welcome};
use crate::interest::Interest;
use crate::pump::Pump;
use crate::readiness;
use gapless_agent::FailureSlot;
use gapless_log::{RingReader, RingWriter, Window};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::RecvFlags;
use std::time::Duration;

/// Within this time the reason may follow the close of the rings.
pub const REASON_WITHIN: Duration = Duration::from_millis(100);

/// A service that stops wakes no client in its process.
const IN_PROCESS_CHECK: Duration = Duration::from_millis(100);

pub struct PublisherLink {
    pub welcome: Welcome,
    pub writer: RingWriter,
    pub reader: RingReader,
    pub wake_service: OwnedFd,
    pub wake_publisher: OwnedFd,
    /// Closed when either process dies; `None` inside one process. Its only message is the reason of the service's
    /// failure.
    pub socket: Option<OwnedFd>,
    pub window: Option<Window>,
    /// `None` if the other side is another process.
    pub failures: Option<FailureSlot>,
    /// Pump that carries the rings' frames if the service is on another machine.
    pub pump: Option<Box<Pump>>,
}

impl PublisherLink {
    /// Rings whose other ends are in this process.
    ///
    /// # Errors
    /// The process has no free descriptor.
    pub fn of_rings(welcome: Welcome, writer: RingWriter, reader: RingReader) -> Result<Self, TransportError> {
        let (wake_service, wake_publisher) = (new_eventfd()?, new_eventfd()?);
        Ok(Self {
            welcome,
            writer,
            reader,
            wake_service,
            wake_publisher,
            socket: None,
            window: None,
            failures: None,
            pump: None,
        })
    }

    /// Sleeps until a wake-up, the end of the connection, or for `timeout`. The reader must be armed and empty.
    ///
    /// # Errors
    /// The operating system cannot wait.
    pub fn sleep(&mut self, timeout: Duration) -> Result<(), TransportError> {
        if let Some(pump) = &mut self.pump {
            return pump.sleep(timeout);
        }
        let mut fds = vec![PollFd::new(&self.wake_publisher, PollFlags::IN)];
        if let Some(socket) = &self.socket {
            fds.push(PollFd::new(socket, PollFlags::IN));
        }
        readiness::wait(&mut fds, Some(timeout)).map_err(TransportError::system("waiting for the stream"))?;
        self.take_wake_up();
        Ok(())
    }

    /// Descriptors that end a sleep for this link, for a thread that sleeps without it. They stay valid after the link.
    ///
    /// # Errors
    /// The process has no free descriptor.
    pub fn interest(&self) -> Result<Interest, TransportError> {
        match (&self.pump, &self.socket) {
            (Some(pump), _) => Interest::in_connection(pump.descriptor()),
            (None, Some(socket)) => Interest::in_all(&[self.wake_publisher.as_fd(), socket.as_fd()]),
            (None, None) => Interest::in_all(&[self.wake_publisher.as_fd()]),
        }
    }

    /// Longest sleep, and whether it also ends once bytes can be sent. The reader must be armed and empty, and the link
    /// flushed.
    #[must_use]
    pub fn sleep_limit(&self) -> (Duration, bool) {
        match (&self.pump, &self.socket) {
            (Some(pump), _) => pump.sleep_limit(),
            (None, Some(_)) => (Duration::MAX, false),
            (None, None) => (IN_PROCESS_CHECK, false),
        }
    }

    /// Takes the wake-up that has ended a sleep.
    pub fn take_wake_up(&self) {
        // Fails if there is none, which is fine.
        let _ = rustix::io::read(&self.wake_publisher, &mut [0u8; 8]);
    }

    /// No frames follow those in the ring.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        // A failed stream or node closes its rings while its process may be alive.
        self.socket_has_ended()
            || self.reader.is_writer_closed()
            || self.pump.as_ref().is_some_and(|pump| pump.is_over())
    }

    /// Whether the socket has its only message, or was closed.
    fn socket_has_ended(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| {
            !matches!(
                rustix::net::recv(socket, &mut [0u8; 1], RecvFlags::DONTWAIT | RecvFlags::PEEK),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR)
            )
        })
    }

    /// Whether a reason of the other side's failure may be in transit. Do not wait for it longer than
    /// [`REASON_WITHIN`].
    #[must_use]
    pub fn awaits_failure(&self) -> bool {
        self.failures.is_none() && self.socket.is_some() && self.reader.is_writer_closed() && !self.socket_has_ended()
    }

    /// Reason of the other side's failure, if it is known here. Meant for a link that [is gone](Self::is_gone): a
    /// reason in transit is waited for, at most 100 ms.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        if self.failures.is_none()
            && self.reader.is_writer_closed()
            && let Some(socket) = &self.socket
        {
            // A wait that fails ends without a reason.
            let _ = readiness::wait(&mut [PollFd::new(socket, PollFlags::IN)], Some(REASON_WITHIN));
        }
        self.known_failure()
    }

    /// Like [`PublisherLink::failure`], without waiting.
    #[must_use]
    pub fn known_failure(&self) -> Option<String> {
        if let Some(failures) = &self.failures {
            return Some(failures.failure()?.to_string());
        }
        let socket = self.socket.as_ref()?;
        let mut bytes = [0; WELCOME_LENGTH + REASON_BYTES_MAX];
        let (length, _) = rustix::net::recv(socket, &mut bytes[..], RecvFlags::DONTWAIT | RecvFlags::PEEK).ok()?;
        let (_, reason) = Welcome::with_reason(&bytes[..length])?;
        reason.map(str::to_owned)
    }

    /// Makes written frames visible; also receives, if the service is on another machine.
    #[inline]
    pub fn flush(&mut self) {
        let wakes = self.writer.publish();
        if let Some(pump) = &mut self.pump {
            pump.turn();
        } else if wakes {
            // Fails only if the counter is full; then the service is being woken already.
            let _ = rustix::io::write(&self.wake_service, &1u64.to_ne_bytes());
        }
    }
}

/// Creates an eventfd for waking a thread.
///
/// # Errors
/// The process has no free descriptor.
pub fn new_eventfd() -> Result<OwnedFd, TransportError> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(TransportError::system("making an eventfd"))
}
