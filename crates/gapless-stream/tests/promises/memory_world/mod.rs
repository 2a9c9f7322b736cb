use gapless_agent::{Clock, VirtualTime};
use gapless_client::node::{DatagramLink, DatagramOptions, NodeEvent, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::options::EventStreamOptions;
use gapless_transport::network::{Faults, MemoryNetwork, MemorySocket, Peer};
use gapless_wire::{Encoding, FeedSession};

pub const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const STEP_NS: u64 = 100_000;
pub const GROUP: ([u8; 4], u16) = ([239, 0, 0, 1], 2000);

pub fn at(host: u8, port: u16) -> Peer {
    Peer::from(([10, 0, 0, host], port))
}

pub struct World {
    pub memory: MemoryNetwork,
    time: VirtualTime,
    clock: Clock,
    pub stream: EventStream,
    pub nodes: Vec<StreamNode<DatagramLink<MemorySocket>>>,
    pub read: Vec<u64>,
}

impl World {
    pub fn new() -> Self {
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
        Self { memory, time, clock, stream, nodes: Vec::new(), read: Vec::new() }
    }

    pub fn node(&mut self, options: StreamNodeOptions) -> usize {
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

    pub fn step(&mut self, polled: &[usize]) {
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

    pub fn until(&mut self, polled: &[usize], what: &str, is_done: impl Fn(&Self) -> bool) {
        for _ in 0..200_000 {
            if is_done(self) {
                return;
            }
            self.step(polled);
        }
        panic!("{what} did not come about: {:?} read", self.read);
    }
}
