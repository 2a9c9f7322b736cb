//! A client that breaks its rules is dropped, one faster than the sequencer waits, and a lost connection is remade.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::ClientError;
use gapless_client::node::{
    NodeEvent, NodeState, PublisherOptions, StreamNode, StreamNodeOptions, TcpLink, TcpOptions,
};
use gapless_client::polled::MessageType;
use gapless_client::throttle::Throttle;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::own_loopback;
use gapless_testkit::wait::turn_until;
use gapless_transport::TransportError;
use gapless_transport::credentials::Credentials;
use gapless_transport::transport::Transport;
use gapless_wire::Encoding;
use gapless_wire::soup::Field;
use gapless_wire::upstream::{NodeHello, NodeReport, PACKET_LENGTH_MAX, RefusalReason, UpstreamBody, UpstreamPacket};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const TYPE: MessageType = MessageType { schema: 9 << 16 | 1, encoding: Encoding::Opaque };
const PATIENCE: Duration = Duration::from_secs(120);

fn options() -> EventStreamOptions {
    let mut options = EventStreamOptions::in_memory();
    options.window_bytes = 32 << 20;
    options.message_length_max = 1 << 20;
    options.frame_length_max = 1_376;
    let any_port = SocketAddr::from((own_loopback(), 0));
    options.tcp = Some(TcpNetwork::new(any_port, any_port));
    options
}

fn node(stream: &EventStream, options: StreamNodeOptions) -> StreamNode<TcpLink> {
    let addresses = stream.tcp_addresses().unwrap();
    StreamNode::new(TcpLink::new(TcpOptions::new(addresses.command, addresses.rewind)), options)
}

fn counter(stream: &EventStream, label: &str) -> u64 {
    let values = stream.counters().values();
    values.into_iter().find(|(each, _)| each == label).unwrap_or_else(|| panic!("no counter {label}")).1
}

fn connect(stream: &EventStream) -> TcpStream {
    let socket = TcpStream::connect(stream.tcp_addresses().unwrap().command).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn packet(key: u64, body: UpstreamBody<'_>) -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    let length = UpstreamPacket { key, body }.write_to(&mut bytes).unwrap();
    bytes.truncate(length);
    bytes
}

fn hello(password: &str) -> Vec<u8> {
    let (username, password) = (Field::new("node").unwrap(), Field::new(password).unwrap());
    packet(
        0,
        UpstreamBody::Hello(NodeHello {
            nonce: 7,
            stream_id: 0,
            incarnation: 0,
            position: 0,
            username,
            password,
            seen_sequence: 0,
            seen_timestamp_ns: 0,
            seen_stream_id: 0,
            seen_incarnation: 0,
            mtu: None,
        }),
    )
}

fn rest(mut socket: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match socket.read_to_end(&mut bytes) {
        Ok(_) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => bytes,
        Err(error) => panic!("it stays open: {error}"),
    }
}

#[test]
fn invalid_packet_is_dropped() {
    let stream = EventStream::start(&options()).unwrap();
    let mut flipped = hello("");
    flipped[40] ^= 1;
    let mut oversized = hello("");
    oversized[8..12].copy_from_slice(&(PACKET_LENGTH_MAX as u32 + 1).to_le_bytes());
    let mut endless = hello("");
    endless[8..12].copy_from_slice(&(PACKET_LENGTH_MAX as u32).to_le_bytes());
    let strangers = [
        b"GET / HTTP/1.1\r\n".to_vec(),
        flipped,
        oversized,
        endless,
        packet(0, UpstreamBody::Frames(&[0; 56])),
        packet(1, UpstreamBody::Report(NodeReport::default())),
        packet(0, UpstreamBody::Unknown),
    ];
    for (number, bytes) in strangers.iter().enumerate() {
        let mut socket = connect(&stream);
        socket.write_all(bytes).unwrap();
        assert!(rest(socket).is_empty(), "{}", bytes.escape_ascii());
        turn_until("it is counted", || counter(&stream, "tcp-gateway.connections_dropped") == number as u64 + 1);
    }
    let of_clients: [fn(u64) -> Vec<u8>; 3] = [
        |key| packet(key ^ 2, UpstreamBody::Report(NodeReport::default())),
        |key| packet(key, UpstreamBody::Frames(&[7; 64])),
        |key| packet(key, UpstreamBody::Answers(&[])),
    ];
    for (number, wrong) in of_clients.iter().enumerate() {
        let mut socket = connect(&stream);
        socket.write_all(&hello("")).unwrap();
        let mut welcome = [0; 136];
        socket.read_exact(&mut welcome).unwrap();
        let key = UpstreamPacket::parse(&welcome).unwrap().key;
        turn_until("it is in", || counter(&stream, "tcp-gateway.nodes") == 1);
        socket.write_all(&wrong(key)).unwrap();
        assert!(rest(socket).is_empty());
        let dropped = (strangers.len() + number) as u64 + 1;
        turn_until("it is counted", || counter(&stream, "tcp-gateway.connections_dropped") == dropped);
        turn_until("it is forgotten", || counter(&stream, "tcp-gateway.nodes") == 0);
    }
}

#[test]
fn unknown_node_is_told_so() {
    let mut options = options();
    let (username, password) = (Field::new("node").unwrap(), Field::new("swordfish").unwrap());
    options.tcp.as_mut().unwrap().sessions.users = vec![Credentials { username, password }];
    let stream = EventStream::start(&options).unwrap();
    let mut socket = connect(&stream);
    socket.write_all(&hello("trout")).unwrap();
    let answer = rest(socket);
    let refusal = UpstreamPacket::parse(&answer).unwrap().body;
    assert!(
        matches!(refusal, UpstreamBody::Refusal { nonce: 7, reason: RefusalReason::NotAuthorized, .. }),
        "{refusal:?}"
    );
    let mut stranger = node(&stream, StreamNodeOptions::default());
    let error = stranger.wait_open(PATIENCE).unwrap_err();
    assert!(matches!(error, ClientError::Transport(TransportError::Handshake { .. })), "{error}");
    let addresses = stream.tcp_addresses().unwrap();
    let known = TcpOptions { username, password, ..TcpOptions::new(addresses.command, addresses.rewind) };
    let mut known = StreamNode::new(TcpLink::new(known), StreamNodeOptions::default());
    known.wait_open(PATIENCE).unwrap();
}

#[test]
fn full_ring_blocks_without_loss() {
    let mut options = options();
    options.tcp.as_mut().unwrap().sessions.rings.command_ring_bytes = 4096;
    options.throttle = Some(Throttle { frames_per_s: 8_000, burst_frames: 10 });
    let stream = EventStream::start(&options).unwrap();
    // Only a lost message is resent, unless one waits this long on a busy machine.
    const RESEND_INTERVAL: Duration = Duration::from_secs(30);
    let resend_interval_ns = RESEND_INTERVAL.as_nanos() as u64;
    let publisher = PublisherOptions { resend_interval_ns, ..PublisherOptions::default() };
    let mut node = node(&stream, StreamNodeOptions { publisher: Some(publisher), ..StreamNodeOptions::default() });
    node.wait_open(PATIENCE).unwrap();
    let (mut own, mut disconnects) = (0u64, 0);
    let mut hear = |event: NodeEvent<'_>| match event {
        NodeEvent::Message(message) => {
            assert_eq!(message.payload[..8], own.to_le_bytes(), "in order, once");
            own += 1;
        }
        NodeEvent::State(NodeState::Connecting) => disconnects += 1,
        _ => {}
    };
    // Longer than the timeout of a silent node: a blocked one is not silent.
    const HELD_UP: Duration = Duration::from_millis(2_500);
    let began = Instant::now();
    let (mut polled, mut longest_pause) = (began, Duration::ZERO);
    let mut published = 0u64;
    while published < 2_000 || began.elapsed() < HELD_UP {
        let is_full = node.in_flight() >= 1_000;
        if is_full {
            node.wait(Duration::from_millis(1)).unwrap();
        } else {
            let mut payload = [0; 1_000];
            payload[..8].copy_from_slice(&published.to_le_bytes());
            node.publish(TYPE, &payload).unwrap();
            published += 1;
        }
        if is_full || published % 64 == 1 {
            node.poll(16, &mut hear).unwrap();
            longest_pause = longest_pause.max(polled.elapsed());
            polled = Instant::now();
        }
    }
    let came = node.poll_until(PATIENCE, "all come back", |node| node.in_flight() == 0, &mut hear);
    let dropped = counter(&stream, "tcp-gateway.frames_dropped");
    assert_eq!((own, dropped), (published, 0), "{disconnects} disconnects, {} sent again: {came:?}", node.resent());
    let was_polled = longest_pause < Duration::from_secs(1);
    let is_gone = disconnects > 0 || (node.resent() > 0 && began.elapsed() < RESEND_INTERVAL);
    assert!(!(was_polled && is_gone), "{disconnects} disconnects, {} sent again, {longest_pause:?}", node.resent());
}

#[test]
fn lost_sequencer_is_seen_at_once() {
    let options = options();
    let stream = EventStream::start(&options).unwrap();
    let addresses = stream.tcp_addresses().unwrap();
    // Only the end of the connection can be noticed.
    let patient = TcpOptions { silence_ns_max: u64::MAX, ..TcpOptions::new(addresses.command, addresses.rewind) };
    let mut publishing = StreamNode::new(TcpLink::new(patient), StreamNodeOptions::default());
    publishing.wait_open(PATIENCE).unwrap();
    publishing.publish(TYPE, b"before").unwrap();
    publishing.poll_until(PATIENCE, "it comes back", |node| node.in_flight() == 0, |_| {}).unwrap();
    turn_until("its status is known", || stream.status().lock().iter().any(|node| node.network == Transport::Tcp));
    drop(stream);
    turn_until("it is noticed", || {
        publishing.poll(16, |_| {}).unwrap();
        publishing.state() == NodeState::Connecting
    });
}
