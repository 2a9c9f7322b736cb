use super::world::{ReceivedMessage, TestNode, World, open, payload, run, settle};
use gapless_client::node::{DatagramLink, DatagramOptions, NodeState, Start, StreamNodeOptions};
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::{free_address, multicast_group, own_loopback};
use gapless_testkit::wait::until;
use gapless_transport::network::{Interface, Segmentation, UdpSocket};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tempfile::TempDir;

pub struct Udp<const GROUPS: usize, const REWINDS: bool = false> {
    _directory: TempDir,
    options: EventStreamOptions,
    network: PacketNetwork,
    stream: Option<EventStream>,
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

impl<const GROUPS: usize, const REWINDS: bool> World for Udp<GROUPS, REWINDS> {
    type Link = DatagramLink<UdpSocket>;

    fn start(change: impl Fn(&mut EventStreamOptions) + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = EventStreamOptions::in_directory(directory.path());
        options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
        options.window_bytes = 8 << 20;
        options.message_length_max = 2 << 20;
        options.frame_length_max = 1_376;
        let mut network = PacketNetwork::udp(free_address(), free_address());
        let interface = Interface::Address(LOOPBACK);
        network.carrier = Carrier::Udp { interface, hops: 0, segmentation: Segmentation::Auto };
        network.groups = (0..GROUPS).map(|_| multicast_group()).collect();
        options.packets = Some(network.clone());
        if REWINDS {
            let any_port = SocketAddr::from((own_loopback(), 0));
            options.tcp = Some(TcpNetwork::new(any_port, any_port));
        }
        change(&mut options);
        let stream = EventStream::start(&options).unwrap();
        if let (Some(tcp), Some(addresses)) = (&mut options.tcp, stream.tcp_addresses()) {
            (tcp.command, tcp.rewind) = (addresses.command, addresses.rewind);
        }
        Self { _directory: directory, options, network, stream: Some(stream) }
    }

    fn link(&mut self) -> Self::Link {
        let mut options = DatagramOptions::new(self.network.command, self.network.request);
        options.rewind = self.options.tcp.as_ref().map(|tcp| tcp.rewind);
        if REWINDS {
            options.receiver.rewind_frames_min = 100;
        }
        DatagramLink::open(&self.network.groups, &Interface::Address(LOOPBACK), Segmentation::Auto, options).unwrap()
    }

    fn stream(&self) -> &EventStream {
        self.stream.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.stream = None;
        self.stream = Some(EventStream::start(&self.options).unwrap());
    }
}

mod unicast {
    crate::every_transport_conforms::suite::conformance!(super::Udp<0>);
}

mod multicast {
    crate::every_transport_conforms::suite::conformance!(super::Udp<1>);
}

mod multicast_with_two_feeds {
    crate::every_transport_conforms::suite::conformance!(super::Udp<2>);
}

mod unicast_with_rewinds {
    crate::every_transport_conforms::suite::conformance!(super::Udp<0, true>);
}

mod multicast_with_rewinds {
    crate::every_transport_conforms::suite::conformance!(super::Udp<1, true>);
}

/// Control: rewinds happen.
fn is_used<const GROUPS: usize>() {
    let mut world = Udp::<GROUPS, true>::start(|options| {
        options.window_bytes = 1 << 20;
        options.message_length_max = 64 << 10;
    });
    let frames_sent = |world: &Udp<GROUPS, true>| {
        let values = world.stream().counters().values();
        values.into_iter().find(|(label, _)| label == "rewind.frames").unwrap().1
    };
    let mut fast = open(&mut world, StreamNodeOptions::default());
    let mut slow = TestNode::new(&mut world, StreamNodeOptions::reading(Start::First));
    run(&mut world, &mut [&mut slow], "it is there", |parties| parties[0].node.state() == NodeState::Live);
    for number in 0..24_000 {
        fast.publish(&payload(number, 1_000));
        if number % 500 == 499 {
            settle(&mut world, &mut [&mut fast]);
        }
    }
    settle(&mut world, &mut [&mut fast, &mut slow]);
    let of_slow = slow.node.link().counts().frames_rewound;
    assert!(of_slow >= 100, "the slow one rewound {of_slow} frames: {:?}", slow.node.link().counts());
    // A frame is counted after it is sent.
    until("all sent frames are counted", || frames_sent(&world) >= of_slow);
    let before = frames_sent(&world);
    let mut late = TestNode::new(&mut world, StreamNodeOptions::reading(Start::First));
    settle(&mut world, &mut [&mut fast, &mut late]);
    let of_late = late.node.link().counts();
    assert!(of_late.frames_rewound >= 23_000, "the late one rewound: {of_late:?}");
    until("all sent frames are counted", || frames_sent(&world) - before >= of_late.frames_rewound);
    for party in [&slow, &late] {
        assert!(
            party.messages.iter().map(ReceivedMessage::shared).eq(fast.messages.iter().map(ReceivedMessage::shared))
        );
    }
}

#[test]
fn slow_and_late_nodes_rewind() {
    is_used::<0>();
    is_used::<1>();
}

#[test]
fn requests_replace_a_silent_rewind() {
    let mut world = Udp::<0, true>::start(|_| {});
    let mut early = open(&mut world, StreamNodeOptions::default());
    for number in 0..3_000 {
        early.publish(&payload(number, 100));
    }
    settle(&mut world, &mut [&mut early]);
    let silent = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let deaf = SocketAddr::new(LOOPBACK, 1);
    for rewind in [deaf, silent.local_addr().unwrap()] {
        world.options.tcp.as_mut().unwrap().rewind = rewind;
        let mut late = TestNode::new(&mut world, StreamNodeOptions::reading(Start::First));
        settle(&mut world, &mut [&mut early, &mut late]);
        assert_eq!(late.messages.len(), 3_000);
        let counts = late.node.link().counts();
        assert!(counts.frames_rewound == 0 && counts.frames_requested > 0, "{counts:?}");
    }
}
