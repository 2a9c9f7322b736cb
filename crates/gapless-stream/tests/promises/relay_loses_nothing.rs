//! A last message lost between relay and sequencer, with no later one to reveal the gap, is resent by its node.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::ClientError;
use gapless_client::node::link::{ConnectionInfo, LinkRead};
use gapless_client::node::{
    AnyLink, DatagramLink, DatagramOptions, NodeEvent, NodeLink, SharedMemoryLink, SharedMemoryOptions, Start,
    StreamNode, StreamNodeOptions, TcpLink, TcpOptions,
};
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::own_loopback;
use gapless_testkit::wait::turn_until;
use gapless_transport::network::{Datagrams, Interface, Segmentation, UdpOptions, UdpSocket};
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::{Encoding, Frame, Kind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const TYPE: MessageType = MessageType { schema: 3 << 16 | 1, encoding: Encoding::Opaque };
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

struct LossyLink {
    link: DatagramLink<UdpSocket>,
    to_lose: Arc<AtomicU32>,
}

impl NodeLink for LossyLink {
    fn connect(&mut self, start: Start, seen: SeenFrame, now_ns: u64) -> Result<Option<ConnectionInfo>, ClientError> {
        self.link.connect(start, seen, now_ns)
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError> {
        let is_event = Frame::parse(frame).unwrap().kind() == Kind::Event;
        let less_one = |count: u32| count.checked_sub(1);
        if is_event && self.to_lose.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less_one).is_ok() {
            return Ok(true);
        }
        self.link.send(frame)
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.link.flush()
    }

    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError> {
        self.link.answers(take)
    }

    fn read(&mut self, now_ns: u64) -> Result<LinkRead<'_>, ClientError> {
        self.link.read(now_ns)
    }

    fn released_sequence(&self) -> u64 {
        self.link.released_sequence()
    }

    fn loses(&self) -> bool {
        self.link.loses()
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), ClientError> {
        self.link.tick(now_ns)
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), ClientError> {
        self.link.wait(timeout)
    }

    fn peer(&self) -> String {
        self.link.peer()
    }
}

fn options(directory: &Path) -> EventStreamOptions {
    let mut options = EventStreamOptions::in_directory(directory);
    options.persistence.segment_length_bytes = 4 << 20;
    options.window_bytes = 8 << 20;
    options.message_length_max = 1 << 20;
    options.frame_length_max = 1_376;
    options
}

fn udp() -> UdpSocket {
    UdpSocket::open(&UdpOptions::at(SocketAddr::new(LOOPBACK, 0))).unwrap()
}

fn node<L: NodeLink>(link: L) -> StreamNode<L> {
    let mut node = StreamNode::new(link, StreamNodeOptions { start: Start::Live, ..StreamNodeOptions::default() });
    node.wait_open(PATIENCE).unwrap();
    node
}

fn publish<L: NodeLink>(node: &mut StreamNode<L>, payloads: &[Vec<u8>], naps: bool) {
    for payload in payloads {
        node.publish(TYPE, payload).unwrap();
    }
    let mut met = Vec::new();
    let begun = Instant::now();
    while met.len() < payloads.len() || node.in_flight() > 0 {
        let count = node.poll(64, |event| {
            if let NodeEvent::Message(message) = event
                && message.own
            {
                met.push(message.payload.to_vec());
            }
        });
        assert!(begun.elapsed() < PATIENCE, "{} of {} came back", met.len(), payloads.len());
        if count.unwrap() == 0 && naps {
            node.wait(Duration::from_millis(1)).unwrap();
        }
    }
    assert!(met == payloads);
}

#[test]
fn lost_last_message_is_resent() {
    let (directory, near, far) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Both at a time, so that they differ.
    let free = [udp(), udp()].each_ref().map(UdpSocket::local_address);
    let mut network = PacketNetwork::udp(free[0], free[1]);
    network.carrier =
        Carrier::Udp { interface: Interface::Address(LOOPBACK), hops: 0, segmentation: Segmentation::Auto };
    let mut origin = options(directory.path());
    origin.packets = Some(network.clone());
    let origin = EventStream::start(&origin).unwrap();
    let to_lose = Arc::new(AtomicU32::new(0));
    let link = DatagramOptions::new(network.command, network.request);
    let link = DatagramLink::open(&[], &Interface::Default, Segmentation::Auto, link).unwrap();
    let link = LossyLink { link, to_lose: Arc::clone(&to_lose) };
    let any_port = SocketAddr::from((own_loopback(), 0));
    let mut near_options = options(near.path());
    near_options.tcp = Some(TcpNetwork::new(any_port, any_port));
    let running = AtomicBool::new(false);
    let near_relay = EventStream::relay(&near_options, Box::new(link), Start::First, &running).unwrap();
    let addresses = near_relay.tcp_addresses().unwrap();
    let tcp = || TcpLink::new(TcpOptions::new(addresses.command, addresses.rewind));
    let far_relay = EventStream::relay(&options(far.path()), Box::new(tcp()), Start::First, &running).unwrap();
    let shared = |directory: &Path| SharedMemoryLink::new(directory, SharedMemoryOptions::default());
    let links: [AnyLink; 3] = [shared(near.path()).into(), tcp().into(), shared(far.path()).into()];
    for (number, link) in links.into_iter().enumerate() {
        let mut node = node(link);
        let payloads = |count: u8, length: usize| -> Vec<_> { (0..count).map(|each| vec![each; length]).collect() };
        for naps in [false, true] {
            publish(&mut node, &payloads(20, 100), naps);
        }
        for (lost, count, length) in [(1, 1, 100), (3, 3, 100), (2, 1, 100_000), (80, 1, 100_000)] {
            let before = node.resent();
            // The loss of a message that was already sent twice has no effect.
            turn_until("the lost message is resent", || {
                to_lose.store(lost, Ordering::Relaxed);
                publish(&mut node, &payloads(count, length), number == 1);
                assert_eq!(to_lose.load(Ordering::Relaxed), 0, "node {number}: that many were lost");
                node.resent() > before
            });
        }
        drop(node);
    }
    far_relay.stop().unwrap();
    near_relay.stop().unwrap();
    origin.stop().unwrap();
}
