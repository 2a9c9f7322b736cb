//! Invalid packets, and peers not admitted, are refused or ignored over UDP, multicast and TCP: counted, without
//! effect, and never answered at greater length.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::raw_soup::{Client, PATIENCE, counter, login, reaches};
use crate::strange_packets::{FEED, SCHEMA, changed, event, from_a_sequencer, hello, malformed, packet, refused};
use gapless_client::node::{
    AnyLink, DatagramLink, DatagramOptions, NodeEvent, StreamNode, StreamNodeOptions, TcpLink, TcpOptions,
};
use gapless_client::polled::MessageType;
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::network::client_sessions::ClientSessionOptions;
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::free_address;
use gapless_testkit::ports::own_loopback;
use gapless_transport::credentials::Credentials;
use gapless_transport::network::{Datagrams, Interface, Segmentation, UdpOptions, UdpSocket};
use gapless_wire::mold::MoldRequest;
use gapless_wire::soup::Field;
use gapless_wire::upstream::{HEADER_LENGTH, HELLO_LENGTH, MAGIC, NodeReport, UpstreamBody, UpstreamPacket};
use gapless_wire::{Encoding, FeedSession, mold};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket as StdSocket};
use std::time::Instant;
use tempfile::TempDir;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TYPE: MessageType = MessageType { schema: SCHEMA, encoding: Encoding::Opaque };

struct World {
    stream: EventStream,
    network: PacketNetwork,
    nodes: Vec<StreamNode<AnyLink>>,
    node_address: SocketAddr,
    published: u64,
    seen: Vec<u64>,
    _directory: TempDir,
}

impl World {
    fn start(groups: u8) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = EventStreamOptions::in_directory(directory.path());
        options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
        options.window_bytes = 1 << 20;
        options.message_length_max = 64 << 10;
        options.frame_length_max = 1_376;
        options.feed_session = FeedSession::new(FEED).unwrap();
        let (username, password) = (Field::new("honest").unwrap(), Field::new("swordfish").unwrap());
        let users = vec![Credentials { username, password }];
        let sessions =
            ClientSessionOptions { users, heartbeat_interval_ns: 60_000_000_000, ..ClientSessionOptions::default() };
        let (command, request) = (free_address(), free_address());
        let mut network = PacketNetwork::udp(command, request);
        let interface = Interface::Address(LOOPBACK);
        network.carrier = Carrier::Udp { interface: interface.clone(), hops: 0, segmentation: Segmentation::Auto };
        let (process, port) = (std::process::id(), command.port());
        let group = |number| SocketAddr::from(([239, 253, process as u8, (process >> 8) as u8 ^ number], port));
        network.groups = (0..groups).map(group).collect();
        network.sessions = sessions.clone();
        options.packets = Some(network.clone());
        let any_port = SocketAddr::from((own_loopback(), 0));
        options.tcp = Some(TcpNetwork { sessions, ..TcpNetwork::new(any_port, any_port) });
        let stream = EventStream::start(&options).unwrap();
        let main = UdpSocket::open(&UdpOptions::to(command)).unwrap();
        let node_address = main.local_address();
        let requests = UdpSocket::open(&UdpOptions::to(request)).unwrap();
        let join = |group: &SocketAddr| {
            UdpSocket::open(&UdpOptions::of_group(group.ip(), group.port(), interface.clone())).unwrap()
        };
        let joined = network.groups.iter().map(join).collect();
        let silence_ns_max = 60_000_000_000;
        let by_packets =
            DatagramOptions { username, password, silence_ns_max, ..DatagramOptions::new(command, request) };
        let addresses = stream.tcp_addresses().unwrap();
        let by_tcp =
            TcpOptions { username, password, silence_ns_max, ..TcpOptions::new(addresses.command, addresses.rewind) };
        let links: [AnyLink; 2] =
            [DatagramLink::new(main, requests, joined, by_packets).into(), TcpLink::new(by_tcp).into()];
        let nodes = links.map(|link| StreamNode::new(link, StreamNodeOptions::default())).into();
        let mut world =
            Self { stream, network, nodes, node_address, published: 0, seen: vec![0; 2], _directory: directory };
        world.poll_until("both are open", |nodes, _| nodes.iter().all(StreamNode::can_publish));
        world.go_on();
        world
    }

    fn poll_until(&mut self, what: &str, is_done: impl Fn(&[StreamNode<AnyLink>], &[u64]) -> bool) {
        let begun = Instant::now();
        while !is_done(&self.nodes, &self.seen) {
            std::thread::yield_now();
            for (node, seen) in self.nodes.iter_mut().zip(&mut self.seen) {
                let take = |event: NodeEvent<'_>| {
                    if let NodeEvent::Message(message) = event {
                        assert_eq!(message.payload, format!("honest {seen}").as_bytes(), "only honest messages");
                        *seen += 1;
                    }
                };
                node.poll(64, take).unwrap();
            }
            assert!(self.stream.failure().is_none(), "{what}: {:?}", self.stream.failure());
            assert!(begun.elapsed() < PATIENCE, "{what}: not done, seen {:?} of {}", self.seen, self.published);
        }
    }

    fn go_on(&mut self) {
        for index in 0..self.nodes.len() {
            let last = self.stream.released_sequence();
            self.nodes[index].publish(TYPE, format!("honest {}", self.published).as_bytes()).unwrap();
            self.published += 1;
            let published = self.published;
            self.poll_until("all see it", |_, seen| seen.iter().all(|seen| *seen == published));
            assert_eq!(self.stream.released_sequence(), last + 1, "nothing but that");
        }
    }

    fn counts(&self, prefixes: &[&str]) -> BTreeMap<String, u64> {
        let values = self.stream.counters().values();
        values.into_iter().filter(|(label, _)| prefixes.iter().any(|prefix| label.starts_with(prefix))).collect()
    }

    fn raw(&self) -> RawPeer {
        let socket = StdSocket::bind((LOOPBACK, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        RawPeer { socket, command: self.network.command, nonce: 1 << 40 }
    }

    fn foreign_and_damaged(&self) -> (u64, u64) {
        match self.nodes[0].link() {
            AnyLink::Datagram(link) => (link.counts().packets_foreign, link.counts().packets_damaged),
            _ => panic!("the first node is the one by packets"),
        }
    }
}

struct RawPeer {
    socket: StdSocket,
    command: SocketAddr,
    nonce: u64,
}

impl RawPeer {
    fn send(&self, packet: &[u8]) {
        self.socket.send_to(packet, self.command).unwrap();
    }

    fn next(&self) -> Vec<u8> {
        let mut buffer = [0; 1 << 16];
        let length = self.socket.recv(&mut buffer).expect("an answer");
        buffer[..length].to_vec()
    }

    /// Up to the answer to a hello that is always refused: the port answers in order.
    fn answers(&mut self) -> Vec<Vec<u8>> {
        self.nonce += 1;
        self.send(&hello(|hello| (hello.nonce, hello.password) = (self.nonce, Field::BLANK)));
        let mut answers = Vec::new();
        loop {
            let answer = self.next();
            let packet = UpstreamPacket::parse(&answer);
            if matches!(packet, Ok(UpstreamPacket { body: UpstreamBody::Refusal { nonce, .. }, .. }) if nonce == self.nonce)
            {
                return answers;
            }
            answers.push(answer);
        }
    }

    fn come_in(&self) -> u64 {
        self.send(&hello(|_| ()));
        let answer = self.next();
        assert!(answer.len() <= HELLO_LENGTH, "a welcome of {} bytes", answer.len());
        match UpstreamPacket::parse(&answer).unwrap() {
            UpstreamPacket { key, body: UpstreamBody::Welcome(_) } => key,
            other => panic!("{other:?}"),
        }
    }
}

fn assert_counted(what: &str, before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>, label: &str) {
    let mut expected = before.clone();
    *expected.get_mut(label).unwrap() += 1;
    *expected.get_mut("gateway.nodes_refused").unwrap() += 1;
    assert_eq!(*after, expected, "{what}");
}

const GATEWAY: [&str; 3] = ["gateway.", "replayer.requests_refused", "feed.targets"];

#[test]
fn strangers_at_the_command_port() {
    for groups in [0, 2] {
        let mut world = World::start(groups);
        let mut stranger = world.raw();
        let insider = world.raw();
        let stolen = insider.come_in();
        insider.send(&packet(stolen, UpstreamBody::Report(NodeReport::default())));
        if groups == 0 {
            reaches(&world.stream, "feed.targets", 2);
        }
        let mut attempt = |world: &World, what: &str, bytes: &[u8], label: &str| {
            let before = world.counts(&GATEWAY);
            stranger.send(bytes);
            let answers = stranger.answers();
            assert_counted(what, &before, &world.counts(&GATEWAY), label);
            let answered: usize = answers.iter().map(Vec::len).sum();
            assert!(answered <= bytes.len(), "{what}: {} bytes were answered with {answered}", bytes.len());
            answers
        };
        for (what, bytes, reason) in refused(&world.stream) {
            let answers = attempt(&world, what, &bytes, "gateway.nodes_refused");
            let [answer] = answers.as_slice() else { panic!("{what}: {} answers", answers.len()) };
            match UpstreamPacket::parse(answer).unwrap() {
                UpstreamPacket { key: 0, body: UpstreamBody::Refusal { nonce: 7, reason: given, text } } => {
                    assert!(given == reason && !text.is_empty(), "{what}: {given:?}, {text}");
                }
                other => panic!("{what}: {other:?}"),
            }
            world.go_on();
        }
        let mut cut: Vec<(&str, Vec<u8>)> = [0, 1, 11, 12, HEADER_LENGTH - 1, HEADER_LENGTH, HELLO_LENGTH - 1]
            .map(|length| ("a hello that is cut off", hello(|_| ())[..length].to_vec()))
            .into();
        cut.push(("a byte too many", [hello(|_| ()), vec![0]].concat()));
        cut.push(("the longest datagram there is", vec![0; 65_507]));
        for (what, bytes) in malformed().into_iter().chain(cut) {
            assert!(attempt(&world, what, &bytes, "gateway.packets_malformed").is_empty(), "{what} is answered");
        }
        world.go_on();
        let (session, next) = (world.nodes[0].session().unwrap(), world.nodes[0].next_session_seq().unwrap());
        for key in [0, 0x1234_5678_9abc_def1, stolen] {
            let said = [
                ("frames", packet(key, UpstreamBody::Frames(&event(session, next)))),
                ("frames that are none", packet(key, UpstreamBody::Frames(&[0xa5; 300]))),
                ("a report", packet(key, UpstreamBody::Report(NodeReport::default()))),
            ];
            for (what, bytes) in said {
                let answers = attempt(&world, what, &bytes, "gateway.packets_unknown");
                assert_eq!(answers, [packet(key, UpstreamBody::Unknown)], "{what}");
            }
            let mut silent = from_a_sequencer(key);
            silent.push(("a farewell", packet(key, UpstreamBody::Farewell)));
            for (what, bytes) in silent {
                // Two sequencers would answer each other forever.
                assert!(attempt(&world, what, &bytes, "gateway.packets_unknown").is_empty(), "{what} is answered");
            }
            world.go_on();
        }
        let before = counter(&world.stream, "gateway.packets_unknown");
        insider.send(&packet(stolen, UpstreamBody::Report(NodeReport::default())));
        insider.send(&packet(stolen, UpstreamBody::Farewell));
        reaches(&world.stream, "gateway.nodes", 1);
        assert_eq!(counter(&world.stream, "gateway.packets_unknown"), before);
        world.go_on();
    }
}

#[test]
fn a_client_that_misbehaves() {
    let mut world = World::start(2);
    let client = world.raw();
    let key = client.come_in();
    let (session, next) = (world.nodes[0].session().unwrap(), world.nodes[0].next_session_seq().unwrap());
    let forged = event(session, next);
    let mut said = from_a_sequencer(key);
    said.push(("frames that are none", packet(key, UpstreamBody::Frames(&[0xa5; 300]))));
    said.push(("half a frame", packet(key, UpstreamBody::Frames(&forged[..40]))));
    said.push(("a damaged payload", packet(key, UpstreamBody::Frames(&changed(forged.clone(), 64, b"F")))));
    said.push(("a damaged header", packet(key, UpstreamBody::Frames(&changed(forged.clone(), 32, &[1])))));
    for (number, (what, bytes)) in said.into_iter().enumerate() {
        client.send(&bytes);
        reaches(&world.stream, "gateway.packets_malformed", number as u64 + 1);
        assert_eq!(counter(&world.stream, "gateway.packets_unknown"), 0, "{what}");
        world.go_on();
    }
    // Refused: the session is another node's.
    client.send(&packet(key, UpstreamBody::Frames(&event(session, world.nodes[0].next_session_seq().unwrap()))));
    match UpstreamPacket::parse(&client.next()).unwrap().body {
        UpstreamBody::Answers(answers) => assert!(!answers.is_empty()),
        other => panic!("{other:?}"),
    }
    world.go_on();
}

#[test]
fn feed_needs_a_proven_key() {
    let mut world = World::start(0);
    reaches(&world.stream, "feed.targets", 1);
    let client = world.raw();
    let key = client.come_in();
    world.go_on();
    client.socket.set_nonblocking(true).unwrap();
    assert_eq!(client.socket.recv(&mut [0; 2048]).unwrap_err().kind(), ErrorKind::WouldBlock, "no feed for a hello");
    client.socket.set_nonblocking(false).unwrap();
    assert_eq!((counter(&world.stream, "feed.targets"), counter(&world.stream, "gateway.nodes")), (1, 2));
    client.send(&packet(key, UpstreamBody::Report(NodeReport::default())));
    reaches(&world.stream, "feed.targets", 2);
    world.go_on();
    assert_eq!(client.next()[..10], FeedSession::new(FEED).unwrap().bytes());
    let far = world.stream.released_sequence() + 1_000;
    client.send(&hello(|hello| (hello.nonce, hello.position) = (8, far)));
    reaches(&world.stream, "gateway.nodes", 1);
    reaches(&world.stream, "feed.targets", 1);
    world.go_on();
}

#[test]
fn bad_requests_get_no_answer() {
    let mut world = World::start(0);
    let mut stranger = world.raw();
    stranger.command = world.network.request;
    let request = |name: &str, sequence, count| {
        MoldRequest { feed_session: FeedSession::new(name).unwrap(), sequence, count }.to_bytes().to_vec()
    };
    let last = world.stream.released_sequence();
    let attempts = [
        ("another feed session", request("SUNDAY", 1, 1)),
        ("no feed session", [vec![b' '; 10], request(FEED, 1, 1)[10..].to_vec()].concat()),
        ("nothing", request(FEED, 1, 0)),
        ("what is before the first", changed(request(FEED, 1, 1), 10, &[0; 8])),
        ("what is not there yet", request(FEED, last + 1_000, 5)),
        ("what never will be", changed(request(FEED, 1, 1), 10, &[0xff; 8])),
        ("too short", request(FEED, 1, 1)[..19].to_vec()),
        ("too long", [request(FEED, 1, 1), vec![0]].concat()),
        ("an empty packet", Vec::new()),
        ("a hello", hello(|_| ())),
    ];
    let good = request(FEED, 1, 1);
    let counts = || {
        ["requests_refused", "requests_answered", "frames"]
            .map(|label| counter(&world.stream, &format!("replayer.{label}")))
    };
    let before = counts();
    for (number, (what, bytes)) in attempts.iter().enumerate() {
        stranger.send(bytes);
        stranger.send(&good);
        let answer = stranger.next();
        assert_eq!(mold::MoldPacket::parse(&answer).unwrap().sequence, 1, "{what}");
        let begun = Instant::now();
        while counts() != before.map(|count| count + number as u64 + 1) {
            assert!(begun.elapsed() < PATIENCE, "{what}: {:?} after {before:?}", counts());
        }
    }
    world.go_on();
}

#[test]
fn strangers_cannot_disturb_a_node() {
    for groups in [0, 2] {
        let mut world = World::start(groups);
        let stranger = world.raw().socket;
        let at = world.network.groups.first().copied().unwrap_or(world.node_address);
        let mut beat = [0; mold::HEADER_LENGTH];
        mold::heartbeat(&mut beat, FeedSession::new("SUNDAY").unwrap(), 1_000_000);
        let (foreign, damaged) = world.foreign_and_damaged();
        for packet in [&beat[..], &beat[..19], &[0xa5; 500]] {
            stranger.send_to(packet, at).unwrap();
        }
        // Only the sequencer may report an unknown node, and only to the holder of the key.
        for (_, packet) in from_a_sequencer(99) {
            stranger.send_to(&packet, world.node_address).unwrap();
        }
        // The kernel drops packets of others to the single node.
        let expected = if groups > 0 { (foreign + 1, damaged + 2) } else { (foreign, damaged) };
        let begun = Instant::now();
        while world.foreign_and_damaged() != expected {
            world.go_on();
            assert!(begun.elapsed() < PATIENCE, "{:?}", world.foreign_and_damaged());
        }
        (0..10).for_each(|_| world.go_on());
        assert_eq!(world.foreign_and_damaged(), expected);
        assert_eq!(counter(&world.stream, "gateway.nodes_refused"), 0, "and it never lost its way");
    }
}

fn told(port: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(port).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("it is not closed: {error}"),
        _ => answer,
    }
}

#[test]
fn strangers_over_tcp() {
    let mut world = World::start(0);
    let port = world.stream.tcp_addresses().unwrap().command;
    let of = |world: &World, label: &str| counter(&world.stream, &format!("tcp-gateway.{label}"));
    for (number, (what, bytes, reason)) in refused(&world.stream).into_iter().enumerate() {
        let answer = told(port, &bytes);
        assert!(answer.len() <= bytes.len(), "{what}");
        match UpstreamPacket::parse(&answer).unwrap().body {
            UpstreamBody::Refusal { nonce: 7, reason: given, .. } => assert_eq!(given, reason, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!((of(&world, "nodes_refused"), of(&world, "nodes")), (number as u64 + 1, 1), "{what}");
        world.go_on();
    }
    let mut dropped = of(&world, "connections_dropped");
    assert_eq!(dropped, 0);
    let first_words = malformed().into_iter().chain(from_a_sequencer(99)).chain([
        ("frames", packet(99, UpstreamBody::Frames(&event(1, 1)))),
        ("a report", packet(99, UpstreamBody::Report(NodeReport::default()))),
        ("a farewell", packet(0, UpstreamBody::Farewell)),
    ]);
    for (what, bytes) in first_words {
        assert!(told(port, &bytes).is_empty(), "{what} is answered");
        dropped += 1;
        assert_eq!((of(&world, "connections_dropped"), of(&world, "packets_malformed")), (dropped, dropped), "{what}");
        world.go_on();
    }
    let behind = |key: u64| {
        [
            ("another key", packet(key ^ 2, UpstreamBody::Report(NodeReport::default()))),
            ("frames with another key", packet(key ^ 2, UpstreamBody::Frames(&event(1, 1)))),
            ("no frames", packet(key, UpstreamBody::Frames(&[0xa5; 300]))),
            ("an answer", packet(key, UpstreamBody::Answers(&event(1, 1)))),
            ("noise", vec![0xa5; 1_000]),
        ]
    };
    for number in 0..behind(0).len() {
        let mut socket = TcpStream::connect(port).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(&hello(|_| ())).unwrap();
        let mut answer = [0; HELLO_LENGTH];
        socket.read_exact(&mut answer).unwrap();
        let (what, bytes) = &behind(UpstreamPacket::parse(&answer).unwrap().key)[number];
        socket.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        let ended = socket.read_to_end(&mut rest);
        assert!(ended.is_ok() || ended.unwrap_err().kind() == ErrorKind::ConnectionReset, "{what}");
        assert!(rest.is_empty(), "{what} is answered");
        dropped += 1;
        assert_eq!((of(&world, "connections_dropped"), of(&world, "packets_malformed")), (dropped, dropped), "{what}");
        assert_eq!(of(&world, "packets_unknown"), 2.min(number as u64 + 1), "{what}");
        reaches(&world.stream, "tcp-gateway.nodes", 1);
        world.go_on();
    }
}

#[test]
fn strangers_at_the_rewind_port() {
    let mut world = World::start(0);
    let logins = [
        (login("honest", "trout", "", 1), b'A'),
        (login("nobody", "swordfish", "", 1), b'A'),
        (login("honest", "swordfish", "SUNDAY", 1), b'S'),
    ];
    for (number, (bytes, reason)) in logins.iter().enumerate() {
        let mut client = Client::connect(&world.stream);
        client.send(bytes);
        client.rejected(*reason);
        assert_eq!(counter(&world.stream, "rewind.logins_refused"), number as u64 + 1);
        world.go_on();
    }
    let text = format!("L{:<60}{:<100}{:<10}{:>20}", "honest", "swordfish", "", 1);
    let oversized = [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat();
    let hello = hello(|_| ());
    for (number, bytes) in [&oversized[..], &MAGIC.to_le_bytes(), &hello].into_iter().enumerate() {
        let mut client = Client::connect(&world.stream);
        client.send(bytes);
        assert_eq!(client.next(), None, "{} is answered", bytes.escape_ascii());
        reaches(&world.stream, "rewind.malformed", number as u64 + 1);
        world.go_on();
    }
}
