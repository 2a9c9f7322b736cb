//! Receivers that know only the standard protocols get the end of a feed session: before the next one, after a restart,
//! and when the stream ends with its process; they can still request its messages.

use crate::raw_soup::{Client, login};
use gapless_client::node::{
    DatagramLink, DatagramOptions, NodeEvent, SharedMemoryLink, SharedMemoryOptions, Start, StreamNode,
    StreamNodeOptions,
};
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;
use gapless_stream::messages::SequencerRequest;
use gapless_stream::network::TcpNetwork;
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::{free_address, multicast_group, own_loopback};
use gapless_transport::credentials::Credentials;
use gapless_transport::network::{Interface, Segmentation};
use gapless_wire::mold::{MoldPacket, MoldRequest, PacketContent};
use gapless_wire::soup::Field;
use gapless_wire::{Encoding, FeedSession, Frame, Kind};
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const PATIENCE: Duration = Duration::from_secs(60);
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn name(text: &str) -> FeedSession {
    FeedSession::new(text).unwrap()
}

/// Counts numbers, treats lower ones as duplicates in any session, and starts over at the end of its session.
struct MinimalReceiver {
    socket: UdpSocket,
    session: Option<FeedSession>,
    next: u64,
    messages: Vec<Vec<u8>>,
    ends: Vec<(String, u64)>,
}

impl MinimalReceiver {
    fn join(group: SocketAddr) -> Self {
        let IpAddr::V4(ip) = group.ip() else { unreachable!("groups of this test are of IPv4") };
        let member = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        sockopt::set_socket_reuseaddr(&member, true).unwrap();
        bind(&member, &SocketAddr::new(ip.into(), group.port())).unwrap();
        let socket = UdpSocket::from(member);
        socket.join_multicast_v4(&ip, &Ipv4Addr::LOCALHOST).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        Self { socket, session: None, next: 1, messages: Vec::new(), ends: Vec::new() }
    }

    fn read_packet(&mut self) {
        let mut buffer = [0; 1 << 16];
        let Ok(length) = self.socket.recv(&mut buffer) else { return };
        let packet = MoldPacket::parse(&buffer[..length]).unwrap();
        match packet.content {
            PacketContent::Heartbeat => {}
            PacketContent::EndOfSession => {
                let end = (packet.feed_session.as_str().to_owned(), packet.sequence);
                if !self.ends.contains(&end) {
                    self.ends.push(end);
                }
                if self.session == Some(packet.feed_session) {
                    (self.session, self.next) = (None, 1);
                }
            }
            PacketContent::Messages(messages) => {
                self.session = self.session.or(Some(packet.feed_session));
                for (message, number) in messages.zip(packet.sequence..) {
                    if number == self.next {
                        self.next += 1;
                        let frame = Frame::parse(message).unwrap();
                        self.messages.extend((frame.kind() == Kind::Event).then(|| frame.payload().to_vec()));
                    }
                }
            }
        }
    }

    fn until(&mut self, what: &str, is_done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_done(self) {
            assert!(Instant::now() < deadline, "{what}: {:?}, {} messages", self.ends, self.messages.len());
            self.read_packet();
        }
    }
}

fn options(directory: Option<&std::path::Path>) -> (EventStreamOptions, PacketNetwork) {
    let mut options = directory.map_or_else(EventStreamOptions::in_memory, EventStreamOptions::in_directory);
    options.window_bytes = 1 << 20;
    options.message_length_max = 64 << 10;
    options.frame_length_max = 1_376;
    options.feed_session = name("MONDAY");
    let (command, request) = (free_address(), free_address());
    let mut network = PacketNetwork::udp(command, request);
    let interface = Interface::Address(LOOPBACK);
    network.carrier = Carrier::Udp { interface, hops: 0, segmentation: Segmentation::Auto };
    network.groups = vec![multicast_group()];
    network.heartbeat_interval_ns = 50_000_000;
    options.packets = Some(network.clone());
    (options, network)
}

fn node(stream: &EventStream) -> StreamNode<SharedMemoryLink> {
    let link = stream.local_link(SharedMemoryOptions::default()).unwrap();
    let mut node = StreamNode::new(link, StreamNodeOptions::default());
    node.wait_open(PATIENCE).unwrap();
    node
}

fn publish(node: &mut StreamNode<SharedMemoryLink>, payloads: &[Vec<u8>]) {
    for payload in payloads {
        node.publish(TYPE, payload).unwrap();
    }
    node.poll_until(PATIENCE, "all to come back", |node| node.in_flight() == 0, |_| {}).unwrap();
}

fn payloads(marker: u8, count: u8) -> Vec<Vec<u8>> {
    (0..count).map(|number| vec![marker, number]).collect()
}

#[test]
fn roll_over_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (options, network) = options(Some(place.path()));
    let mut simple = MinimalReceiver::join(network.groups[0]);
    let stream = EventStream::start(&options).unwrap();
    let datagrams = DatagramOptions::new(network.command, network.request);
    let link =
        DatagramLink::open(&network.groups, &Interface::Address(LOOPBACK), Segmentation::Auto, datagrams).unwrap();
    let mut ours = StreamNode::new(link, StreamNodeOptions::reading(Start::First));
    let mut publisher = node(&stream);
    publish(&mut publisher, &payloads(1, 20));
    for (day, marker) in [("TUESDAY", 2), ("WEDNESDAY", 3)] {
        stream.ask(SequencerRequest::BeginFeed { name: name(day) }).unwrap();
        publish(&mut publisher, &payloads(marker, 6));
    }
    let all = [payloads(1, 20), payloads(2, 6), payloads(3, 6)].concat();
    simple.until("all messages", |simple| simple.messages.len() >= all.len());
    assert_eq!(simple.messages, all);
    let ends: Vec<&str> = simple.ends.iter().map(|(name, _)| name.as_str()).collect();
    assert!(ends.starts_with(&["MONDAY", "TUESDAY"]), "{ends:?}");

    let mut met = Vec::new();
    let mut poll = |until: &dyn Fn(&Vec<Vec<u8>>) -> bool| {
        let deadline = Instant::now() + PATIENCE;
        while !until(&met) {
            assert!(Instant::now() < deadline, "{met:?}");
            ours.poll(64, |event| {
                if let NodeEvent::Message(message) = event {
                    met.push(message.payload.to_vec());
                }
            })
            .unwrap();
        }
        met.clone()
    };
    assert_eq!(poll(&|met| met.len() >= all.len()), all);
    let later = Instant::now() + Duration::from_millis(1_500);
    assert_eq!(poll(&|_| Instant::now() > later), all, "no message comes twice");
    assert_eq!(ours.position(), stream.released_sequence() + 1);

    let asking = UdpSocket::bind("127.0.0.1:0").unwrap();
    asking.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let request = MoldRequest { feed_session: name("MONDAY"), sequence: 2, count: 3 };
    let mut answer = [0; 1 << 16];
    let length = (0..100).find_map(|_| {
        asking.send_to(&request.to_bytes(), network.request).unwrap();
        asking.recv(&mut answer).ok()
    });
    let packet = MoldPacket::parse(&answer[..length.expect("there is an answer")]).unwrap();
    assert_eq!((packet.feed_session, packet.sequence), (name("MONDAY"), 2));

    drop((ours, publisher));
    stream.stop().unwrap();
    let mut after = MinimalReceiver::join(network.groups[0]);
    let stream = EventStream::start(&options).unwrap();
    after.until("the end again", |after| !after.ends.is_empty());
    assert_eq!(after.ends[0], simple.ends[1]);
    stream.stop().unwrap();
    (0..20).for_each(|_| after.read_packet());
    assert!(after.ends.iter().all(|(name, _)| name != "WEDNESDAY"), "{:?}", after.ends);
}

#[test]
fn memory_stream_ends_with_process() {
    let (mut options, network) = options(None);
    let any_port = SocketAddr::from((own_loopback(), 0));
    let mut tcp = TcpNetwork::new(any_port, any_port);
    let (username, password) = (Field::new("reader").unwrap(), Field::new("swordfish").unwrap());
    tcp.sessions.users = vec![Credentials { username, password }];
    options.tcp = Some(tcp);
    let mut simple = MinimalReceiver::join(network.groups[0]);
    let stream = EventStream::start(&options).unwrap();
    let mut publisher = node(&stream);
    publish(&mut publisher, &payloads(1, 6));
    let mut client = Client::connect(&stream);
    client.send(&login("reader", "swordfish", "", 1));
    client.accepted("MONDAY", 1);
    let released = stream.released_sequence();
    let frames = client.frames(1, released);
    assert_eq!(frames, payloads(1, 6));
    let reading = std::thread::spawn(move || {
        let mut last = None;
        while let Some(packet) = client.next() {
            last = Some(packet);
        }
        last
    });
    drop(publisher);
    stream.stop().unwrap();
    simple.until("the end", |simple| !simple.ends.is_empty());
    assert_eq!((simple.messages, simple.ends), (payloads(1, 6), vec![("MONDAY".to_owned(), released + 1)]));
    assert_eq!(reading.join().unwrap().map(|(kind, _)| kind), Some(b'Z'));
}
