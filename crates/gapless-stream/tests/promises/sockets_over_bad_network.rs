//! Nodes over UDP across a proxy that loses, duplicates, delays, reorders and damages 20 % of the packets of real
//! sockets, both ways. Prints its seed and takes one from `GAPLESS_SEED`.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::node::{DatagramLink, DatagramOptions, NodeEvent, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::endpoints::PacketNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::free_address;
use gapless_testkit::random::{Random, rounds};
use gapless_transport::network::{Interface, Segmentation};
use gapless_wire::Encoding;
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const PATIENCE: Duration = Duration::from_secs(120);
/// A packet is delayed by up to ten times as much.
const PAUSE: Duration = Duration::from_micros(200);

fn messages() -> u64 {
    rounds(600, 200)
}

struct BadNetwork {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    harmed: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

struct DelayedPacket {
    due: Instant,
    to_node: bool,
    node: SocketAddr,
    bytes: Vec<u8>,
}

impl BadNetwork {
    fn before(port: SocketAddr, mut random: Random) -> Self {
        let front = StdSocket::bind("127.0.0.1:0").unwrap();
        front.set_nonblocking(true).unwrap();
        let address = front.local_addr().unwrap();
        let (stopped, harmed) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stop, harm) = (Arc::clone(&stopped), Arc::clone(&harmed));
        let thread = std::thread::spawn(move || {
            // The sequencer tells the nodes apart by them.
            let mut nodes: HashMap<SocketAddr, StdSocket> = HashMap::new();
            let mut delayed: Vec<DelayedPacket> = Vec::new();
            let mut buffer = vec![0; 1 << 16];
            while !stop.load(Ordering::Relaxed) {
                let mut came = Vec::new();
                while let Ok((length, node)) = front.recv_from(&mut buffer) {
                    nodes.entry(node).or_insert_with(|| {
                        let socket = StdSocket::bind("127.0.0.1:0").unwrap();
                        socket.set_nonblocking(true).unwrap();
                        socket
                    });
                    came.push((false, node, buffer[..length].to_vec()));
                }
                for (node, socket) in &nodes {
                    while let Ok((length, _)) = socket.recv_from(&mut buffer) {
                        came.push((true, *node, buffer[..length].to_vec()));
                    }
                }
                for (to_node, node, bytes) in came {
                    suffer(&mut delayed, &mut random, &harm, (to_node, node, bytes));
                }
                let now = Instant::now();
                delayed.retain(|packet| {
                    if packet.due > now {
                        return true;
                    }
                    let _ = if packet.to_node {
                        front.send_to(&packet.bytes, packet.node)
                    } else {
                        nodes[&packet.node].send_to(&packet.bytes, port)
                    };
                    false
                });
                std::thread::sleep(PAUSE);
            }
        });
        Self { address, stopped, harmed, thread: Some(thread) }
    }
}

/// A fifth each; delays of up to 2 ms reorder.
fn suffer(
    delayed: &mut Vec<DelayedPacket>,
    random: &mut Random,
    harm: &AtomicU64,
    packet: (bool, SocketAddr, Vec<u8>),
) {
    let (to_node, node, mut bytes) = packet;
    if random.below(5) == 0 {
        harm.fetch_add(1, Ordering::Relaxed);
        return;
    }
    if random.below(5) == 0 && !bytes.is_empty() {
        harm.fetch_add(1, Ordering::Relaxed);
        let position = random.below(bytes.len() as u64) as usize;
        bytes[position] ^= 1 << random.below(8);
    }
    let copies = if random.below(5) == 0 { 2 } else { 1 };
    for _ in 0..copies {
        let due = Instant::now() + Duration::from_micros(random.below(2_000));
        delayed.push(DelayedPacket { due, to_node, node, bytes: bytes.clone() });
    }
}

impl Drop for BadNetwork {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[test]
fn every_node_sees_the_same_stream() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let mut options = EventStreamOptions::in_directory(directory.path());
    options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
    options.window_bytes = 8 << 20;
    options.message_length_max = 1 << 20;
    options.frame_length_max = 1_376;
    let (command, request) = (free_address(), free_address());
    options.packets = Some(PacketNetwork::udp(command, request));
    let stream = EventStream::start(&options).unwrap();
    let [commands, requests] = [command, request].map(|port| BadNetwork::before(port, Random::new(random.number())));
    let mut nodes: Vec<_> = (0..3)
        .map(|_| {
            let options = DatagramOptions::new(commands.address, requests.address);
            let link = DatagramLink::open(&[], &Interface::Default, Segmentation::Auto, options).unwrap();
            (StreamNode::new(link, StreamNodeOptions::default()), 0u64, Vec::new())
        })
        .collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut count = 0;
        for (index, (node, sent, met)) in nodes.iter_mut().enumerate() {
            while *sent < messages() && node.can_publish() && node.in_flight() < 100 {
                let length = [8, 100, 1_000, 5_000][*sent as usize % 4];
                let mut payload = vec![index as u8; length];
                payload[..8].copy_from_slice(&sent.to_le_bytes());
                node.publish(TYPE, &payload).unwrap();
                *sent += 1;
            }
            count += node
                .poll(256, |event| {
                    if let NodeEvent::Message(message) = event {
                        let number = u64::from_le_bytes(message.payload[..8].try_into().unwrap());
                        let is_whole = message.payload[8..].iter().all(|byte| *byte == message.payload[8]);
                        assert!(is_whole || message.payload.len() == 8);
                        met.push((message.sequence, message.session, number, message.own, message.payload.len()));
                    }
                })
                .unwrap();
        }
        if nodes.iter().all(|(_, _, met)| met.len() as u64 == 3 * messages()) {
            break;
        }
        let state = || nodes.iter().map(|(node, sent, met)| (*sent, met.len(), node.state())).collect::<Vec<_>>();
        assert!(Instant::now() < deadline, "{:?}", state());
        if count == 0 {
            std::thread::sleep(PAUSE);
        }
    }
    let shared = |met: &[(u64, u64, u64, bool, usize)]| -> Vec<_> {
        met.iter().map(|(sequence, session, number, _, length)| (*sequence, *session, *number, *length)).collect()
    };
    for (_, _, met) in &nodes {
        assert!(shared(met) == shared(&nodes[0].2), "two nodes have met different streams");
        let own: Vec<_> = met.iter().filter(|each| each.3).map(|each| each.2).collect();
        assert!(own.iter().copied().eq(0..messages()), "its own come back once, in order");
    }
    let harmed = commands.harmed.load(Ordering::Relaxed) + requests.harmed.load(Ordering::Relaxed);
    println!("{harmed} packets were lost or damaged");
    assert!(harmed > 500, "the network was bad: {harmed}");
    stream.stop().unwrap();
}
