//! [`Pump`]: a client's way to a service on another machine. The client has its rings as if the service were here; what is
//! between their other ends and the service's TCP port is this, moved by whoever polls the client.
//!
//! The packets are those of `docs/upstream-protocol.md`.

use crate::StreamError;
use crate::connecting::ConnectOptions;
use crate::credentials::Credentials;
use crate::handshake::{Status, Welcome};
use crate::link::ring_size_reason;
use crate::network::TcpConnection;
use crate::network::tcp::Received;
use crate::publisher_link::PublisherLink;
use crate::token::random_token;
use gapless_agent::thread::spawn_helper;
use gapless_log::{LogError, MemoryKind, RingReader, RingWriter, StreamIdentity, ring};
use gapless_wire::upstream::{
    Body, HEADER_LENGTH, Hello, PACKET_LENGTH_MAX, POSITION_NONE, RefusalReason, Report, UpstreamError, UpstreamPacket,
    finish_frames,
};
use gapless_wire::{Frame, aligned_length, upstream};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

/// A packet of commands is complete when it is so long, bytes.
const PACKET_LENGTH: usize = 60_000;
/// Room for what is not sent or not taken yet, each way, bytes.
const BUFFER_BYTES: usize = 2 * PACKET_LENGTH_MAX;

/// What carries frames between a client's rings and a service's port.
pub struct Pump {
    connection: TcpConnection,
    key: u64,
    /// What the client has published.
    commands: RingReader,
    /// What it reads.
    replies: RingWriter,
    /// So many bytes of the answers that came first are in the ring already.
    taken: usize,
    packet: Vec<u8>,
    heartbeat_interval: Duration,
    spoke: Instant,
    is_over: bool,
}

/// The connection is of no more use.
struct Over;

enum Failure {
    System(io::Error),
    Silent,
    Refused(String),
    OtherHistory,
}

/// Connects to the service at `address`, a host and a port.
pub(super) fn connect(
    address: &str,
    options: &ConnectOptions,
    credentials: &Credentials,
) -> Result<PublisherLink, StreamError> {
    let peer = format!("tcp:{address}");
    let refused = |reason| StreamError::Handshake { peer: peer.clone(), status: None, reason };
    if !options.link.is_valid() {
        return Err(refused(ring_size_reason(options.link)));
    }
    let deadline = Instant::now() + options.timeout;
    let failed = |source| StreamError::System { action: format!("connecting to {peer}"), source };
    let mut outcome = failed(io::Error::other("the name has no address"));
    for address in look_up(address, options.timeout).map_err(failed)? {
        outcome = match say_hello(address, options, credentials, deadline) {
            Ok((connection, key, welcome)) => return over(connection, key, &welcome, options),
            Err(Failure::Refused(reason)) => return Err(refused(reason)),
            Err(Failure::OtherHistory) => {
                return Err(StreamError::OtherHistory { peer, seen: options.seen, released_sequence: 0 });
            }
            Err(Failure::System(source)) => failed(source),
            Err(Failure::Silent) => {
                let (request, timeout_ms) = ("a hello".to_owned(), options.timeout.as_millis() as u64);
                StreamError::TimedOut { peer: peer.clone(), request, timeout_ms }
            }
        };
    }
    Err(outcome)
}

/// The addresses of a host and a port. Asking for a name may take as long as the system's resolver likes: it is asked by a
/// thread of its own, which nobody waits for longer than `timeout`.
fn look_up(address: &str, timeout: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let (asked, (sender, receiver)) = (address.to_owned(), std::sync::mpsc::channel());
    let ask = move || {
        // Who has asked may have gone.
        let _ = sender.send(asked.to_socket_addrs().map(Iterator::collect));
    };
    spawn_helper("gapless-lookup", ask).map_err(io::Error::other)?;
    receiver.recv_timeout(timeout).unwrap_or_else(|_| {
        let reason = format!("looking up {address} takes longer than {} ms", timeout.as_millis());
        Err(io::Error::new(io::ErrorKind::TimedOut, reason))
    })
}

fn say_hello(
    address: SocketAddr,
    options: &ConnectOptions,
    credentials: &Credentials,
    deadline: Instant,
) -> Result<(TcpConnection, u64, upstream::Welcome), Failure> {
    let mut connection = TcpConnection::connect(address, BUFFER_BYTES, BUFFER_BYTES).map_err(Failure::System)?;
    let nonce = random_token() as u64 | 1;
    let hello = Hello {
        nonce,
        stream_id: options.identity.stream_id,
        incarnation: options.identity.incarnation,
        position: POSITION_NONE,
        username: credentials.username,
        password: credentials.password,
        seen_sequence: options.seen.sequence,
        seen_timestamp_ns: options.seen.timestamp_ns,
        seen_stream_id: options.seen.identity.stream_id,
        seen_incarnation: options.seen.identity.incarnation,
    };
    let written = UpstreamPacket { key: 0, body: Body::Hello(hello) }.write_to(connection.room());
    connection.commit(written.expect("an empty buffer has room for a hello"));
    let malformed = |error: UpstreamError| Failure::Refused(format!("what answers is no service: {error}"));
    loop {
        let is_sent = connection.send().map_err(Failure::System)?;
        let is_ended = connection.receive().map_err(Failure::System)? == Received::End;
        let length = upstream::peek(connection.incoming()).map_err(malformed)?;
        if let Some(length) = length
            && let Some(packet) = connection.incoming().get(..length)
        {
            let UpstreamPacket { key, body } = UpstreamPacket::parse(packet).map_err(malformed)?;
            return match body {
                Body::Welcome(welcome) if welcome.nonce == nonce => {
                    connection.consume(length);
                    Ok((connection, key, welcome))
                }
                Body::Refusal { reason: RefusalReason::OtherHistory, .. } => Err(Failure::OtherHistory),
                Body::Refusal { text, .. } => Err(Failure::Refused(text.to_owned())),
                _ => Err(Failure::Refused("what answers is no service".to_owned())),
            };
        }
        if is_ended {
            return Err(Failure::System(io::ErrorKind::ConnectionReset.into()));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::Silent);
        }
        wait(&connection, !is_sent, left).map_err(Failure::System)?;
    }
}

fn over(
    connection: TcpConnection,
    key: u64,
    welcome: &upstream::Welcome,
    options: &ConnectOptions,
) -> Result<PublisherLink, StreamError> {
    let identity = StreamIdentity { stream_id: welcome.stream_id, incarnation: welcome.incarnation };
    let (writer, commands) = ring::create(&MemoryKind::Anonymous, options.link.command_ring_bytes, identity)?;
    let (replies, reader) = ring::create(&MemoryKind::Anonymous, options.link.reply_ring_bytes, identity)?;
    let pump = Pump {
        connection,
        key,
        commands,
        replies,
        taken: 0,
        packet: Vec::new(),
        heartbeat_interval: Duration::from_nanos(welcome.heartbeat_interval_ns),
        spoke: Instant::now(),
        is_over: false,
    };
    let welcome = Welcome {
        status: Status::Welcome,
        // Its number and its process there are nobody's business here.
        connection: 0,
        process_id: 0,
        identity,
        frame_length_max: welcome.frame_length_max,
        tier: welcome.tier,
        message_length_max: welcome.message_bytes_max,
        released_sequence: welcome.released_sequence,
    };
    // The pump is moved by who has these.
    Ok(PublisherLink { pump: Some(Box::new(pump)), ..PublisherLink::of_rings(welcome, writer, reader)? })
}

/// Waits until something has come, or can be sent if `sends`, or for `timeout`.
fn wait(connection: &TcpConnection, sends: bool, timeout: Duration) -> io::Result<()> {
    let flags = if sends { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    let timeout = rustix::time::Timespec {
        tv_sec: timeout.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    match poll(&mut [PollFd::from_borrowed_fd(connection.as_fd(), flags)], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

impl Pump {
    /// Sends what was published and takes what has come, as far as there is room.
    pub(crate) fn turn(&mut self) {
        self.is_over = self.is_over || self.try_turn().is_err();
    }

    /// Whether nothing comes any more but what is in the ring.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Sleeps until there may be something to do, or for `timeout`.
    pub(crate) fn sleep(&mut self, timeout: Duration) -> Result<(), StreamError> {
        self.turn();
        if self.is_over || self.replies.backlog_bytes() > 0 {
            return Ok(());
        }
        let until_report = self.heartbeat_interval.saturating_sub(self.spoke.elapsed());
        let sends = self.connection.unsent() > 0;
        wait(&self.connection, sends, timeout.min(until_report))
            .map_err(|source| StreamError::System { action: "waiting for a service".to_owned(), source })?;
        self.turn();
        Ok(())
    }

    fn try_turn(&mut self) -> Result<(), Over> {
        self.send()?;
        let received = self.connection.receive().map_err(|_| Over)?;
        // What came before an end is still taken.
        self.hear()?;
        if received == Received::End { Err(Over) } else { Ok(()) }
    }

    fn send(&mut self) -> Result<(), Over> {
        while let Some(length) = self.commands.next_length().map_err(|_| Over)? {
            let padded = aligned_length(length);
            let start = self.packet.len().max(HEADER_LENGTH);
            if self.connection.room().len() < start + padded {
                break;
            }
            self.packet.resize(start + padded, 0);
            self.commands.copy(&mut self.packet[start..]);
            self.commands.advance(length);
            if self.packet.len() >= PACKET_LENGTH {
                self.queue_packet();
            }
        }
        self.queue_packet();
        self.commands.release();
        if self.spoke.elapsed() >= self.heartbeat_interval {
            self.report();
        }
        self.connection.send().map(|_| ()).map_err(|_| Over)
    }

    fn queue_packet(&mut self) {
        if self.packet.is_empty() {
            return;
        }
        finish_frames(&mut self.packet, self.key);
        assert!(self.connection.queue(&self.packet), "its room was looked at");
        self.packet.clear();
        self.spoke = Instant::now();
    }

    /// Says that it is there. Where there is no room something waits to be sent, which says as much.
    #[cold]
    fn report(&mut self) {
        self.spoke = Instant::now();
        let (position, frames_requested, packets_refused, frames_resent) = (0, 0, 0, 0);
        let report = Report { position, frames_requested, packets_refused, frames_resent, is_live: true, in_flight: 0 };
        let packet = UpstreamPacket { key: self.key, body: Body::Report(report) };
        if let Some(length) = packet.write_to(self.connection.room()) {
            self.connection.commit(length);
        }
    }

    /// Takes the packets that have come whole.
    fn hear(&mut self) -> Result<(), Over> {
        let mut outcome = Ok(());
        while let Some(length) = self.hear_packet().unwrap_or_else(|over| {
            outcome = Err(over);
            None
        }) {
            self.connection.consume(length);
            self.taken = 0;
        }
        let _ = self.replies.publish();
        outcome
    }

    /// The length of the first packet, if it is whole and all of it is taken. What is none ends the connection.
    fn hear_packet(&mut self) -> Result<Option<usize>, Over> {
        let Some(length) = upstream::peek(self.connection.incoming()).map_err(|_| Over)? else { return Ok(None) };
        let Some(packet) = self.connection.incoming().get(..length) else { return Ok(None) };
        match UpstreamPacket::parse(packet).map_err(|_| Over)?.body {
            Body::Answers(frames) => {
                while self.taken < frames.len() {
                    let frame = Frame::parse(&frames[self.taken..]).map_err(|_| Over)?;
                    let end = self.taken + aligned_length(frame.length());
                    match self.replies.append(frames.get(self.taken..end).ok_or(Over)?) {
                        Ok(()) => self.taken = end,
                        Err(LogError::Full { .. }) => return Ok(None),
                        Err(_) => return Err(Over),
                    }
                }
                Ok(Some(length))
            }
            Body::Welcome(_) => Ok(Some(length)),
            // It does not know this connection, or leaves.
            _ => Err(Over),
        }
    }
}
