//! No checksum covers a heartbeat, and anybody who reaches the group can send one. What it announces far beyond what is
//! known counts once the sequencer has confirmed it; until then nothing is asked for, and nothing moves.

use gapless_agent::{Clock, VirtualTime};
use gapless_client::client::MessageType;
use gapless_client::node::{DatagramLink, DatagramOptions, NodeEvent, Start, StreamNode, StreamNodeOptions};
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::options::EventStreamOptions;
use gapless_transport::network::{Datagrams, Faults, MemoryNetwork, MemorySocket, Peer};
use gapless_wire::mold::{end_of_session, heartbeat};
use gapless_wire::{Encoding, FeedSession};

const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const STEP_NS: u64 = 100_000;
const GROUP: ([u8; 4], u16) = ([239, 0, 0, 1], 2000);

fn at(host: u8, port: u16) -> Peer {
    Peer::from(([10, 0, 0, host], port))
}

struct World {
    memory: MemoryNetwork,
    time: VirtualTime,
    clock: Clock,
    stream: EventStream,
    /// Members of the group.
    nodes: Vec<StreamNode<DatagramLink<MemorySocket>>>,
    forger: MemorySocket,
    read: Vec<u64>,
}

impl World {
    fn new() -> Self {
        let memory = MemoryNetwork::new(1, Faults::NONE);
        let mut options = EventStreamOptions::in_memory();
        options.frame_length_max = 1_376;
        options.window_bytes = 16 << 20;
        options.message_length_max = 64 << 10;
        options.feed_session = FeedSession::new("MONDAY").unwrap();
        let mut network = PacketNetwork::udp(at(1, 1000), at(1, 1001));
        network.carrier = Carrier::Memory(memory.clone());
        network.groups = vec![Peer::from(GROUP)];
        network.heartbeat_interval_ns = 50_000_000;
        options.packets = Some(network);
        let time = VirtualTime::new(1, 1_000_000_000_000_000_000);
        let clock = Clock::virtual_time(&time);
        let stream = EventStream::start_by_hand(&options).unwrap();
        let forger = memory.socket(at(9, 9)).unwrap();
        Self { memory, time, clock, stream, nodes: Vec::new(), forger, read: Vec::new() }
    }

    fn node(&mut self, options: StreamNodeOptions) -> usize {
        let number = self.nodes.len() as u16 + 1;
        let main = self.memory.socket(at(2, number)).unwrap();
        let requests = self.memory.socket(at(3, number)).unwrap();
        let member = self.memory.socket(at(4, number)).unwrap();
        member.join(Peer::from(GROUP));
        let datagrams = DatagramOptions::new(at(1, 1000), at(1, 1001));
        let link = DatagramLink::new(main, requests, vec![member], datagrams);
        self.nodes.push(StreamNode::with_clock(link, options, self.clock.clone()));
        self.read.push(0);
        self.nodes.len() - 1
    }

    /// A step of time, in which the nodes of `polled` look.
    fn step(&mut self, polled: &[usize]) {
        self.time.advance(STEP_NS);
        self.memory.advance(STEP_NS);
        let now = self.clock.now();
        for _ in 0..3 {
            self.stream.turn(now).unwrap();
        }
        for &index in polled {
            let read = &mut self.read[index];
            self.nodes[index].poll(256, |event| *read += u64::from(matches!(event, NodeEvent::Message(_)))).unwrap();
        }
    }

    fn until(&mut self, polled: &[usize], what: &str, is_done: impl Fn(&Self) -> bool) {
        for _ in 0..200_000 {
            if is_done(self) {
                return;
            }
            self.step(polled);
        }
        panic!("{what} did not come about: {:?} read", self.read);
    }

    /// Sends the group what the sequencer never said: a heartbeat and an end of the feed session.
    fn forge(&mut self, number: u64) {
        let mut packet = [0; 20];
        heartbeat(&mut packet, FeedSession::new("MONDAY").unwrap(), number);
        self.forger.send(Peer::from(GROUP), &packet, packet.len()).unwrap();
        end_of_session(&mut packet, FeedSession::new("MONDAY").unwrap(), number);
        self.forger.send(Peer::from(GROUP), &packet, packet.len()).unwrap();
    }
}

#[test]
fn forgeries_in_a_row_move_no_node_and_are_counted() {
    let mut world = World::new();
    let publisher = world.node(StreamNodeOptions::default());
    let reader = world.node(StreamNodeOptions::reading(Start::First));
    let both = [publisher, reader];
    world.until(&both, "both are in", |world| world.nodes[0].can_publish());
    for number in 0..50u64 {
        world.nodes[publisher].publish(TYPE, &number.to_le_bytes()).unwrap();
    }
    world.until(&both, "all is read", |world| world.read == [50, 50]);
    let released = world.stream.released_sequence();
    for round in 0..2_000u64 {
        world.forge([1 << 60, (1 << 60) + 1, u64::MAX - 2, released + 2_500, released + 1_000_000][round as usize % 5]);
        world.step(&both);
        let counts = world.nodes[reader].link().counts();
        assert_eq!(counts.frames_requested, 0, "round {round}: {counts:?}");
        assert_eq!(world.nodes[reader].released_sequence(), released, "round {round}");
    }
    let counts = world.nodes[reader].link().counts();
    assert!(counts.claims_doubted >= 3_000, "{counts:?}");
    // In 200 ms of attack the sequencer is asked less and less often.
    assert!((1..=6).contains(&counts.claims_refuted), "{counts:?}");
    world.nodes[publisher].publish(TYPE, b"and it goes on").unwrap();
    world.until(&both, "it goes on", |world| world.read == [51, 51]);
}

#[test]
fn an_honest_heartbeat_far_ahead_is_confirmed_by_the_sequencer() {
    let mut world = World::new();
    let publisher = world.node(StreamNodeOptions::default());
    let reader = world.node(StreamNodeOptions::reading(Start::First));
    let both = [publisher, reader];
    world.until(&both, "both are in", |world| world.nodes[0].can_publish());
    // The reader does not look meanwhile, and the operating system keeps the first part for it alone.
    for number in 0..6_000u64 {
        let mut payload = [0; 1_000];
        payload[..8].copy_from_slice(&number.to_le_bytes());
        while world.nodes[publisher].publish(TYPE, &payload).is_err() {
            world.step(&[publisher]);
        }
    }
    world.until(&[publisher], "the publisher has all", |world| world.read[0] == 6_000);
    world.until(&both, "the reader has all", |world| world.read[1] == 6_000);
    let counts = world.nodes[reader].link().counts();
    assert!(counts.claims_doubted > 0 && counts.claims_refuted == 0, "{counts:?}");
    assert!(counts.frames_requested > 2_000, "{counts:?}");
}
