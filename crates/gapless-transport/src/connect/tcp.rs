//! TCP connection to a service, with the packets of `docs/protocols/upstream.md`.

use super::ConnectOptions;
use crate::TransportError;
use crate::credentials::Credentials;
use crate::handshake::{HandshakeStatus, Welcome};
use crate::network::TcpConnection;
use crate::network::tcp::Received;
use crate::publisher_link::PublisherLink;
use crate::pump::{Pump, wait};
use crate::token::random_token;
use gapless_agent::thread::spawn_helper;
use gapless_log::{MemoryKind, StreamIdentity, ring};
use gapless_wire::upstream::{
    self, NodeHello, PACKET_LENGTH_MAX, POSITION_NONE, RefusalReason, UpstreamBody, UpstreamError, UpstreamPacket,
};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

/// A client that sends its heartbeats more often would do nothing else.
const HEARTBEAT_INTERVAL_MIN: Duration = Duration::from_millis(1);
const BUFFER_BYTES: usize = 2 * PACKET_LENGTH_MAX;

enum ConnectFailure {
    System(io::Error),
    Silent,
    Refused(String),
    OtherHistory,
}

/// Connects to a host and a port.
///
/// # Errors
/// No address for the name; no listener; a refusal; no answer in time.
pub fn connect(
    address: &str,
    options: &ConnectOptions,
    credentials: &Credentials,
) -> Result<PublisherLink, TransportError> {
    let peer = format!("tcp:{address}");
    let refused = |reason| TransportError::Handshake { peer: peer.clone(), status: None, reason };
    options.check(&peer)?;
    let deadline = Instant::now() + options.timeout;
    let failed = |source| TransportError::System { action: format!("connecting to {peer}"), source };
    let mut outcome = failed(io::Error::other("the name has no address"));
    for address in resolve(address, options.timeout).map_err(failed)? {
        outcome = match send_hello(address, options, credentials, deadline) {
            Ok((connection, key, welcome)) => return with_connection(connection, key, &welcome, options),
            Err(ConnectFailure::Refused(reason)) => return Err(refused(reason)),
            Err(ConnectFailure::OtherHistory) => {
                return Err(TransportError::OtherHistory { peer, seen: options.seen, released_sequence: 0 });
            }
            Err(ConnectFailure::System(source)) => failed(source),
            Err(ConnectFailure::Silent) => options.timed_out(&peer),
        };
    }
    Err(outcome)
}

/// On a thread of its own, awaited for at most `timeout`: the system's resolver may take as long as it likes.
fn resolve(address: &str, timeout: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let (asked, (sender, receiver)) = (address.to_owned(), std::sync::mpsc::channel());
    let ask = move || {
        // The caller may have given up.
        let _ = sender.send(asked.to_socket_addrs().map(Iterator::collect));
    };
    spawn_helper("gapless-lookup", ask).map_err(io::Error::other)?;
    receiver.recv_timeout(timeout).unwrap_or_else(|_| {
        let reason = format!("looking up {address} takes longer than {} ms", timeout.as_millis());
        Err(io::Error::new(io::ErrorKind::TimedOut, reason))
    })
}

fn send_hello(
    address: SocketAddr,
    options: &ConnectOptions,
    credentials: &Credentials,
    deadline: Instant,
) -> Result<(TcpConnection, u64, upstream::NodeWelcome), ConnectFailure> {
    let mut connection = TcpConnection::connect(address, BUFFER_BYTES, BUFFER_BYTES).map_err(ConnectFailure::System)?;
    let nonce = random_token() as u64 | 1;
    let hello = NodeHello {
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
        mtu: options.mtu,
    };
    let written = UpstreamPacket { key: 0, body: UpstreamBody::Hello(hello) }.write_to(connection.room());
    connection.commit(written.expect("an empty buffer has room for a hello"));
    let malformed = |error: UpstreamError| ConnectFailure::Refused(format!("what answers is no service: {error}"));
    loop {
        let is_sent = connection.send().map_err(ConnectFailure::System)?;
        let is_ended = connection.receive().map_err(ConnectFailure::System)? == Received::End;
        let length = upstream::peek(connection.incoming()).map_err(malformed)?;
        if let Some(length) = length
            && let Some(packet) = connection.incoming().get(..length)
        {
            let UpstreamPacket { key, body } = UpstreamPacket::parse(packet).map_err(malformed)?;
            return match body {
                UpstreamBody::Welcome(welcome) if welcome.nonce == nonce => {
                    connection.consume(length);
                    Ok((connection, key, welcome))
                }
                UpstreamBody::Refusal { reason: RefusalReason::OtherHistory, .. } => Err(ConnectFailure::OtherHistory),
                UpstreamBody::Refusal { text, .. } => Err(ConnectFailure::Refused(text.to_owned())),
                _ => Err(ConnectFailure::Refused("what answers is no service".to_owned())),
            };
        }
        if is_ended {
            return Err(ConnectFailure::System(io::ErrorKind::ConnectionReset.into()));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ConnectFailure::Silent);
        }
        wait(&connection, !is_sent, left).map_err(ConnectFailure::System)?;
    }
}

fn with_connection(
    connection: TcpConnection,
    key: u64,
    welcome: &upstream::NodeWelcome,
    options: &ConnectOptions,
) -> Result<PublisherLink, TransportError> {
    let identity = StreamIdentity { stream_id: welcome.stream_id, incarnation: welcome.incarnation };
    let (writer, commands) = ring::create(&MemoryKind::Anonymous, options.link.command_ring_bytes, identity)?;
    let (replies, reader) = ring::create(&MemoryKind::Anonymous, options.link.reply_ring_bytes, identity)?;
    let heartbeat_interval = Duration::from_nanos(welcome.heartbeat_interval_ns).max(HEARTBEAT_INTERVAL_MIN);
    let pump = Pump::new((connection, key), (commands, replies), heartbeat_interval);
    let welcome = Welcome {
        status: HandshakeStatus::Welcome,
        connection: 0,
        process_id: 0,
        identity,
        frame_length_max: welcome.frame_length_max,
        tier: welcome.tier,
        message_length_max: welcome.message_bytes_max,
        released_sequence: welcome.released_sequence,
        mtu: None,
    };
    Ok(PublisherLink { pump: Some(Box::new(pump)), ..PublisherLink::of_rings(welcome, writer, reader)? })
}
