//! [`Acceptor`]: lets publishers in, makes their rings, and notices when they are gone.
//!
//! It never touches a frame. Its thread sleeps in `poll` on the listening socket and on one socket
//! for each publisher; a publisher's death closes its socket, so it is known at once.

use crate::StreamError;
use crate::control_desk::{Asked, ControlDesk, answer};
use crate::messages::{ForDelivery, ForIngress};
use crate::past::Past;
use gapless_agent::Waker;
use gapless_client::control_messages::{
    ControlAnswer, ControlRequest, ControlStatus, NoRequest, NodesRequest, REQUEST_LENGTH_MAX,
};
use gapless_client::{Client, ClientError, ClientOptions};
use gapless_log::{MemoryKind, RingReader, RingWriter, StreamIdentity, Window, ring};
use gapless_transport::TransportError;
use gapless_transport::handshake::{HELLO_LENGTH, Hello, Status, WELCOME_DESCRIPTORS_MAX, Welcome};
use gapless_transport::link::{ConnectionId, LinkOptions, ring_size_reason};
use gapless_transport::mailbox::Mailbox;
use gapless_transport::publisher_link::{PublisherLink, new_eventfd};
use gapless_transport::seen::Seen;
use gapless_transport::tier::Tier;
use gapless_transport::warnings::Warnings;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A publisher must say hello within this time.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);
/// Publishers at one time.
pub const CONNECTIONS_MAX: usize = 4096;

/// What the acceptor tells publishers about the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamDescription {
    /// Which stream and which life of it.
    pub identity: StreamIdentity,
    /// The longest frame, bytes.
    pub frame_length_max: usize,
    /// The longest message with all its fragments, bytes.
    pub message_length_max: usize,
    /// What a reply promises.
    pub tier: Tier,
}

/// Whom the acceptor tells about publishers.
#[derive(Clone)]
pub struct AcceptorLinks {
    /// The sequencer's agent.
    pub ingress: Mailbox<ForIngress>,
    /// Whoever sends replies.
    pub delivery: Mailbox<ForDelivery>,
    /// Wakes the sequencer's thread.
    pub ingress_waker: Waker,
    /// Wakes the thread that sends replies.
    pub delivery_waker: Waker,
}

struct Room {
    description: StreamDescription,
    links: AcceptorLinks,
    next_connection: AtomicU32,
    stopping: AtomicBool,
    /// What readers of an event stream get: the window, and a descriptor of it that cannot write.
    window: Option<(Window, OwnedFd)>,
    past: Option<Past>,
}

/// Lets publishers in.
pub struct Acceptor {
    room: Arc<Room>,
    socket_path: Option<PathBuf>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Starts listening on `socket_path` (mode 0600); without a path only [`Acceptor::connect`] lets in. Whoever comes
    /// may read `window`; without one there are publishers only. Who asks to control the stream is sent to `desk`;
    /// without one it is told that the stream is a service's. Who has seen what `past` contradicts is refused.
    ///
    /// # Errors
    /// A path that cannot be bound, another service that listens there already.
    pub fn start(
        socket_path: Option<&Path>,
        description: StreamDescription,
        links: AcceptorLinks,
        window: Option<Window>,
        desk: Option<ControlDesk>,
        past: Option<Past>,
    ) -> Result<Self, StreamError> {
        let window = match window {
            Some(window) => {
                let read_only = window.read_only_fd()?;
                Some((window, read_only))
            }
            None => None,
        };
        let (next_connection, stopping) = (AtomicU32::new(1), AtomicBool::new(false));
        let room = Arc::new(Room { description, links, next_connection, stopping, window, past });
        let stop = Arc::new(new_eventfd()?);
        let mut thread = None;
        if let Some(path) = socket_path {
            let listener = listen(path)?;
            let (thread_room, thread_stop) = (Arc::clone(&room), Arc::clone(&stop));
            let run = move || serve(&thread_room, &listener, &thread_stop, desk);
            let started = gapless_agent::thread::spawn_helper("gapless-acceptor", run);
            thread = Some(started.map_err(|error| StreamError::System {
                action: "starting the acceptor's thread".to_owned(),
                source: std::io::Error::other(error),
            })?);
        }
        Ok(Self { room, socket_path: socket_path.map(Path::to_owned), stop, thread })
    }

    /// Lets in a publisher of this process.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory for them.
    pub fn connect(&self, link: LinkOptions) -> Result<PublisherLink, TransportError> {
        self.make(link, false)
    }

    /// A client of this process.
    ///
    /// # Errors
    /// As for [`Acceptor::connect`].
    pub fn client(&self, options: ClientOptions) -> Result<Client, ClientError> {
        Ok(Client::local(self.connect(options.link)?, options))
    }

    /// As [`Acceptor::connect`], for who checks both checksums of each frame before it publishes it.
    ///
    /// # Errors
    /// As for [`Acceptor::connect`].
    pub(crate) fn connect_checked(&self, link: LinkOptions) -> Result<PublisherLink, TransportError> {
        self.make(link, true)
    }

    fn make(&self, link: LinkOptions, is_checked: bool) -> Result<PublisherLink, TransportError> {
        let peer = "this process".to_owned();
        if !link.is_valid() {
            return Err(TransportError::Handshake { peer, status: None, reason: ring_size_reason(link) });
        }
        let made = self.room.make(link, MemoryKind::Anonymous)?;
        let wake_service = duplicate(self.room.links.ingress_waker.wake_fd())?;
        let wake_publisher = duplicate(made.wake.as_fd())?;
        let link = PublisherLink {
            welcome: self.room.welcome(made.connection),
            writer: made.command_writer,
            reader: made.reply_reader,
            wake_service,
            wake_publisher,
            socket: None,
            window: self.room.window.as_ref().map(|(window, _)| window.clone()),
            pump: None,
        };
        let Made { connection, command_reader: reader, reply_writer, wake, .. } = made;
        self.room.announce(ForIngress::Opened { connection, reader, is_checked }, connection, reply_writer, wake);
        Ok(link)
    }

    /// Where other processes connect.
    #[must_use]
    pub fn socket_path(&self) -> Option<&Path> {
        self.socket_path.as_deref()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.room.stopping.store(true, Ordering::Release);
        // Writing 1 to an eventfd fails only when its counter is full, which wakes the thread as well.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by its message already.
            let _ = thread.join();
        }
        if let Some(path) = &self.socket_path {
            // A socket file that is gone already is what we want.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Both ends of a new publisher's rings.
struct Made {
    connection: ConnectionId,
    command_writer: RingWriter,
    command_reader: RingReader,
    reply_writer: RingWriter,
    reply_reader: RingReader,
    wake: Arc<OwnedFd>,
}

impl Room {
    fn make(&self, link: LinkOptions, memory: MemoryKind) -> Result<Made, TransportError> {
        let identity = self.description.identity;
        let (command_writer, command_reader) = ring::create(&memory, link.command_ring_bytes, identity)?;
        let (reply_writer, reply_reader) = ring::create(&memory, link.reply_ring_bytes, identity)?;
        let wake = Arc::new(new_eventfd()?);
        // Relaxed: only uniqueness matters.
        let connection = ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed));
        Ok(Made { connection, command_writer, command_reader, reply_writer, reply_reader, wake })
    }

    fn welcome(&self, connection: ConnectionId) -> Welcome {
        let description = &self.description;
        Welcome {
            status: Status::Welcome,
            connection: connection.0,
            identity: description.identity,
            frame_length_max: description.frame_length_max as u32,
            tier: description.tier as u32,
            process_id: u64::from(std::process::id()),
            message_length_max: description.message_length_max as u64,
            released_sequence: self.past.as_ref().map_or(0, Past::released_sequence),
        }
    }

    fn contradicts(&self, seen: Seen) -> bool {
        let contradiction = self.past.as_ref().and_then(|past| past.contradiction(seen));
        if let Some(contradiction) = contradiction {
            let Seen { sequence, timestamp_ns, .. } = seen;
            tracing::error!(sequence, timestamp_ns, %contradiction, "a client has seen what this stream does not contain");
        }
        contradiction.is_some()
    }

    fn refusal(&self, status: Status) -> Welcome {
        Welcome { status, ..self.welcome(ConnectionId(0)) }
    }

    /// Whoever sends replies hears of a publisher before the sequencer does, so no reply finds nobody.
    fn announce(&self, opened: ForIngress, connection: ConnectionId, writer: RingWriter, wake: Arc<OwnedFd>) {
        self.tell_delivery(ForDelivery::Opened { connection, writer, wake });
        self.tell_ingress(opened);
    }

    fn farewell(&self, connection: ConnectionId) {
        self.tell_ingress(ForIngress::Closed { connection });
        self.tell_delivery(ForDelivery::Closed { connection });
    }

    fn tell_delivery(&self, mut message: ForDelivery) {
        while let Err(refused) = self.links.delivery.push(message) {
            if self.stopping() {
                return;
            }
            message = refused;
            std::thread::sleep(Duration::from_millis(1));
        }
        self.links.delivery_waker.wake();
    }

    fn tell_ingress(&self, mut message: ForIngress) {
        while let Err(refused) = self.links.ingress.push(message) {
            if self.stopping() {
                return;
            }
            message = refused;
            std::thread::sleep(Duration::from_millis(1));
        }
        self.links.ingress_waker.wake();
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

enum Stage {
    /// Has connected and not said hello.
    Silent(Instant),
    /// Is in.
    In(ConnectionId),
    /// Has asked for something, by this number, and waits until it is done.
    Waiting(u64),
}

struct Guest {
    socket: OwnedFd,
    process_id: Option<u32>,
    stage: Stage,
}

fn serve(room: &Room, listener: &OwnedFd, stop: &OwnedFd, mut desk: Option<ControlDesk>) {
    let mut guests: Vec<Guest> = Vec::new();
    let mut warnings = Warnings::default();
    while !room.stopping() {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        fds.extend(guests.iter().map(|guest| PollFd::new(&guest.socket, PollFlags::IN)));
        let hello_due = guests.iter().any(|guest| matches!(guest.stage, Stage::Silent(_)));
        // What a command waits for, the sequencer and the journal, wakes nobody here; there are few of them.
        let is_awaited = guests.iter().any(|guest| matches!(guest.stage, Stage::Waiting(_)));
        let interval_ns = if is_awaited { 1_000_000 } else { 100_000_000 };
        let timeout = (hello_due || is_awaited).then_some(rustix::time::Timespec { tv_sec: 0, tv_nsec: interval_ns });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "the acceptor cannot wait; nobody new is let in");
                return;
            }
        }
        let came = fds[1].revents().contains(PollFlags::IN);
        let spoke: Vec<bool> = fds[2..].iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        if let Some(desk) = &mut desk {
            desk.refresh();
        }
        let mut spoke = spoke.into_iter();
        guests.retain_mut(|guest| {
            let spoke = spoke.next().unwrap_or(false);
            let stays = match (&guest.stage, spoke) {
                (Stage::Silent(since), false) => since.elapsed() < HELLO_TIMEOUT,
                (Stage::In(_), false) => true,
                (Stage::Silent(_), true) => listen_to(room, guest, desk.as_mut(), &mut warnings),
                (Stage::Waiting(number), false) => !is_answered(&guest.socket, *number, desk.as_mut()),
                // Whatever a publisher says after its hello, or its end, is the end.
                (Stage::In(_) | Stage::Waiting(_), true) => false,
            };
            if let (false, Stage::In(connection)) = (stays, &guest.stage) {
                room.farewell(*connection);
                if let Some(desk) = &mut desk {
                    desk.left(*connection);
                }
            }
            stays
        });
        if came {
            let_in(listener, &mut guests, &mut warnings);
        }
    }
}

fn let_in(listener: &OwnedFd, guests: &mut Vec<Guest>, warnings: &mut Warnings) {
    while let Ok(socket) = rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        let (stranger, process_id) = match rustix::net::sockopt::socket_peercred(&socket) {
            Ok(credentials) => {
                let own = rustix::process::geteuid();
                let process_id = u32::try_from(credentials.pid.as_raw_nonzero().get()).ok();
                (credentials.uid != own && !credentials.uid.is_root(), process_id)
            }
            Err(_) => (true, None),
        };
        if stranger || guests.len() >= CONNECTIONS_MAX {
            let count = guests.len();
            warnings.warn_now(|| match stranger {
                true => "a publisher of another user was not let in".to_owned(),
                false => format!("a publisher was not let in: {count} are connected"),
            });
            continue;
        }
        guests.push(Guest { socket, process_id, stage: Stage::Silent(Instant::now()) });
    }
}

/// Longer than any first word, bytes: what does not fit is none.
const FIRST_WORD_ROOM: usize = if HELLO_LENGTH > REQUEST_LENGTH_MAX { HELLO_LENGTH } else { REQUEST_LENGTH_MAX } + 1;

/// Answers a guest's first word; whether the guest stays.
fn listen_to(room: &Room, guest: &mut Guest, desk: Option<&mut ControlDesk>, warnings: &mut Warnings) -> bool {
    let mut bytes = [0; FIRST_WORD_ROOM];
    let Ok((length, _)) = rustix::net::recv(&guest.socket, &mut bytes, RecvFlags::DONTWAIT) else { return false };
    let word = &bytes[..length];
    if ControlRequest::is_meant(word) {
        return control(room, guest, ControlRequest::from_bytes(word), desk, warnings);
    }
    if let Some(hello) = Hello::from_bytes(word) {
        return greet(room, guest, &hello, desk);
    }
    if let Some(request) = NodesRequest::from_bytes(word) {
        let Some(desk) = desk else { return false };
        // The next page is asked for by the same connection.
        guest.stage = Stage::Silent(Instant::now());
        let (page, flags) = (desk.nodes(request).to_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        return rustix::net::send(&guest.socket, &page, flags).is_ok();
    }
    // Who says nothing at all and goes has only looked whether somebody is here.
    if let (Some(desk), true) = (desk, length > 0) {
        desk.count_refused();
        warnings.warn_now(|| format!("somebody's first word, of {length} bytes, is no hello and no request"));
    }
    false
}

/// Passes a request on; whether the guest waits for what becomes of it.
fn control(
    room: &Room,
    guest: &mut Guest,
    request: Result<ControlRequest, NoRequest>,
    desk: Option<&mut ControlDesk>,
    warnings: &mut Warnings,
) -> bool {
    let Some(desk) = desk else {
        say(&guest.socket, &answer(ControlStatus::Service, room.description.identity, 0));
        return false;
    };
    let answer = match request {
        Ok(request) => {
            tracing::info!(command = request.command.name(), "the stream is to be controlled");
            match desk.ask(request) {
                Asked::Waits(number) => {
                    guest.stage = Stage::Waiting(number);
                    return true;
                }
                Asked::Answered(answer) => answer,
            }
        }
        Err(NoRequest::OtherVersion) => desk.refuse(ControlStatus::OtherVersion),
        Err(NoRequest::Malformed) => {
            desk.count_refused();
            warnings.warn_now(|| "a request is malformed".to_owned());
            return false;
        }
    };
    say(&guest.socket, &answer);
    false
}

/// Whether the request `number` is done and its asker told.
fn is_answered(socket: &OwnedFd, number: u64, desk: Option<&mut ControlDesk>) -> bool {
    let answer = desk.and_then(|desk| desk.outcome(number));
    if let Some(answer) = &answer {
        say(socket, answer);
    }
    answer.is_some()
}

fn say(socket: &OwnedFd, answer: &ControlAnswer) {
    // Who does not take its answer is gone.
    let _ = rustix::net::send(socket, &answer.to_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// Answers a hello; whether the guest stays.
fn greet(room: &Room, guest: &mut Guest, hello: &Hello, desk: Option<&mut ControlDesk>) -> bool {
    let ours = room.description.identity;
    let refused = if hello.identity.stream_id != 0 && hello.identity.stream_id != ours.stream_id {
        Some(Status::OtherStream)
    } else if hello.identity.incarnation != 0 && hello.identity.incarnation != ours.incarnation {
        Some(Status::OtherIncarnation)
    } else if !hello.link.is_valid() {
        Some(Status::RingSize)
    } else if hello.reads && room.window.is_none() {
        Some(Status::NotReadable)
    } else if room.contradicts(hello.seen) {
        Some(Status::OtherHistory)
    } else {
        None
    };
    let made = match refused {
        Some(status) => Err(status),
        None => room.make(hello.link, MemoryKind::Shared).map_err(|error| {
            tracing::error!(%error, "no rings for a new publisher");
            Status::Unavailable
        }),
    };
    match made {
        Err(status) => {
            // A guest that does not read its refusal is gone anyway.
            let _ = send_welcome(&guest.socket, &room.refusal(status), &[]);
            false
        }
        Ok(made) => {
            let service_wake = room.links.ingress_waker.wake_fd();
            let mut fds = vec![made.command_writer.fd(), made.reply_reader.fd(), service_wake, made.wake.as_fd()];
            fds.extend(room.window.iter().filter(|_| hello.reads).map(|(_, read_only)| read_only.as_fd()));
            if send_welcome(&guest.socket, &room.welcome(made.connection), &fds).is_err() {
                return false;
            }
            // The other process has its own ends over the same memory; ours of them must not announce
            // themselves closed when they are dropped.
            made.command_writer.leave_to_peer();
            made.reply_reader.leave_to_peer();
            guest.stage = Stage::In(made.connection);
            if let Some(desk) = desk {
                desk.came(made.connection, guest.process_id, made.reply_writer.notes());
            }
            let Made { connection, command_reader: reader, reply_writer, wake, .. } = made;
            room.announce(ForIngress::Opened { connection, reader, is_checked: false }, connection, reply_writer, wake);
            true
        }
    }
}

fn send_welcome(
    socket: &OwnedFd,
    welcome: &Welcome,
    fds: &[rustix::fd::BorrowedFd<'_>],
) -> Result<(), rustix::io::Errno> {
    let bytes = welcome.to_bytes();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(WELCOME_DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        let pushed = control.push(SendAncillaryMessage::ScmRights(fds));
        assert!(pushed, "the space is made for {WELCOME_DESCRIPTORS_MAX} descriptors");
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn listen(path: &Path) -> Result<OwnedFd, StreamError> {
    let action = || format!("listening on {}", path.display());
    let address = SocketAddrUnix::new(path).map_err(StreamError::system(action()))?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = |flags| rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    if path.exists() {
        // A socket file without a listener is what a killed service leaves behind.
        let probe = socket(SocketFlags::CLOEXEC).map_err(StreamError::system(action()))?;
        match rustix::net::connect(&probe, &address) {
            Err(rustix::io::Errno::CONNREFUSED) => {
                std::fs::remove_file(path).map_err(|source| StreamError::System { action: action(), source })?;
            }
            Ok(()) => {
                let peer = path.display().to_string();
                return Err(StreamError::Handshake {
                    peer,
                    status: None,
                    reason: "another service listens there".to_owned(),
                });
            }
            Err(errno) => return Err(StreamError::system(action())(errno)),
        }
    }
    let listener = socket(flags).map_err(StreamError::system(action()))?;
    rustix::net::bind(&listener, &address).map_err(StreamError::system(action()))?;
    rustix::fs::chmod(path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).map_err(StreamError::system(action()))?;
    rustix::net::listen(&listener, 128).map_err(StreamError::system(action()))?;
    Ok(listener)
}

fn duplicate(fd: rustix::fd::BorrowedFd<'_>) -> Result<OwnedFd, TransportError> {
    rustix::io::fcntl_dupfd_cloexec(fd, 0).map_err(TransportError::system("duplicating a descriptor"))
}
