//! The suite over UDP on the loopback interface: each node by itself, and in multicast groups, one feed and two.

use crate::world::World;
use gapless_stream::Persistence;
use gapless_stream::event_stream::{EventStream, EventStreamOptions};
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::network::{Datagrams, Interface, Segmentation, UdpOptions, UdpSocket};
use gapless_stream::node::{DatagramLink, DatagramOptions};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use tempfile::TempDir;

pub struct Udp<const GROUPS: usize> {
    _directory: TempDir,
    options: EventStreamOptions,
    network: PacketNetwork,
    stream: Option<EventStream>,
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A port that nobody uses now.
fn free_port() -> u16 {
    UdpSocket::open(&UdpOptions::at(SocketAddr::new(LOOPBACK, 0))).unwrap().local_address().port()
}

/// A group that no other test uses: tests run side by side, in one process and several.
fn group() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let ip = Ipv4Addr::new(239, 255, process as u8, (process >> 8) as u8 ^ number as u8);
    SocketAddr::new(IpAddr::V4(ip), 20_000 + (process as u16 ^ number.wrapping_mul(97)) % 20_000)
}

impl<const GROUPS: usize> World for Udp<GROUPS> {
    type Link = DatagramLink<UdpSocket>;

    fn start(change: impl Fn(&mut EventStreamOptions) + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = EventStreamOptions::in_directory(directory.path());
        options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
        options.window_bytes = 8 << 20;
        options.message_length_max = 2 << 20;
        options.frame_length_max = 1_376;
        let at = || SocketAddr::new(LOOPBACK, free_port());
        let mut network = PacketNetwork::udp(at(), at());
        let interface = Interface::Address(LOOPBACK);
        network.carrier = Carrier::Udp { interface, hops: 0, segmentation: Segmentation::Auto };
        network.groups = (0..GROUPS).map(|_| group()).collect();
        options.packets = Some(network.clone());
        change(&mut options);
        let stream = Some(EventStream::start(&options).unwrap());
        Self { _directory: directory, options, network, stream }
    }

    fn link(&mut self) -> Self::Link {
        let main = UdpSocket::open(&UdpOptions::at(SocketAddr::new(LOOPBACK, 0))).unwrap();
        let join = |group: &SocketAddr| {
            let options = UdpOptions::of_group(group.ip(), group.port(), Interface::Address(LOOPBACK));
            UdpSocket::open(&options).unwrap()
        };
        let groups = self.network.groups.iter().map(join).collect();
        DatagramLink::new(main, groups, DatagramOptions::new(self.network.command, self.network.request))
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
    crate::suite::conformance!(super::Udp<0>);
}

mod multicast {
    crate::suite::conformance!(super::Udp<1>);
}

mod multicast_with_two_feeds {
    crate::suite::conformance!(super::Udp<2>);
}
