//! [`Listener`]: the socket for publishers of other processes. It reports first messages and ends of connections; the
//! caller decides on acceptance, and no frames pass here. `poll` waits on one socket for each connection: a process's
//! death closes its socket, so it is known at once.

use crate::TransportError;
use crate::handshake::{WELCOME_DESCRIPTORS_MAX, Welcome};
use crate::peer_process::{PeerCredentials, PeerProcess};
use crate::publisher_rings::{PublisherRings, ServiceEnds};
use crate::readiness;
use crate::socket_path::socket_address;
use crate::warnings::Warnings;
use gapless_agent::{Waker, checked_file, socket_file};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::io::{ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);
const PENDING_CHECK_INTERVAL: Duration = Duration::from_millis(100);
const FILE_CHECK_INTERVAL: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 500 });
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const CONNECTIONS_MAX: usize = 4096;

/// `A` is the caller's data of an accepted connection.
pub struct Listener<A> {
    socket: OwnedFd,
    path: PathBuf,
    waker: Waker,
    message_bytes_max: usize,
    connections: Vec<ListenerConnection<A>>,
    has_newcomers: bool,
    accepts_again: Option<Instant>,
    file_checked: Instant,
    warnings: Warnings,
}

struct ListenerConnection<A> {
    peer: PendingPeer,
    state: ConnectionState<A>,
}

enum ConnectionState<A> {
    Pending { since: Instant },
    Accepted(A),
}

/// First message not answered yet. Dropping it closes the connection.
pub struct PendingPeer {
    socket: OwnedFd,
    process_id: Option<u32>,
}

pub enum ListenerEvent<A> {
    Message(PendingPeer, Vec<u8>),
    /// The process has died, closed the connection, or sent another message.
    Closed(A),
}

impl<A> Listener<A> {
    /// Listens on the socket `path` (mode 0600); a first message longer than `message_bytes_max` is truncated.
    ///
    /// # Errors
    /// A path that cannot be bound, or another service listening there already.
    pub fn bind(path: &Path, message_bytes_max: usize) -> Result<Self, TransportError> {
        let waker =
            Waker::new().map_err(|source| TransportError::System { action: "making an eventfd".to_owned(), source })?;
        let (socket, path, connections) = (listen(path)?, path.to_owned(), Vec::new());
        Ok(Self {
            socket,
            path,
            waker,
            message_bytes_max,
            connections,
            has_newcomers: false,
            accepts_again: None,
            file_checked: Instant::now(),
            warnings: Warnings::default(),
        })
    }

    /// [`Waker::interrupt`] ends the current wait, or the next one, from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Sleeps until an event, a wake-up, or for `timeout`. New connections are accepted at the next call, after the
    /// caller has dropped some. A removed socket file is created again within a second.
    ///
    /// # Errors
    /// The operating system cannot wait.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Vec<ListenerEvent<A>>, TransportError> {
        if std::mem::take(&mut self.has_newcomers) {
            self.accept_new();
        }
        self.rebind_if_removed();
        let readable = self.poll(timeout).map_err(TransportError::system("waiting for publishers"))?;
        let mut events = Vec::new();
        let connections = std::mem::take(&mut self.connections);
        self.connections.reserve(connections.len());
        for (connection, is_readable) in connections.into_iter().zip(readable) {
            let ListenerConnection { peer, state } = connection;
            match state {
                ConnectionState::Pending { since } if !is_readable && since.elapsed() >= FIRST_MESSAGE_TIMEOUT => {}
                state if !is_readable => self.connections.push(ListenerConnection { peer, state }),
                ConnectionState::Pending { .. } => {
                    let message = peer.receive(self.message_bytes_max);
                    events.extend(message.map(|message| ListenerEvent::Message(peer, message)));
                }
                ConnectionState::Accepted(accepted) => events.push(ListenerEvent::Closed(accepted)),
            }
        }
        Ok(events)
    }

    /// Readability of the connections; after an interrupting signal, as known without waiting.
    fn poll(&mut self, timeout: Option<Duration>) -> Result<Vec<bool>, Errno> {
        let now = Instant::now();
        self.accepts_again = self.accepts_again.filter(|at| *at > now);
        let newcomers = if self.accepts_again.is_some() { PollFlags::empty() } else { PollFlags::IN };
        let wake = self.waker.wake_fd();
        let mut fds = vec![PollFd::new(&wake, PollFlags::IN), PollFd::new(&self.socket, newcomers)];
        fds.extend(self.connections.iter().map(|connection| PollFd::new(&connection.peer.socket, PollFlags::IN)));
        let has_pending = self.connections.iter().any(|each| matches!(each.state, ConnectionState::Pending { .. }));
        let check = has_pending.then_some(PENDING_CHECK_INTERVAL);
        let pause = self.accepts_again.map(|at| at - now);
        let until = timeout.into_iter().chain(check).chain(pause).min().map(|within| now + within);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            readiness::wait(&mut fds, left.into_iter().chain([FILE_CHECK_INTERVAL]).min())?;
            let is_over = until.is_some_and(|until| until <= Instant::now());
            if is_over || fds.iter().any(|fd| !fd.revents().is_empty()) || self.is_removed() {
                break;
            }
        }
        if !fds[0].revents().is_empty() {
            // Empties the counter; failing on an empty one is fine too.
            let _ = rustix::io::read(wake, &mut [0u8; 8]);
        }
        self.has_newcomers = fds[1].revents().contains(PollFlags::IN);
        Ok(fds[2..].iter().map(|fd| !fd.revents().is_empty()).collect())
    }

    /// [`ListenerEvent::Closed`] reports its end.
    pub fn accept(&mut self, peer: PendingPeer, accepted: A) {
        self.connections.push(ListenerConnection { peer, state: ConnectionState::Accepted(accepted) });
    }

    pub fn keep_pending(&mut self, peer: PendingPeer) {
        self.connections.push(ListenerConnection { peer, state: ConnectionState::Pending { since: Instant::now() } });
    }

    pub fn accepted(&self) -> impl Iterator<Item = &A> {
        self.connections.iter().filter_map(|connection| match &connection.state {
            ConnectionState::Accepted(accepted) => Some(accepted),
            ConnectionState::Pending { .. } => None,
        })
    }

    /// Sends a last message to each accepted connection for which `answer` has one, and closes it.
    pub fn close_with(&mut self, mut answer: impl FnMut(&A) -> Option<Vec<u8>>) {
        self.connections.retain(|connection| {
            let ConnectionState::Accepted(accepted) = &connection.state else { return true };
            let message = answer(accepted);
            if let Some(message) = &message {
                connection.peer.send(message);
            }
            message.is_none()
        });
    }

    /// At most once a second.
    pub fn warn(&mut self, text: impl FnOnce() -> String) {
        self.warnings.warn_now(text);
    }

    /// Binds the socket again if its file was removed, as long as its directory exists.
    fn rebind_if_removed(&mut self) {
        if self.file_checked.elapsed() < FILE_CHECK_INTERVAL {
            return;
        }
        self.file_checked = Instant::now();
        if !self.is_removed() {
            return;
        }
        self.accept_new();
        let path = self.path.display();
        match listen(&self.path) {
            Ok(socket) => {
                self.socket = socket;
                tracing::warn!("the socket {path} was removed, and was made again");
            }
            Err(error) => self.warnings.warn_now(|| format!("the socket {path} was removed: {error}")),
        }
    }

    fn is_removed(&self) -> bool {
        let is_missing =
            |path: &Path| matches!(path.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
        let has_directory = || self.path.parent().is_none_or(|parent| parent == Path::new("") || !is_missing(parent));
        is_missing(&self.path) && has_directory()
    }

    fn accept_new(&mut self) {
        loop {
            let socket = match rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(errno) => {
                    // Out of descriptors or memory; the readable socket would keep the thread awake.
                    self.accepts_again = Some(Instant::now() + ACCEPT_PAUSE);
                    return self.warnings.warn_now(|| format!("publishers must wait to be let in: {errno}"));
                }
            };
            let count = self.connections.len();
            let peer = match PeerCredentials::of(&socket) {
                Ok(peer) if peer.is_trusted() && count < CONNECTIONS_MAX => peer,
                refused => {
                    self.warnings.warn_now(|| match refused {
                        Err(error) => format!("a publisher was not let in: asking who it is: {error}"),
                        Ok(peer) if peer.is_trusted() => format!("a publisher was not let in: {count} are connected"),
                        Ok(peer) => format!("a publisher of another user, {}, was not let in", peer.user_id),
                    });
                    continue;
                }
            };
            self.keep_pending(PendingPeer { socket, process_id: peer.process.map(PeerProcess::id) });
        }
    }
}

impl<A> Drop for Listener<A> {
    fn drop(&mut self) {
        // A missing socket file is fine.
        let _ = checked_file::remove(&self.path);
    }
}

impl PendingPeer {
    /// `None` in another namespace.
    #[must_use]
    pub const fn process_id(&self) -> Option<u32> {
        self.process_id
    }

    fn receive(&self, message_bytes_max: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; message_bytes_max];
        let (length, _) = rustix::net::recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT).ok()?;
        bytes.truncate(length);
        (length > 0).then_some(bytes)
    }

    /// Whether the peer's socket has taken it.
    pub fn send(&self, message: &[u8]) -> bool {
        rustix::net::send(&self.socket, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_ok()
    }

    pub fn refuse(self, refusal: &Welcome) {
        // A publisher that does not read its refusal is gone anyway.
        let _ = self.send_welcome(refusal, &[]);
    }

    pub fn refuse_with_reason(self, refusal: &Welcome, reason: &str) {
        // A publisher that does not read it is gone anyway.
        self.send(&refusal.to_bytes_with_reason(reason));
    }

    /// Welcome with the publisher's ends of `rings`, the descriptor that wakes the service and, for a reader, that of
    /// the `window`. Returns the service's ends; `None` if the publisher is gone.
    #[must_use]
    pub fn send_rings(
        &self,
        rings: PublisherRings,
        welcome: &Welcome,
        wake_service: BorrowedFd<'_>,
        window: Option<BorrowedFd<'_>>,
    ) -> Option<ServiceEnds> {
        let mut descriptors = rings.descriptors(wake_service).to_vec();
        descriptors.extend(window);
        self.send_welcome(welcome, &descriptors).ok()?;
        Some(rings.leave_to_peer())
    }

    fn send_welcome(&self, welcome: &Welcome, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let bytes = welcome.to_bytes();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(WELCOME_DESCRIPTORS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            let pushed = control.push(SendAncillaryMessage::ScmRights(descriptors));
            assert!(pushed, "the space is made for {WELCOME_DESCRIPTORS_MAX} descriptors");
        }
        rustix::net::sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

fn listen(path: &Path) -> Result<OwnedFd, TransportError> {
    let failed = || TransportError::system(format!("listening on {}", path.display()));
    let address = socket_address(path)
        .map_err(|source| TransportError::System { action: format!("listening on {}", path.display()), source })?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = || rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    if path.exists() {
        // A killed service leaves its socket file without a listener.
        let probe = socket().map_err(failed())?;
        match rustix::net::connect(&probe, &address) {
            Err(Errno::CONNREFUSED) => {
                let action = format!("listening on {}", path.display());
                checked_file::remove(path).map_err(|source| TransportError::System { action, source })?;
            }
            // A stalled process that accepts no connections still listens.
            Ok(()) | Err(Errno::AGAIN) => {
                let (peer, reason) = (path.display().to_string(), "another service listens there".to_owned());
                return Err(TransportError::Handshake { peer, status: None, reason });
            }
            Err(errno) => return Err(failed()(errno)),
        }
    }
    let listener = socket().map_err(failed())?;
    socket_file::bind_for_user(&listener, path, &address)
        .map_err(|source| TransportError::System { action: format!("listening on {}", path.display()), source })?;
    rustix::net::listen(&listener, 128).map_err(failed())?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::{ConnectOptions, shared_memory};
    use crate::handshake::{HELLO_LENGTH, HandshakeStatus, Hello};
    use crate::link::{ConnectionId, RingSizes};
    use crate::publisher_link::new_eventfd;
    use crate::seen_frame::SeenFrame;
    use crate::socket_path::connect_packets;
    use gapless_log::{MemoryKind, StreamIdentity};
    use gapless_testkit::wait::until;
    use rustix::fd::AsFd;

    const IDENTITY: StreamIdentity = StreamIdentity { stream_id: 7, incarnation: 9 };

    fn next_event(listener: &mut Listener<u32>) -> ListenerEvent<u32> {
        loop {
            let events = listener.wait(Some(Duration::from_secs(5))).unwrap();
            if let Some(event) = events.into_iter().next() {
                return event;
            }
        }
    }

    #[test]
    fn publisher_gets_rings_death_is_seen() {
        let path = std::env::temp_dir().join(format!("gapless-listener-{}", std::process::id()));
        let mut listener = Listener::bind(&path, HELLO_LENGTH + 1).unwrap();
        assert!(Listener::<u32>::bind(&path, HELLO_LENGTH).is_err(), "another one listens there");
        let options = ConnectOptions {
            link: RingSizes { command_ring_bytes: 4096, reply_ring_bytes: 4096 },
            identity: IDENTITY,
            reads: false,
            seen: SeenFrame::none_seen(IDENTITY),
            mtu: None,
            timeout: Duration::from_secs(5),
        };
        let to = path.clone();
        let publisher = std::thread::spawn(move || shared_memory::connect(&to, &options).unwrap());
        let ListenerEvent::Message(peer, message) = next_event(&mut listener) else {
            panic!("nothing is accepted yet")
        };
        assert_eq!(peer.process_id(), Some(std::process::id()));
        let hello = Hello::from_bytes(&message).unwrap();
        let rings = PublisherRings::create(ConnectionId(3), hello.link, &MemoryKind::Shared, hello.identity).unwrap();
        let welcome = Welcome {
            status: HandshakeStatus::Welcome,
            connection: 3,
            identity: IDENTITY,
            frame_length_max: 1024,
            tier: 0,
            process_id: 1,
            message_length_max: 1024,
            released_sequence: 0,
            mtu: None,
        };
        let wake_service = new_eventfd().unwrap();
        let ends = peer.send_rings(rings, &welcome, wake_service.as_fd(), None).unwrap();
        listener.accept(peer, 3);
        let link = publisher.join().unwrap();
        assert_eq!((link.welcome, ends.connection), (welcome, ConnectionId(3)));
        assert_eq!(listener.accepted().collect::<Vec<_>>(), [&3]);
        drop(link);
        assert!(matches!(next_event(&mut listener), ListenerEvent::Closed(3)));
        assert!(ends.commands.is_writer_closed(), "its rings are closed too");
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn removed_socket_is_recreated() {
        let folder = std::env::temp_dir().join(format!("gapless-removed-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("socket");
        let mut listener = Listener::<u32>::bind(&path, HELLO_LENGTH).unwrap();
        let mut is_there_again = || {
            assert!(listener.wait(Some(FILE_CHECK_INTERVAL)).unwrap().is_empty());
            path.exists()
        };
        std::fs::remove_file(&path).unwrap();
        until("it is there again", &mut is_there_again);
        assert!(connect_packets(&path).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
        (0..2).for_each(|_| assert!(!is_there_again()));
        std::fs::create_dir(&folder).unwrap();
        until("it is there once more", is_there_again);
        drop(listener);
        std::fs::remove_dir(&folder).unwrap();
    }
}
