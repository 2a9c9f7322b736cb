#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_agent::Now;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::options::EventStreamOptions;
use gapless_transport::network::{Datagrams, Faults, MemoryNetwork, MemorySocket, Peer};
use gapless_wire::soup::Field;
use gapless_wire::upstream::{NodeHello, NodeReport, POSITION_FIRST, UpstreamBody, UpstreamPacket, finish_frames};
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind};

fn at(host: u8, port: u16) -> Peer {
    Peer::from(([10, 0, 0, host], port))
}

struct World {
    memory: MemoryNetwork,
    stream: EventStream,
    node: MemorySocket,
    now_ns: u64,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Welcome(u64),
    Refused,
}

impl World {
    fn new() -> Self {
        let memory = MemoryNetwork::new(1, Faults::NONE);
        let mut options = EventStreamOptions::in_memory();
        options.frame_length_max = 1_376;
        let mut network = PacketNetwork::udp(at(1, 1000), at(1, 1001));
        network.carrier = Carrier::Memory(memory.clone());
        options.packets = Some(network);
        let stream = EventStream::start_by_hand(&options).unwrap();
        let node = memory.socket(at(2, 1)).unwrap();
        let mut world = Self { memory, stream, node, now_ns: 1_000_000_000 };
        world.turn(10);
        world
    }

    fn turn(&mut self, count: u32) {
        for _ in 0..count {
            self.now_ns += 1_000_000;
            self.memory.advance(1_000_000);
            let now = Now { monotonic_ns: self.now_ns, epoch_ns: 1_000_000_000_000_000_000 + self.now_ns };
            self.stream.turn(now).unwrap();
        }
    }

    fn hello(&mut self, nonce: u64, position: u64) -> Answer {
        let (username, password) = (Field::BLANK, Field::BLANK);
        let hello = NodeHello {
            nonce,
            stream_id: 0,
            incarnation: 0,
            position,
            username,
            password,
            seen_sequence: 0,
            seen_timestamp_ns: 0,
            seen_stream_id: 0,
            seen_incarnation: 0,
            mtu: None,
        };
        let mut packet = [0; 256];
        let length = UpstreamPacket { key: 0, body: UpstreamBody::Hello(hello) }.write_to(&mut packet).unwrap();
        self.node.send(at(1, 1000), &packet[..length], length).unwrap();
        self.turn(5);
        let mut answer = None;
        self.node
            .receive(&mut |_, bytes| match UpstreamPacket::parse(bytes) {
                Ok(UpstreamPacket { key, body: UpstreamBody::Welcome(welcome) }) if welcome.nonce == nonce => {
                    answer = Some(Answer::Welcome(key));
                }
                Ok(UpstreamPacket { body: UpstreamBody::Refusal { nonce: answered, .. }, .. }) if answered == nonce => {
                    answer = Some(Answer::Refused);
                }
                _ => {}
            })
            .unwrap();
        answer.expect("a hello is answered")
    }

    /// Connects and proves that the welcome has arrived.
    fn come_in(&mut self, nonce: u64) {
        let Answer::Welcome(key) = self.hello(nonce, POSITION_FIRST) else { panic!("it is let in") };
        let mut packet = [0; 256];
        let length =
            UpstreamPacket { key, body: UpstreamBody::Report(NodeReport::default()) }.write_to(&mut packet).unwrap();
        self.node.send(at(1, 1000), &packet[..length], length).unwrap();
        self.turn(5);
    }

    fn targets(&self) -> u64 {
        self.stream.counters().values().into_iter().find(|(label, _)| label == "feed.targets").unwrap().1
    }
}

const NOT_THERE_YET: u64 = 1_000_000;

#[test]
fn refused_node_gets_no_feed() {
    let mut world = World::new();
    world.come_in(7);
    assert_eq!(world.targets(), 1);
    // The node itself, lost between two feed sessions, or another in its place.
    for nonce in [7, 8] {
        assert_eq!(world.hello(nonce, NOT_THERE_YET), Answer::Refused);
        world.turn(300);
        assert_eq!(world.targets(), 0);
        world.come_in(nonce);
        assert_eq!(world.targets(), 1);
    }
    assert_eq!(world.hello(9, NOT_THERE_YET), Answer::Refused);
    world.come_in(10);
    world.turn(300);
    assert_eq!(world.targets(), 1);
}

#[test]
fn dropped_node_gets_no_feed() {
    let mut world = World::new();
    let Answer::Welcome(key) = world.hello(7, POSITION_FIRST) else { panic!("it is let in") };
    let mut packet = vec![0; gapless_wire::upstream::HEADER_LENGTH + HEADER_LENGTH];
    let writer = FrameWriter::new(&mut packet[gapless_wire::upstream::HEADER_LENGTH..]);
    writer.finish(&FrameHeader { kind: Kind::Reply, ..FrameHeader::default() }, 0);
    finish_frames(&mut packet, key);
    for _ in 0..2 {
        let length = packet.len();
        world.node.send(at(1, 1000), &packet, length).unwrap();
        world.turn(5);
    }
    world.turn(300);
    assert_eq!(world.targets(), 0);
}
