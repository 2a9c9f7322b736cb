//! [`TcpLink`]: upstream by packets to the command port, downstream by SoupBinTCP from the rewind port. A broken
//! connection continues at the same position.

use super::feed_receiver::check;
use super::link::{ConnectionInfo, LinkRead, NodeLink, Start};
use super::rewind::{Rewind, RewindError, RewindRequest};
use super::upstream::{connected, hello, refusal_error, report, welcome_feed};
use crate::ClientError;
use crate::feed_sessions::Feed;
use crate::node_progress::ProgressReport;
use gapless_transport::TransportError;
use gapless_transport::network::TcpConnection;
use gapless_transport::network::tcp::Received;
use gapless_transport::seen_frame::SeenFrame;
use gapless_transport::token::random_token;
use gapless_wire::mtu::Mtu;
use gapless_wire::soup::{Field, RejectReason};
use gapless_wire::upstream::{
    HEADER_LENGTH, NodeHello, NodeWelcome, PACKET_LENGTH_MAX, RefusalReason, UpstreamBody, UpstreamPacket,
    finish_frames,
};
use gapless_wire::{Frame, aligned_length, upstream};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use std::net::SocketAddr;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    pub command: SocketAddr,
    pub rewind: SocketAddr,
    pub username: Field<6>,
    pub password: Field<10>,
    /// Silence after which the sequencer counts as gone, ns; it sends a heartbeat each second.
    pub silence_ns_max: u64,
    /// Stated by the node; without one it takes the stream's.
    pub mtu: Option<Mtu>,
}

impl TcpOptions {
    #[must_use]
    pub const fn new(command: SocketAddr, rewind: SocketAddr) -> Self {
        let silence_ns_max = 3_000_000_000;
        Self { command, rewind, username: Field::BLANK, password: Field::BLANK, silence_ns_max, mtu: None }
    }
}

pub struct TcpLink {
    options: TcpOptions,
    state: TcpLinkState,
    next_attempt_ns: u64,
    progress: Option<ProgressReport>,
    now_ns: u64,
    /// Begins with room for the header; empty without frames.
    packet: Vec<u8>,
    rewind_lacks_frame: Option<u64>,
}

enum TcpLinkState {
    Down,
    Connecting(PendingTcpConnection),
    Up(Box<StreamConnection>),
}

struct PendingTcpConnection {
    connection: TcpConnection,
    nonce: u64,
    start: Start,
    since_ns: u64,
}

struct StreamConnection {
    connection: TcpConnection,
    key: u64,
    nonce: u64,
    feed: Option<Feed>,
    rewind: Option<Rewind>,
    next: u64,
    released_sequence: u64,
    last_packet_ns: u64,
    reported_ns: u64,
    heartbeat_interval_ns: u64,
    asked_feed_ns: u64,
    looks: u32,
}

const ATTEMPT_INTERVAL_NS: u64 = 5_000_000;
const REFUSED_INTERVAL_NS: u64 = 100_000_000;
const ASK_INTERVAL_NS: u64 = 20_000_000;
const COMMAND_BYTES: usize = PACKET_LENGTH_MAX;
const PACKET_LENGTH: usize = 60_000;
/// The command port rarely sends: it is read in one of this many polls.
const LOOKS_PER_COMMAND: u32 = 8;
/// Reports must be sent in time.
const WAIT_MAX: Duration = Duration::from_millis(50);

impl TcpLink {
    #[must_use]
    pub const fn new(options: TcpOptions) -> Self {
        Self {
            options,
            state: TcpLinkState::Down,
            next_attempt_ns: 0,
            progress: None,
            now_ns: 0,
            packet: Vec::new(),
            rewind_lacks_frame: None,
        }
    }

    fn dial(&mut self, start: Start, seen: SeenFrame, now_ns: u64) {
        self.next_attempt_ns = now_ns + ATTEMPT_INTERVAL_NS;
        self.state = TcpLinkState::Down;
        let Ok(mut connection) = TcpConnection::connect(self.options.command, COMMAND_BYTES, COMMAND_BYTES) else {
            return;
        };
        let nonce = random_token() as u64 | 1;
        send_control(&mut connection, 0, UpstreamBody::Hello(self.hello(nonce, start.wire_position(), seen)));
        self.state = TcpLinkState::Connecting(PendingTcpConnection { connection, nonce, start, since_ns: now_ns });
    }

    fn hello(&self, nonce: u64, position: u64, seen: SeenFrame) -> NodeHello {
        hello(nonce, position, (self.options.username, self.options.password), seen, self.options.mtu)
    }

    fn request(&self, feed: &Feed, next: u64) -> RewindRequest {
        let (username, password) = (self.options.username, self.options.password);
        RewindRequest { username, password, feed_session: feed.name, number: feed.number_of(next) }
    }

    #[cold]
    fn connection_lost(&mut self, why: &dyn std::fmt::Display) -> ClientError {
        tracing::debug!(peer = %self.options.command, %why, "the connection to the sequencer is given up");
        self.state = TcpLinkState::Down;
        self.packet.clear();
        ClientError::Disconnected { peer: self.peer(), reason: None }
    }

    /// A sequencer that was just replaced answers so too, and a new connection gives a better error, so the port is
    /// asked twice.
    #[cold]
    fn rewind_lacks_frame(&mut self) -> ClientError {
        let TcpLinkState::Up(up) = &self.state else { return self.connection_lost(&"it is down") };
        let sequence = up.next;
        if self.rewind_lacks_frame.replace(sequence) == Some(sequence) {
            return ClientError::Lapped { sequence, reason: "the rewind port does not have it".to_owned() };
        }
        self.connection_lost(&"the rewind port does not have what is due")
    }

    fn finish_connect(
        &mut self,
        pending: PendingTcpConnection,
        key: u64,
        welcome: &NodeWelcome,
        now_ns: u64,
    ) -> ConnectionInfo {
        let mut up = StreamConnection {
            connection: pending.connection,
            key,
            nonce: pending.nonce,
            feed: None,
            rewind: None,
            next: welcome.position,
            released_sequence: welcome.released_sequence,
            last_packet_ns: now_ns,
            reported_ns: 0,
            heartbeat_interval_ns: welcome.heartbeat_interval_ns,
            asked_feed_ns: now_ns,
            looks: 0,
        };
        up.set_position(welcome);
        self.state = TcpLinkState::Up(Box::new(up));
        connected(welcome)
    }

    /// Returns whether there was room.
    fn finish_packet(&mut self) -> Result<bool, ClientError> {
        let TcpLinkState::Up(up) = &mut self.state else { return Err(self.connection_lost(&"it is down")) };
        if self.packet.is_empty() {
            return Ok(true);
        }
        finish_frames(&mut self.packet, up.key);
        if !up.connection.queue(&self.packet) {
            if let Err(error) = up.connection.send() {
                return Err(self.connection_lost(&error));
            }
            if !up.connection.queue(&self.packet) {
                return Ok(false);
            }
        }
        self.packet.clear();
        Ok(true)
    }

    fn open_rewind(&mut self, now_ns: u64) -> Result<(), ClientError> {
        let TcpLinkState::Up(up) = &self.state else { return Ok(()) };
        let is_due = now_ns.saturating_sub(up.asked_feed_ns) >= ASK_INTERVAL_NS;
        let (nonce, next) = (up.nonce, up.next);
        match up.feed {
            Some(feed) => {
                let request = self.request(&feed, next);
                let opened = Rewind::open(self.options.rewind, &request, now_ns);
                let rewind = opened.map_err(|error| self.connection_lost(&error))?;
                if let TcpLinkState::Up(up) = &mut self.state {
                    up.rewind = Some(rewind);
                }
            }
            None if is_due => {
                // The node's history was checked when it was admitted.
                let hello = self.hello(nonce, next, SeenFrame::default());
                if let TcpLinkState::Up(up) = &mut self.state {
                    up.asked_feed_ns = now_ns;
                    send_control(&mut up.connection, 0, UpstreamBody::Hello(hello));
                }
            }
            None => {}
        }
        Ok(())
    }
}

/// The other side answers or is given up, so a packet is not repeated for lack of room.
fn send_control(connection: &mut TcpConnection, key: u64, body: UpstreamBody<'_>) {
    let mut packet = [0; 256];
    let length = UpstreamPacket { key, body }.write_to(&mut packet).expect("these are short");
    connection.queue(&packet[..length]);
}

fn whole_packet(connection: &TcpConnection) -> Result<Option<usize>, upstream::UpstreamError> {
    let length = upstream::peek(connection.incoming())?;
    Ok(length.filter(|length| *length <= connection.incoming().len()))
}

impl StreamConnection {
    fn set_position(&mut self, welcome: &NodeWelcome) {
        if self.rewind.is_none() {
            self.feed = Some(welcome_feed(welcome)).filter(|feed| feed.holds(self.next));
        }
        self.released_sequence = self.released_sequence.max(welcome.released_sequence);
    }

    #[inline]
    fn advance(&mut self, now_ns: u64) -> Result<bool, RewindError> {
        let mut has_looked = false;
        while let Some(rewind) = &mut self.rewind {
            if rewind.advance()? {
                if check(rewind.message(), self.next).is_none() {
                    return Err(RewindError::OutOfPlace("a frame that is damaged, or another one than is due"));
                }
                self.next += 1;
                self.last_packet_ns = now_ns;
                return Ok(true);
            }
            if rewind.has_ended() {
                (self.rewind, self.feed) = (None, None);
                break;
            }
            if has_looked {
                break;
            }
            has_looked = true;
            if !rewind.receive(now_ns)? {
                break;
            }
            self.last_packet_ns = now_ns;
        }
        Ok(false)
    }

    #[inline]
    fn frame(&self) -> Option<Frame<'_>> {
        let message = self.rewind.as_ref()?.message();
        Some(Frame::parse(message).expect("it was checked when it came"))
    }

    fn receive(&mut self, now_ns: u64, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, String> {
        let mut count = 0;
        match self.connection.receive() {
            Ok(Received::Bytes(_)) => self.last_packet_ns = now_ns,
            Ok(Received::Nothing | Received::Full) => return Ok(0),
            Ok(Received::End) => return Err("the sequencer has hung up".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
        while let Some(length) = whole_packet(&self.connection).map_err(|error| error.to_string())? {
            let packet = UpstreamPacket::parse(&self.connection.incoming()[..length]);
            let packet = packet.map_err(|error| error.to_string())?;
            match packet.body {
                UpstreamBody::Answers(frames) => count += each_answer(frames, take)?,
                UpstreamBody::Welcome(welcome) if welcome.nonce == self.nonce => self.set_position(&welcome),
                UpstreamBody::Refusal { text, .. } => return Err(text.to_owned()),
                _ => return Err("a packet that no sequencer sends".to_owned()),
            }
            self.connection.consume(length);
        }
        Ok(count)
    }
}

fn each_answer(frames: &[u8], take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, String> {
    let (mut position, mut count) = (0, 0);
    while position < frames.len() {
        let frame = Frame::parse(&frames[position..]).and_then(|frame| frame.verify().map(|()| frame));
        let frame = frame.map_err(|error| error.to_string())?;
        take(&frame);
        count += 1;
        position = (position + aligned_length(frame.length())).min(frames.len());
    }
    Ok(count)
}

impl NodeLink for TcpLink {
    fn connect(&mut self, start: Start, seen: SeenFrame, now_ns: u64) -> Result<Option<ConnectionInfo>, ClientError> {
        self.now_ns = now_ns;
        let is_asked = matches!(&self.state, TcpLinkState::Connecting(pending) if pending.start == start);
        if !is_asked {
            if now_ns >= self.next_attempt_ns {
                self.dial(start, seen, now_ns);
            }
            return Ok(None);
        }
        let TcpLinkState::Connecting(mut pending) = std::mem::replace(&mut self.state, TcpLinkState::Down) else {
            return Ok(None);
        };
        let connection = &mut pending.connection;
        let is_broken = connection.send().is_err() || matches!(connection.receive(), Ok(Received::End) | Err(_));
        let is_late = now_ns.saturating_sub(pending.since_ns) > self.options.silence_ns_max;
        let length = whole_packet(connection).ok().flatten();
        let Some(length) = length else {
            if !is_broken && !is_late {
                self.state = TcpLinkState::Connecting(pending);
            }
            return Ok(None);
        };
        let Ok(UpstreamPacket { key, body }) = UpstreamPacket::parse(&connection.incoming()[..length]) else {
            return Ok(None);
        };
        match body {
            UpstreamBody::Welcome(welcome) if welcome.nonce == pending.nonce => {
                pending.connection.consume(length);
                let connected = self.finish_connect(pending, key, &welcome, now_ns);
                self.open_rewind(now_ns).map(|()| Some(connected)).or(Ok(None))
            }
            UpstreamBody::Refusal { reason, text, .. } => {
                if reason == RefusalReason::Unavailable {
                    self.next_attempt_ns = now_ns + REFUSED_INTERVAL_NS;
                }
                refusal_error((reason, text), start, seen, self.peer()).map(|()| None)
            }
            _ => Ok(None),
        }
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError> {
        if self.packet.len() + frame.len() > PACKET_LENGTH && !self.finish_packet()? {
            return Ok(false);
        }
        if self.packet.is_empty() {
            self.packet.resize(HEADER_LENGTH, 0);
        }
        self.packet.extend_from_slice(frame);
        Ok(true)
    }

    #[inline]
    fn flush(&mut self) -> Result<(), ClientError> {
        self.finish_packet()?;
        let TcpLinkState::Up(up) = &mut self.state else { return Ok(()) };
        match up.connection.send() {
            Ok(_) => Ok(()),
            Err(error) => Err(self.connection_lost(&error)),
        }
    }

    #[inline]
    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError> {
        let now_ns = self.now_ns;
        let TcpLinkState::Up(up) = &mut self.state else { return Ok(0) };
        up.looks = up.looks.wrapping_add(1);
        if !up.looks.is_multiple_of(LOOKS_PER_COMMAND) {
            return Ok(0);
        }
        up.receive(now_ns, take).map_err(|why| self.connection_lost(&why))
    }

    /// Answers have a connection of their own.
    fn take_in(&mut self, now_ns: u64) -> Result<(), ClientError> {
        self.now_ns = now_ns;
        Ok(())
    }

    #[inline]
    fn read(&mut self, now_ns: u64) -> Result<LinkRead<'_>, ClientError> {
        self.now_ns = now_ns;
        let TcpLinkState::Up(up) = &mut self.state else { return Ok(LinkRead::Empty) };
        match up.advance(now_ns) {
            Ok(true) => {}
            Ok(false) => return Ok(LinkRead::Empty),
            Err(RewindError::Rejected(RejectReason::SessionNotAvailable)) => return Err(self.rewind_lacks_frame()),
            Err(error) => return Err(self.connection_lost(&error)),
        }
        Ok(match &self.state {
            TcpLinkState::Up(up) => up.frame().map_or(LinkRead::Empty, LinkRead::Frame),
            _ => LinkRead::Empty,
        })
    }

    fn released_sequence(&self) -> u64 {
        match &self.state {
            TcpLinkState::Up(up) => up.released_sequence.max(up.next - 1),
            _ => 0,
        }
    }

    fn loses(&self) -> bool {
        false
    }

    fn is_timed(&self) -> bool {
        true
    }

    #[inline]
    fn note(&mut self, progress: ProgressReport) {
        self.progress = Some(progress);
    }

    #[inline]
    fn tick(&mut self, now_ns: u64) -> Result<(), ClientError> {
        let silence_ns_max = self.options.silence_ns_max;
        let TcpLinkState::Up(up) = &mut self.state else { return Err(self.connection_lost(&"it is down")) };
        if now_ns.saturating_sub(up.last_packet_ns) > silence_ns_max {
            return Err(self.connection_lost(&"the sequencer has fallen silent"));
        }
        if now_ns.saturating_sub(up.reported_ns) >= up.heartbeat_interval_ns {
            up.reported_ns = now_ns;
            let report = report(up.next, self.progress, up.next > up.released_sequence);
            send_control(&mut up.connection, up.key, UpstreamBody::Report(report));
        }
        let ticked = match &mut up.rewind {
            Some(rewind) => rewind.tick(now_ns),
            None => Ok(()),
        };
        let is_between = up.rewind.is_none();
        let sent = if up.connection.unsent() > 0 { up.connection.send().map(|_| ()) } else { Ok(()) };
        if let Err(error) = ticked.and(sent.map_err(RewindError::from)) {
            return Err(self.connection_lost(&error));
        }
        if is_between { self.open_rewind(now_ns) } else { Ok(()) }
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), ClientError> {
        let interest = |is_sending| if is_sending { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut fds = Vec::with_capacity(2);
        let mut timeout = timeout.min(WAIT_MAX);
        match &self.state {
            TcpLinkState::Down => {
                std::thread::sleep(timeout.min(Duration::from_nanos(ATTEMPT_INTERVAL_NS)));
                return Ok(());
            }
            TcpLinkState::Connecting(pending) => {
                fds.push(PollFd::from_borrowed_fd(
                    pending.connection.as_fd(),
                    interest(pending.connection.unsent() > 0),
                ));
            }
            TcpLinkState::Up(up) => {
                fds.push(PollFd::from_borrowed_fd(up.connection.as_fd(), interest(up.connection.unsent() > 0)));
                match &up.rewind {
                    Some(rewind) => fds.push(PollFd::from_borrowed_fd(rewind.as_fd(), interest(rewind.is_sending()))),
                    None => timeout = timeout.min(Duration::from_nanos(ASK_INTERVAL_NS)),
                }
            }
        }
        let timeout = rustix::time::Timespec { tv_sec: 0, tv_nsec: i64::from(timeout.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(TransportError::system("waiting for the stream")(errno).into()),
        }
        if let TcpLinkState::Up(up) = &mut self.state {
            up.looks = LOOKS_PER_COMMAND - 1;
        }
        Ok(())
    }

    fn peer(&self) -> String {
        self.options.command.to_string()
    }
}
