//! Publisher's side of the handshake: hello, welcome, four descriptors.

use super::{ConnectOptions, other_mtu};
use crate::TransportError;
use crate::descriptors::descriptor_limit_reason;
use crate::handshake::{HandshakeStatus, Hello, REASON_BYTES_MAX, WELCOME_DESCRIPTORS_MAX, WELCOME_LENGTH, Welcome};
use crate::link::ring_size_reason;
use crate::peer_process::PeerProcess;
use crate::publisher_link::PublisherLink;
use crate::readiness;
use crate::socket_path::connect_packets;
use gapless_agent::monotonic::saturating_ns;
use gapless_agent::wait_notices::WaitNotices;
use gapless_log::{RingReader, RingWriter, Window};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags};
use std::io::{ErrorKind, IoSliceMut};
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval of retrying a full accept queue.
const LINE_INTERVAL: Duration = Duration::from_millis(5);

/// Connects to the socket `path`, and logs long waits.
///
/// # Errors
/// No listener; a refusal; no answer in time.
pub fn connect(path: &Path, options: &ConnectOptions) -> Result<PublisherLink, TransportError> {
    let (begun, mut waits) = (Instant::now(), WaitNotices::after_a_second());
    waits.begin(0);
    let (mut dialing, mut peer) = (None, path.display().to_string());
    loop {
        let attempt = match dialing.take() {
            None => PendingDial::begin(path, options),
            Some(dialing) => Ok(dialing),
        };
        match attempt.and_then(PendingDial::finish) {
            Ok(DialResult::Connected(link)) => return Ok(*link),
            Ok(DialResult::Pending(pending)) => {
                peer = pending.describe_peer();
                dialing = Some(pending);
            }
            Err(error) if is_queue_full(&error) => {}
            Err(error) => return Err(error),
        }
        let passed = begun.elapsed();
        if let Some(elapsed) = waits.take_due(saturating_ns(passed)) {
            tracing::warn!(waited_s = elapsed.as_secs(), "no answer to a hello from {peer}; it is waited for");
        }
        let left = options.timeout.saturating_sub(passed);
        if left.is_zero() {
            return Err(options.timed_out(&peer));
        }
        let pause = left.min(Duration::from_nanos(waits.next_ns()).saturating_sub(passed));
        match &dialing {
            Some(dialing) => dialing.wait(pause)?,
            None => std::thread::sleep(pause.min(LINE_INTERVAL)),
        }
    }
}

/// No listener yet, or it admits no publishers now.
#[must_use]
pub fn is_retryable(error: &TransportError) -> bool {
    match error {
        TransportError::System { source, .. } => {
            let is_absence = matches!(
                source.kind(),
                // No listener, or it died in the handshake.
                ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            );
            is_absence || is_queue_full(error)
        }
        // Closed during the handshake: the service is stopping or was killed.
        TransportError::Handshake { status: None | Some(HandshakeStatus::Unavailable), .. } => true,
        _ => false,
    }
}

fn is_queue_full(error: &TransportError) -> bool {
    matches!(error, TransportError::System { source, .. } if source.kind() == ErrorKind::WouldBlock)
}

/// A hello in progress; only [`PendingDial::wait`] blocks.
pub struct PendingDial {
    socket: OwnedFd,
    peer: String,
    options: ConnectOptions,
    process: Option<PeerProcess>,
    begun: Instant,
}

pub enum DialResult {
    Connected(Box<PublisherLink>),
    Pending(PendingDial),
}

impl PendingDial {
    /// Sends a hello to the socket `path`.
    ///
    /// # Errors
    /// No listener, or a full accept queue: see [`is_retryable`].
    pub fn begin(path: &Path, options: &ConnectOptions) -> Result<Self, TransportError> {
        let peer = path.display().to_string();
        options.check(&peer)?;
        let action = || format!("connecting to {peer}");
        let socket = connect_packets(path).map_err(|source| TransportError::System { action: action(), source })?;
        let ConnectOptions { link, identity, reads, seen, mtu, .. } = *options;
        let hello = Hello { link, identity, reads, seen, mtu };
        let hello = hello.to_bytes();
        retry_on_intr(|| rustix::net::send(&socket, &hello, SendFlags::NOSIGNAL))
            .map_err(TransportError::system(action()))?;
        let process = PeerProcess::of(&socket);
        Ok(Self { socket, peer, options: *options, process, begun: Instant::now() })
    }

    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The socket, its process, and whether that is stopped.
    fn describe_peer(&self) -> String {
        let process = self.process.map(|process| format!(" ({process})")).unwrap_or_default();
        format!("{}{process}", self.peer)
    }

    #[must_use]
    pub fn silence(&self) -> String {
        self.process.map_or_else(|| "somebody is there and does not answer".to_owned(), PeerProcess::silence)
    }

    #[must_use]
    pub fn timed_out(&self) -> TransportError {
        self.options.timed_out(&self.describe_peer())
    }

    /// Sleeps until the answer or `timeout`.
    ///
    /// # Errors
    /// The operating system cannot wait.
    pub fn wait(&self, timeout: Duration) -> Result<(), TransportError> {
        let action = || format!("connecting to {}", self.peer);
        // A signal is no answer: its handler has run, and the caller continues.
        readiness::wait(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(timeout))
            .map_err(TransportError::system(action()))
    }

    /// Connection, if the service has answered.
    ///
    /// # Errors
    /// A refusal, or the service has closed the connection.
    pub fn finish(self) -> Result<DialResult, TransportError> {
        let Self { socket, peer, options, .. } = &self;
        let refused = |reason: String| TransportError::Handshake { peer: self.describe_peer(), status: None, reason };
        let mut bytes = [0; WELCOME_LENGTH + REASON_BYTES_MAX];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(WELCOME_DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received =
            retry_on_intr(|| rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags));
        let received = match received {
            Err(Errno::AGAIN) => return Ok(DialResult::Pending(self)),
            other => other.map_err(TransportError::system(format!("connecting to {peer}")))?,
        };
        let descriptors: Vec<OwnedFd> = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten()
            .collect();
        if received.bytes == 0 {
            return Err(refused("the service hung up".to_owned()));
        }
        let (welcome, stated) = Welcome::with_reason(&bytes[..received.bytes])
            .ok_or_else(|| refused(format!("an answer of {} bytes that is no welcome", received.bytes)))?;
        match welcome.status {
            HandshakeStatus::Welcome => {}
            HandshakeStatus::OtherStream => {
                let (found, wanted) = (welcome.identity.stream_id, options.identity.stream_id);
                return Err(refused(format!("it serves stream {found:032x}, not {wanted:032x}")));
            }
            HandshakeStatus::OtherIncarnation => {
                let (found, wanted) = (welcome.identity.incarnation, options.identity.incarnation);
                return Err(refused(format!("the stream is in incarnation {found:016x}, not {wanted:016x}")));
            }
            HandshakeStatus::OtherHistory => {
                let (seen, released_sequence) = (options.seen, welcome.released_sequence);
                return Err(TransportError::OtherHistory { peer: peer.clone(), seen, released_sequence });
            }
            HandshakeStatus::OtherMtu => {
                let (status, reason) = (Some(HandshakeStatus::OtherMtu), other_mtu(welcome.mtu, options.mtu));
                return Err(TransportError::Handshake { peer: self.describe_peer(), status, reason });
            }
            HandshakeStatus::RingSize => return Err(refused(ring_size_reason(options.link))),
            HandshakeStatus::NotReadable => {
                return Err(refused("its stream belongs to a service and cannot be read".to_owned()));
            }
            HandshakeStatus::Unavailable => {
                let reason = stated.map_or_else(
                    || "it takes no more publishers; its log says why".to_owned(),
                    |reason| format!("it has failed: {reason}"),
                );
                return Err(TransportError::Handshake {
                    peer: self.describe_peer(),
                    status: Some(welcome.status),
                    reason,
                });
            }
        }
        if received.flags.contains(ReturnFlags::CTRUNC) && descriptors.len() < WELCOME_DESCRIPTORS_MAX {
            return Err(refused(descriptor_limit_reason()));
        }
        let mut descriptors = descriptors.into_iter();
        let (Some(commands), Some(replies), Some(wake_service), Some(wake_publisher)) =
            (descriptors.next(), descriptors.next(), descriptors.next(), descriptors.next())
        else {
            return Err(refused("a welcome without its four descriptors".to_owned()));
        };
        let window = descriptors.next().map(Window::open).transpose()?;
        if options.reads && window.is_none() {
            return Err(refused("a welcome without the window that was asked for".to_owned()));
        }
        Ok(DialResult::Connected(Box::new(PublisherLink {
            welcome,
            writer: RingWriter::open(commands)?,
            reader: RingReader::open(replies)?,
            wake_service,
            wake_publisher,
            socket: Some(self.socket),
            window,
            failures: None,
            pump: None,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::RingSizes;
    use crate::seen_frame::SeenFrame;
    use crate::socket_path::socket_address;
    use gapless_log::StreamIdentity;
    use rustix::net::{AddressFamily, SocketType};

    #[test]
    fn connecting_times_out_in_full_queue() {
        let path = std::env::temp_dir().join(format!("gapless-dialing-{}", std::process::id()));
        let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        rustix::net::bind(&listener, &socket_address(&path).unwrap()).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let options = ConnectOptions {
            link: RingSizes { command_ring_bytes: 4096, reply_ring_bytes: 4096 },
            identity: StreamIdentity::default(),
            reads: false,
            seen: SeenFrame::default(),
            mtu: None,
            timeout: Duration::from_millis(20),
        };
        let give_up = || match connect(&path, &options) {
            Err(TransportError::TimedOut { peer, timeout_ms: 20, .. }) => peer,
            other => panic!("{:?}", other.err()),
        };
        let itself = format!("process {}", std::process::id());
        assert!(give_up().ends_with(&format!("({itself})")), "the first one is in the queue");
        let error = (0..16).find_map(|_| PendingDial::begin(&path, &options).err()).unwrap();
        assert!(is_queue_full(&error), "{error}");
        assert_eq!(give_up(), path.display().to_string(), "a full queue hides the peer's process");
        std::fs::remove_file(&path).unwrap();
    }
}
