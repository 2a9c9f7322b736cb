//! In one thread and virtual time: without faults, and with lost, duplicated, damaged, late and reordered packets.

use super::world::World;
use gapless_agent::{Clock, Now, VirtualTime};
use gapless_client::node::{DatagramLink, DatagramOptions};
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::random::printed_seed;
use gapless_transport::network::{Faults, MemoryNetwork, MemorySocket, Peer};
use tempfile::TempDir;

pub struct Memory<const FAULTY: bool, const GROUPS: usize> {
    _directory: TempDir,
    options: EventStreamOptions,
    network: PacketNetwork,
    memory: MemoryNetwork,
    time: VirtualTime,
    clock: Clock,
    stream: Option<EventStream>,
    nodes: u16,
}

const STEP_NS: u64 = 50_000;

fn at(host: u8, port: u16) -> Peer {
    Peer::from(([10, 0, 0, host], port))
}

impl<const FAULTY: bool, const GROUPS: usize> World for Memory<FAULTY, GROUPS> {
    type Link = DatagramLink<MemorySocket>;
    const LOSES: bool = FAULTY;
    // The 150 resent frames count, too: at 2 a second one repetition takes 75 s of virtual time, 1.5 million turns.
    const THROTTLED_PER_S: u32 = 20;

    fn start(change: impl Fn(&mut EventStreamOptions) + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let faults =
            Faults { loss: 0.2, duplication: 0.2, reordering: 0.2, corruption: 0.2, delay_ns: 1_000..=400_000 };
        let memory = MemoryNetwork::new(printed_seed(), if FAULTY { faults } else { Faults::NONE });
        let mut options = EventStreamOptions::in_directory(directory.path());
        options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
        options.window_bytes = 8 << 20;
        options.message_length_max = 2 << 20;
        options.frame_length_max = 1_376;
        let mut network = PacketNetwork::udp(at(1, 1000), at(1, 1001));
        network.carrier = Carrier::Memory(memory.clone());
        network.groups = (0..GROUPS).map(|index| Peer::from(([239, 0, 0, 1 + index as u8], 2000))).collect();
        options.packets = Some(network.clone());
        change(&mut options);
        let time = VirtualTime::new(1, 1_000_000_000_000_000_000);
        let clock = Clock::virtual_time(&time);
        let stream = Some(EventStream::start_by_hand(&options).unwrap());
        Self { _directory: directory, options, network, memory, time, clock, stream, nodes: 0 }
    }

    fn link(&mut self) -> Self::Link {
        self.nodes += 1;
        let main = self.memory.socket(at(2, self.nodes)).unwrap();
        let requests = self.memory.socket(at(2, 10_000 + self.nodes)).unwrap();
        let join = |(index, group): (usize, &Peer)| {
            let socket = self.memory.socket(at(3 + index as u8, self.nodes)).unwrap();
            socket.join(*group);
            socket
        };
        let groups = self.network.groups.iter().enumerate().map(join).collect();
        DatagramLink::new(main, requests, groups, DatagramOptions::new(self.network.command, self.network.request))
    }

    fn clock(&self) -> Option<Clock> {
        Some(self.clock.clone())
    }

    fn stream(&self) -> &EventStream {
        self.stream.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.stream = None;
        self.stream = Some(EventStream::start_by_hand(&self.options).unwrap());
    }

    fn turn(&mut self) {
        self.time.advance(STEP_NS);
        self.memory.advance(STEP_NS);
        let now: Now = self.clock.now();
        let stream = self.stream.as_mut().unwrap();
        for _ in 0..3 {
            stream.turn(now).unwrap();
        }
    }
}

mod without_faults {
    crate::every_transport_conforms::suite::conformance!(super::Memory<false, 0>);
}

mod with_faults {
    crate::every_transport_conforms::suite::conformance!(super::Memory<true, 0>);
}

mod with_faults_on_two_feeds {
    crate::every_transport_conforms::suite::conformance!(super::Memory<true, 2>);
}
