//! [`Acceptor`]: checks a publisher's hello (stream, permission to read, history), tells the agents of new and lost
//! connections, and takes control requests. Connections are accepted below, in [`gapless_transport::listener`].

use crate::StreamError;
use crate::control_server::{ControlRequestState, ControlServer, answer};
use crate::history_check::HistoryCheck;
use crate::messages::{EgressMessage, PublisherEvent};
use gapless_agent::{FailureSlot, Waker};
use gapless_client::control_messages::{
    ControlRequest, ControlRequestError, ControlStatus, NodesRequest, REQUEST_LENGTH_MAX,
};
use gapless_client::{ClientError, ClientOptions, PolledClient};
use gapless_log::{MemoryKind, StreamIdentity, Window};
use gapless_transport::TransportError;
use gapless_transport::connect::other_mtu;
use gapless_transport::handshake::{HELLO_LENGTH, HandshakeStatus, Hello, Welcome};
use gapless_transport::link::{ConnectionId, RingSizes, ring_size_reason};
use gapless_transport::listener::{Listener, ListenerEvent, PendingPeer};
use gapless_transport::mailbox::Mailbox;
use gapless_transport::publisher_link::PublisherLink;
use gapless_transport::publisher_rings::{PublisherRings, ServiceEnds};
use gapless_transport::seen_frame::SeenFrame;
use gapless_transport::tier::Tier;
use gapless_wire::mtu::Mtu;
use rustix::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// Facts of the stream for publishers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamDescription {
    pub identity: StreamIdentity,
    /// Longest frame, bytes.
    pub frame_length_max: usize,
    /// Longest message, with all fragments, bytes.
    pub message_length_max: usize,
    /// Durability that a reply promises.
    pub tier: Tier,
    pub mtu: Option<Mtu>,
}

#[derive(Clone)]
pub struct AcceptorLinks {
    pub ingress: Mailbox<PublisherEvent>,
    /// The agent that sends replies.
    pub egress: Mailbox<EgressMessage>,
    pub ingress_waker: Waker,
    pub egress_waker: Waker,
}

pub struct Acceptor {
    state: Arc<AcceptorState>,
    socket_path: Option<PathBuf>,
    thread: Option<(Waker, JoinHandle<()>)>,
}

impl Acceptor {
    /// Starts listening on `socket_path` (mode 0600); without a path only [`Acceptor::connect`] admits publishers.
    /// Every publisher may read `window`; without one the stream has no readers. Without `control`, control requests
    /// are answered that the stream belongs to a service. A publisher whose history contradicts `history` is refused.
    ///
    /// # Errors
    /// A path that cannot be bound, or another service listening there already.
    pub fn start(
        socket_path: Option<&Path>,
        description: StreamDescription,
        links: AcceptorLinks,
        window: Option<Window>,
        control: Option<ControlServer>,
        history: Option<HistoryCheck>,
    ) -> Result<Self, StreamError> {
        let window = match window {
            Some(window) => {
                let read_only = window.read_only_fd()?;
                Some((window, read_only))
            }
            None => None,
        };
        let (next_connection, stopping) = (AtomicU32::new(1), AtomicBool::new(false));
        let failures = OnceLock::new();
        let state =
            Arc::new(AcceptorState { description, links, next_connection, stopping, failures, window, history });
        let mut thread = None;
        if let Some(path) = socket_path {
            let listener = Listener::bind(path, FIRST_MESSAGE_BYTES_MAX)?;
            let waker = listener.waker();
            let serving = AcceptorThread { state: Arc::clone(&state), listener, control };
            let started = gapless_agent::thread::spawn_helper("gapless-acceptor", move || serving.run());
            let started = started.map_err(|error| StreamError::System {
                action: "starting the acceptor's thread".to_owned(),
                source: std::io::Error::other(error),
            })?;
            thread = Some((waker, started));
        }
        Ok(Self { state, socket_path: socket_path.map(Path::to_owned), thread })
    }

    /// Admits a publisher of this process.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory for them.
    pub fn connect(&self, link: RingSizes) -> Result<PublisherLink, TransportError> {
        self.connect_local(link, false)
    }

    /// Connects a client of this process.
    ///
    /// # Errors
    /// As for [`Acceptor::connect`].
    pub fn client(&self, options: ClientOptions) -> Result<PolledClient, ClientError> {
        Ok(PolledClient::local(self.connect(options.link)?, options))
    }

    pub(crate) fn connect_checked(&self, link: RingSizes) -> Result<PublisherLink, TransportError> {
        self.connect_local(link, true)
    }

    fn connect_local(&self, link: RingSizes, is_checked: bool) -> Result<PublisherLink, TransportError> {
        let state = &self.state;
        if !link.is_valid() {
            let peer = "this process".to_owned();
            return Err(TransportError::Handshake { peer, status: None, reason: ring_size_reason(link) });
        }
        let rings = state.make_rings(link, &MemoryKind::Anonymous)?;
        let welcome = state.welcome(rings.connection());
        let window = state.window.as_ref().map(|(window, _)| window.clone());
        let (link, ends) = rings.split(welcome, state.links.ingress_waker.wake_fd(), window)?;
        state.announce(ends, is_checked);
        Ok(PublisherLink { failures: state.failures.get().cloned(), ..link })
    }

    /// Publishers of this process find the reason of a failure here; those of other processes get a message.
    pub(crate) fn watch(&self, failures: &FailureSlot) {
        // A stream starts its threads once.
        let _ = self.state.failures.set(failures.clone());
        if let Some((waker, _)) = &self.thread {
            failures.watch(waker);
        }
    }

    /// Reason for refusing a node with `mtu`.
    #[must_use]
    pub fn refuses_mtu(&self, mtu: Option<Mtu>) -> Option<String> {
        let ours = self.state.description.mtu;
        (mtu.is_some() && mtu != ours).then(|| other_mtu(ours, mtu))
    }

    /// Socket for other processes.
    #[must_use]
    pub fn socket_path(&self) -> Option<&Path> {
        self.socket_path.as_deref()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.state.stopping.store(true, Ordering::Release);
        if let Some((waker, thread)) = self.thread.take() {
            waker.interrupt();
            // The message of a panic has been printed already.
            let _ = thread.join();
        }
    }
}

struct AcceptorState {
    description: StreamDescription,
    links: AcceptorLinks,
    next_connection: AtomicU32,
    stopping: AtomicBool,
    failures: OnceLock<FailureSlot>,
    window: Option<(Window, OwnedFd)>,
    history: Option<HistoryCheck>,
}

impl AcceptorState {
    fn make_rings(&self, link: RingSizes, memory: &MemoryKind) -> Result<PublisherRings, TransportError> {
        // Relaxed: only uniqueness matters.
        let connection = ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed));
        PublisherRings::create(connection, link, memory, self.description.identity)
    }

    fn welcome(&self, connection: ConnectionId) -> Welcome {
        let description = &self.description;
        Welcome {
            status: HandshakeStatus::Welcome,
            connection: connection.0,
            identity: description.identity,
            frame_length_max: description.frame_length_max as u32,
            tier: description.tier as u32,
            process_id: u64::from(std::process::id()),
            message_length_max: description.message_length_max as u64,
            released_sequence: self.history.as_ref().map_or(0, HistoryCheck::released_sequence),
            mtu: None,
        }
    }

    fn failure(&self) -> Option<String> {
        Some(self.failures.get()?.failure()?.to_string())
    }

    fn refusal(&self, status: HandshakeStatus) -> Welcome {
        let mtu = self.description.mtu.filter(|_| status == HandshakeStatus::OtherMtu);
        Welcome { status, mtu, ..self.welcome(ConnectionId(0)) }
    }

    fn refuses(&self, hello: &Hello) -> Option<HandshakeStatus> {
        let ours = self.description.identity;
        if hello.identity.stream_id != 0 && hello.identity.stream_id != ours.stream_id {
            Some(HandshakeStatus::OtherStream)
        } else if hello.identity.incarnation != 0 && hello.identity.incarnation != ours.incarnation {
            Some(HandshakeStatus::OtherIncarnation)
        } else if !hello.link.is_valid() {
            Some(HandshakeStatus::RingSize)
        } else if hello.reads && self.window.is_none() {
            Some(HandshakeStatus::NotReadable)
        } else if self.contradicts(hello.seen) {
            Some(HandshakeStatus::OtherHistory)
        } else if hello.mtu.is_some() && hello.mtu != self.description.mtu {
            Some(HandshakeStatus::OtherMtu)
        } else {
            None
        }
    }

    fn contradicts(&self, seen: SeenFrame) -> bool {
        let contradiction = self.history.as_ref().and_then(|history| history.contradiction(seen));
        if let Some(contradiction) = contradiction {
            let SeenFrame { sequence, timestamp_ns, .. } = seen;
            tracing::error!(sequence, timestamp_ns, %contradiction, "a client has seen what this stream does not contain");
        }
        contradiction.is_some()
    }

    /// The egress agent first, so that every reply finds its publisher.
    fn announce(&self, ends: ServiceEnds, is_checked: bool) {
        let ServiceEnds { connection, commands: reader, replies: writer, wake } = ends;
        self.push_to_egress(EgressMessage::Opened { connection, writer, wake });
        self.push_to_ingress(PublisherEvent::Opened { connection, reader, is_checked });
    }

    fn announce_closed(&self, connection: ConnectionId) {
        self.push_to_ingress(PublisherEvent::Closed { connection });
        self.push_to_egress(EgressMessage::Closed { connection });
    }

    fn push_to_egress(&self, message: EgressMessage) {
        self.push(&self.links.egress, message, &self.links.egress_waker);
    }

    fn push_to_ingress(&self, message: PublisherEvent) {
        self.push(&self.links.ingress, message, &self.links.ingress_waker);
    }

    /// Waits while the mailbox is full, unless the stream has stopped or failed: then its agents take no more messages.
    fn push<T>(&self, mailbox: &Mailbox<T>, mut message: T, waker: &Waker) {
        while let Err(refused) = mailbox.push(message) {
            if self.is_stopping() || self.failures.get().is_some_and(FailureSlot::has_failed) {
                return;
            }
            message = refused;
            std::thread::sleep(Duration::from_millis(1));
        }
        waker.wake();
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

const FIRST_MESSAGE_BYTES_MAX: usize =
    if HELLO_LENGTH > REQUEST_LENGTH_MAX { HELLO_LENGTH } else { REQUEST_LENGTH_MAX } + 1;

/// The sequencer and the journal do not wake this thread, and commands are rare.
const OUTCOME_INTERVAL: Duration = Duration::from_millis(1);

enum AcceptedConnection {
    Publisher(ConnectionId),
    Request(u64),
}

struct AcceptorThread {
    state: Arc<AcceptorState>,
    listener: Listener<AcceptedConnection>,
    control: Option<ControlServer>,
}

impl AcceptorThread {
    fn run(mut self) {
        while !self.state.is_stopping() {
            let is_awaited =
                self.listener.accepted().any(|accepted| matches!(accepted, AcceptedConnection::Request(_)));
            let events = match self.listener.wait(is_awaited.then_some(OUTCOME_INTERVAL)) {
                Ok(events) => events,
                Err(error) => {
                    tracing::error!(%error, "the acceptor cannot wait; nobody new is let in");
                    return;
                }
            };
            if let Some(control) = &mut self.control {
                control.refresh();
            }
            for event in events {
                match event {
                    ListenerEvent::Message(peer, message) => self.take_first_message(peer, &message),
                    ListenerEvent::Closed(AcceptedConnection::Publisher(connection)) => {
                        self.state.announce_closed(connection);
                        if let Some(control) = &mut self.control {
                            control.node_disconnected(connection);
                        }
                    }
                    ListenerEvent::Closed(AcceptedConnection::Request(_)) => {}
                }
            }
            self.close_connections();
        }
        self.close_connections();
    }

    fn close_connections(&mut self) {
        let Self { state, listener, control } = self;
        let farewell =
            state.failure().map(|reason| state.refusal(HandshakeStatus::Unavailable).to_bytes_with_reason(&reason));
        listener.close_with(|accepted| match accepted {
            AcceptedConnection::Publisher(_) => farewell.clone(),
            AcceptedConnection::Request(number) => {
                control.as_mut().and_then(|control| control.outcome(*number)).map(|answer| answer.to_bytes().to_vec())
            }
        });
    }

    fn take_first_message(&mut self, peer: PendingPeer, message: &[u8]) {
        if ControlRequest::is_request_magic(message) {
            self.take_request(peer, ControlRequest::from_bytes(message));
        } else if let Some(hello) = Hello::from_bytes(message) {
            self.handle_hello(peer, &hello);
        } else if let Some(control) = &mut self.control {
            if let Some(request) = NodesRequest::from_bytes(message) {
                if peer.send(&control.nodes(request).to_bytes()) {
                    self.listener.keep_pending(peer);
                }
            } else {
                control.count_refused();
                let length = message.len();
                self.listener.warn(|| format!("a first message of {length} bytes is no hello and no request"));
            }
        }
    }

    fn take_request(&mut self, peer: PendingPeer, request: Result<ControlRequest, ControlRequestError>) {
        let Some(control) = &mut self.control else {
            let identity = self.state.description.identity;
            peer.send(&answer(ControlStatus::Service, identity, 0).to_bytes());
            return;
        };
        let answer = match request {
            Ok(request) => {
                tracing::info!(command = request.command.name(), "the stream is to be controlled");
                match control.ask(request) {
                    ControlRequestState::Pending(number) => {
                        return self.listener.accept(peer, AcceptedConnection::Request(number));
                    }
                    ControlRequestState::Answered(answer) => answer,
                }
            }
            Err(ControlRequestError::OtherVersion) => control.refuse(ControlStatus::OtherVersion),
            Err(ControlRequestError::Malformed) => {
                control.count_refused();
                return self.listener.warn(|| "a request is malformed".to_owned());
            }
        };
        peer.send(&answer.to_bytes());
    }

    fn handle_hello(&mut self, peer: PendingPeer, hello: &Hello) {
        let state = &self.state;
        if let Some(reason) = state.failure() {
            return peer.refuse_with_reason(&state.refusal(HandshakeStatus::Unavailable), &reason);
        }
        if let Some(status) = state.refuses(hello) {
            return peer.refuse(&state.refusal(status));
        }
        let rings = match state.make_rings(hello.link, &MemoryKind::Shared) {
            Ok(rings) => rings,
            Err(error) => {
                self.listener.warn(|| format!("a publisher was not let in: no rings for it: {error}"));
                return peer.refuse(&state.refusal(HandshakeStatus::Unavailable));
            }
        };
        let welcome = state.welcome(rings.connection());
        let window = state.window.as_ref().filter(|_| hello.reads).map(|(_, read_only)| read_only.as_fd());
        let wake_service = state.links.ingress_waker.wake_fd();
        let Some(ends) = peer.send_rings(rings, &welcome, wake_service, window) else { return };
        if let Some(control) = &mut self.control {
            control.node_connected(ends.connection, peer.process_id(), ends.replies.notes());
        }
        self.listener.accept(peer, AcceptedConnection::Publisher(ends.connection));
        state.announce(ends, false);
    }
}
