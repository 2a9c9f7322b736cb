//! On a lossless path, a taken packet arrives complete, with its sender: sockets of both families, a multicast group,
//! and the network in memory.
#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_transport::network::{
    Datagrams, Faults, Interface, MemoryNetwork, PACKET_LENGTH_MAX, Peer, Route, Segmentation, SendRefusal, UdpOptions,
    UdpSocket,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV6};
use std::time::{Duration, Instant};

struct Setting<D> {
    sender: D,
    receivers: Vec<D>,
    target: Peer,
    unread_bytes_max: usize,
    let_arrive: Box<dyn Fn()>,
}

macro_rules! suite {
    ($($carrier:ident),* on $promises:tt) => {
        $(suite!(@one $carrier $promises);)*
    };
    (@one $carrier:ident [$($promise:ident),* $(,)?]) => {
        mod $carrier {
            $(
                #[test]
                fn $promise() {
                    match super::settings::$carrier() {
                        Ok(setting) => super::$promise(setting),
                        Err(error) => eprintln!("SKIPPED {}: {error}", stringify!($carrier)),
                    }
                }
            )*
        }
    };
}

suite!(udp_ipv4, udp_ipv4_one_by_one, udp_ipv6, udp_group, memory, memory_group on [
    packet_arrives_with_its_sender,
    equal_packets_arrive_unchanged,
    shorter_last_packet_stays_short,
    mixed_lengths_arrive_unchanged,
    longest_packet_arrives,
    idle_carrier_receives_nothing,
    empty_send_sends_nothing,
    too_long_packet_is_refused,
    packets_wait_for_a_late_reader,
    descriptor_shows_waiting_packets,
]);

fn packet_arrives_with_its_sender<D: Datagrams>(mut setting: Setting<D>) {
    assert_eq!(setting.sender.send(setting.target, b"one", 1400).unwrap(), 3);
    setting.expect(&[b"one".to_vec()]);
}

fn equal_packets_arrive_unchanged<D: Datagrams>(mut setting: Setting<D>) {
    let packets = made_of(&[997; 75]);
    let bytes = packets.concat();
    assert!(bytes.len() > 65_535);
    assert_eq!(setting.sender.send(setting.target, &bytes, 997).unwrap(), bytes.len());
    setting.expect(&packets);
    let packets = made_of(&[20; 200]);
    assert_eq!(setting.sender.send(setting.target, &packets.concat(), 20).unwrap(), 4000);
    setting.expect(&packets);
}

fn shorter_last_packet_stays_short<D: Datagrams>(mut setting: Setting<D>) {
    for lengths in [vec![100, 99], vec![100, 1], vec![100; 65], [vec![100; 64], vec![7]].concat()] {
        let packets = made_of(&lengths);
        let bytes = packets.concat();
        assert_eq!(setting.sender.send(setting.target, &bytes, 100).unwrap(), bytes.len());
        setting.expect(&packets);
    }
    // Must not be split at the earlier length.
    let packets = made_of(&[1000]);
    assert_eq!(setting.sender.send(setting.target, &packets[0], 1000).unwrap(), 1000);
    setting.expect(&packets);
}

fn mixed_lengths_arrive_unchanged<D: Datagrams>(mut setting: Setting<D>) {
    let rising: Vec<usize> = (1..60).collect();
    let falling: Vec<usize> = (1..60).rev().collect();
    let runs = [vec![50; 70], vec![80; 3], vec![10], vec![10], vec![80; 2], vec![9000], vec![1], vec![2]].concat();
    let mixed: Vec<usize> = (0..50).map(|n| 100 + n * 37 % 61).collect();
    for lengths in [rising, falling, runs, mixed, vec![5], vec![6, 6], vec![4, 5]] {
        let packets = made_of(&lengths);
        let taken = setting.sender.send_uneven(setting.target, &packets.concat(), &lengths).unwrap();
        assert_eq!(taken, lengths.len());
        setting.expect(&packets);
    }
}

const IPV6_HEADERS: usize = 48;

fn longest_packet_arrives<D: Datagrams>(mut setting: Setting<D>) {
    // IPv6's longer headers count too: packets are not fragmented.
    let route = Route::to(setting.target).filter(|_| setting.target.is_ipv6());
    let longest = route.map_or(PACKET_LENGTH_MAX, |route| PACKET_LENGTH_MAX.min(route.mtu_bytes - IPV6_HEADERS));
    let packets = made_of(&[longest]);
    assert_eq!(setting.sender.send(setting.target, &packets[0], longest).unwrap(), longest);
    setting.expect(&packets);
}

fn idle_carrier_receives_nothing<D: Datagrams>(mut setting: Setting<D>) {
    setting.expect(&[]);
    assert_eq!(setting.sender.receive(&mut |_, _| panic!("a packet came from nowhere")).unwrap(), 0);
}

fn empty_send_sends_nothing<D: Datagrams>(mut setting: Setting<D>) {
    assert_eq!(setting.sender.send(setting.target, &[], 100).unwrap(), 0);
    assert_eq!(setting.sender.send_uneven(setting.target, &[], &[]).unwrap(), 0);
    setting.expect(&[]);
}

fn too_long_packet_is_refused<D: Datagrams>(mut setting: Setting<D>) {
    let bytes = vec![0; 80_000];
    let target = setting.target;
    let even = setting.sender.send(target, &bytes, 70_000).unwrap_err();
    let uneven = setting.sender.send_uneven(target, &bytes, &[10_000, 70_000]).unwrap_err();
    for error in [even, uneven] {
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<SendRefusal>());
        assert!(matches!(refused, Some(SendRefusal::TooLong { packet_bytes: 70_000, .. })), "{error:?}");
        assert!(error.to_string().contains(&target.to_string()), "{error}");
    }
    setting.expect(&[]);
}

fn packets_wait_for_a_late_reader<D: Datagrams>(mut setting: Setting<D>) {
    let packets = made_of(&vec![1000; (setting.unread_bytes_max / 1000).min(800)]);
    let bytes = packets.concat();
    let mut taken = 0;
    while taken < bytes.len() {
        match setting.sender.send(setting.target, &bytes[taken..], 1000).unwrap() {
            0 => break,
            more => taken += more,
        }
    }
    assert_eq!(taken % 1000, 0, "a packet was taken in part");
    setting.expect(&packets[..taken / 1000]);
}

fn descriptor_shows_waiting_packets<D: Datagrams>(mut setting: Setting<D>) {
    setting.sender.send(setting.target, b"knock", 5).unwrap();
    (setting.let_arrive)();
    if let Some(fd) = setting.receivers[0].fd() {
        let mut fds = [rustix::event::PollFd::from_borrowed_fd(fd, rustix::event::PollFlags::IN)];
        let limit = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
        assert_eq!(rustix::event::poll(&mut fds, Some(&limit)).unwrap(), 1);
    }
    setting.expect(&[b"knock".to_vec()]);
}

impl<D: Datagrams> Setting<D> {
    fn expect(&mut self, packets: &[Vec<u8>]) {
        (self.let_arrive)();
        let sender = self.sender.local_address();
        for receiver in &mut self.receivers {
            let mut received: Vec<Vec<u8>> = Vec::new();
            let end = Instant::now() + Duration::from_secs(10);
            loop {
                let before = received.len();
                let count = receiver.receive(&mut |from, packet| {
                    assert_eq!(from, sender);
                    received.push(packet.to_vec());
                });
                assert_eq!(count.unwrap(), received.len() - before);
                if received.len() == before && (received.len() >= packets.len() || Instant::now() > end) {
                    break;
                }
            }
            let lengths = |packets: &[Vec<u8>]| packets.iter().map(Vec::len).collect::<Vec<_>>();
            assert_eq!(lengths(&received), lengths(packets));
            assert!(received == packets, "packets arrived with other contents");
        }
    }
}

fn made_of(lengths: &[usize]) -> Vec<Vec<u8>> {
    let packet = |(number, length): (usize, &usize)| (0..*length).map(|at| (number * 31 + at * 7) as u8).collect();
    lengths.iter().enumerate().map(packet).collect()
}

#[test]
fn group_receiver_gets_only_its_group() {
    let open = || -> io::Result<_> {
        let sender = settings::sender_to_groups()?;
        let port = sender.local_address().port();
        let receiver = |last| {
            let group = Ipv4Addr::new(239, 255, 71, last).into();
            UdpSocket::open(&UdpOptions::of_group(group, port, settings::loopback()))
        };
        Ok((receiver(1)?, receiver(2)?, sender))
    };
    let (mut group, mut other, mut sender) = match open() {
        Ok(sockets) => sockets,
        Err(error) => return eprintln!("SKIPPED groups on loopback: {error}"),
    };
    // The group's receivers, at the same port, must not get it.
    sender.send(sender.local_address(), b"the host", 10).unwrap();
    sender.send(other.local_address(), b"the other", 10).unwrap();
    sender.send(group.local_address(), b"the group", 10).unwrap();
    for (receiver, expected) in [(&mut other, b"the other"), (&mut group, b"the group")] {
        while receiver.receive(&mut |_, packet| assert_eq!(packet, expected)).unwrap() == 0 {}
        assert_eq!(receiver.receive(&mut |_, packet| panic!("{packet:?} came too")).unwrap(), 0);
    }
}

#[test]
fn refusal_names_peer_and_size() {
    let mut socket = UdpSocket::open(&UdpOptions::at((Ipv4Addr::LOCALHOST, 0).into())).unwrap();
    let nowhere = (Ipv4Addr::LOCALHOST, 0).into();
    let errors = [
        socket.send(nowhere, &[0; 123], 123).unwrap_err(),
        socket.send(nowhere, &[0; 246], 123).unwrap_err(),
        socket.send_uneven(nowhere, &[0; 223], &[100, 123]).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().starts_with("sending a packet of 123 bytes to 127.0.0.1:0: "), "{error}");
    }
    assert!(socket.offload().send, "a wrong address is not the interface's fault");
}

#[test]
fn too_narrow_interface_is_named() {
    let mut setting = match settings::udp_ipv6() {
        Ok(setting) => setting,
        Err(error) => return eprintln!("SKIPPED: {error}"),
    };
    if Route::to(setting.target).is_some_and(|route| route.check(PACKET_LENGTH_MAX, setting.target.ip()).is_ok()) {
        return eprintln!("SKIPPED: the loopback interface takes every packet");
    }
    for packets in [1, 3] {
        let bytes = vec![0; packets * PACKET_LENGTH_MAX];
        let error = setting.sender.send(setting.target, &bytes, PACKET_LENGTH_MAX).unwrap_err();
        assert!(SendRefusal::is_too_narrow(&error), "{error:?}");
        assert!(error.to_string().contains("do not pass lo, whose MTU is "), "{error}");
    }
    setting.expect(&[]);
}

#[test]
fn unreachable_packet_is_harmless() {
    let mut socket = UdpSocket::open(&UdpOptions::at((Ipv4Addr::LOCALHOST, 0).into())).unwrap();
    let gone = UdpSocket::open(&UdpOptions::at((Ipv4Addr::LOCALHOST, 0).into())).unwrap().local_address();
    let mut receiver = UdpSocket::open(&UdpOptions::at((Ipv4Addr::LOCALHOST, 0).into())).unwrap();
    for _ in 0..10 {
        socket.send(gone, b"hello?", 6).unwrap();
        assert_eq!(socket.receive(&mut |_, _| panic!("nobody answered")).unwrap(), 0);
        assert_eq!(socket.send(receiver.local_address(), b"hello!", 6).unwrap(), 6);
        while receiver.receive(&mut |_, packet| assert_eq!(packet, b"hello!")).unwrap() == 0 {}
    }
}

mod settings {
    use super::*;

    pub fn udp_ipv4() -> io::Result<Setting<UdpSocket>> {
        udp(Ipv4Addr::LOCALHOST.into(), Segmentation::Auto)
    }

    pub fn udp_ipv4_one_by_one() -> io::Result<Setting<UdpSocket>> {
        udp(Ipv4Addr::LOCALHOST.into(), Segmentation::Off)
    }

    pub fn udp_ipv6() -> io::Result<Setting<UdpSocket>> {
        udp(Ipv6Addr::LOCALHOST.into(), Segmentation::Auto)
    }

    fn udp(address: IpAddr, segmentation: Segmentation) -> io::Result<Setting<UdpSocket>> {
        let options = UdpOptions { segmentation, ..UdpOptions::at((address, 0).into()) };
        let (sender, receiver) = (UdpSocket::open(&options)?, UdpSocket::open(&options)?);
        let target = receiver.local_address();
        of_sockets(sender, vec![receiver], target)
    }

    pub fn udp_group() -> io::Result<Setting<UdpSocket>> {
        let sender = sender_to_groups()?;
        let target: Peer = (Ipv4Addr::new(239, 255, 71, 3), sender.local_address().port()).into();
        let mut options = UdpOptions::of_group(target.ip(), target.port(), loopback());
        let mut receivers = vec![UdpSocket::open(&options)?];
        options.multicast.as_mut().unwrap().interface = Interface::Name("lo".to_owned());
        receivers.push(UdpSocket::open(&options)?);
        options.segmentation = Segmentation::Off;
        receivers.push(UdpSocket::open(&options)?);
        of_sockets(sender, receivers, target)
    }

    pub fn loopback() -> Interface {
        Interface::Address(Ipv4Addr::LOCALHOST.into())
    }

    /// The port is unique among tests, so a group there belongs to this test.
    pub fn sender_to_groups() -> io::Result<UdpSocket> {
        let mut options = UdpOptions::at((Ipv4Addr::LOCALHOST, 0).into());
        options.multicast_out.interface = loopback();
        UdpSocket::open(&options)
    }

    fn of_sockets(sender: UdpSocket, receivers: Vec<UdpSocket>, target: Peer) -> io::Result<Setting<UdpSocket>> {
        // A packet of 1,000 bytes takes up to 2.5 times that in the kernel's count.
        let unread_bytes_max = receivers[0].receive_buffer_bytes()? / 4;
        Ok(Setting { sender, receivers, target, unread_bytes_max, let_arrive: Box::new(|| ()) })
    }

    pub fn memory() -> io::Result<Setting<gapless_transport::network::MemorySocket>> {
        let network = MemoryNetwork::new(1, Faults { delay_ns: 10..=50, ..Faults::NONE });
        let (one, two) = (address(1), address(2));
        let (sender, receivers) = (network.socket(one)?, vec![network.socket(two)?]);
        let let_arrive = {
            let network = network.clone();
            Box::new(move || network.advance(50))
        };
        Ok(Setting { sender, receivers, target: two, unread_bytes_max: 1 << 20, let_arrive })
    }

    pub fn memory_group() -> io::Result<Setting<gapless_transport::network::MemorySocket>> {
        let mut setting = memory()?;
        setting.target = address(9);
        setting.receivers[0].join(setting.target);
        Ok(setting)
    }

    fn address(host: u8) -> Peer {
        (Ipv4Addr::new(10, 0, 0, host), 1000).into()
    }
}

fn pair() -> (UdpSocket, UdpSocket) {
    let server = UdpSocket::open(&UdpOptions::at(Peer::new(Ipv4Addr::LOCALHOST.into(), 0))).unwrap();
    let client = UdpSocket::open(&UdpOptions::to(server.local_address())).unwrap();
    (server, client)
}

fn taken(socket: &mut UdpSocket, count: usize) -> Vec<(Peer, Vec<u8>)> {
    let (mut packets, deadline) = (Vec::new(), Instant::now() + Duration::from_secs(30));
    while packets.len() < count {
        socket.receive(&mut |from, bytes| packets.push((from, bytes.to_vec()))).unwrap();
        assert!(Instant::now() < deadline, "{} of {count} packets have come", packets.len());
    }
    packets
}

#[test]
fn renewed_route_still_works() {
    let (mut server, mut client) = pair();
    let (here, there) = (client.local_address(), server.local_address());
    for _ in 0..3 {
        client.send(there, b"question", 8).unwrap();
        let questions = taken(&mut server, 1);
        assert_eq!(questions, [(here, b"question".to_vec())], "the port is the same as before");
        server.send(here, b"answer", 6).unwrap();
        assert_eq!(taken(&mut client, 1), [(there, b"answer".to_vec())]);
        client.renew().unwrap();
        assert_eq!(client.local_address(), here);
    }
    let mut stranger = UdpSocket::open(&UdpOptions::at(Peer::new(Ipv4Addr::LOCALHOST.into(), 0))).unwrap();
    let _ = stranger.send(here, b"strange", 7);
    server.send(here, b"last", 4).unwrap();
    assert_eq!(taken(&mut client, 1), [(there, b"last".to_vec())]);
}

#[test]
fn peer_keeps_its_given_name() {
    let Ok(mut server) = UdpSocket::open(&UdpOptions::at(Peer::new(Ipv6Addr::LOCALHOST.into(), 0))) else {
        eprintln!("SKIPPED: no IPv6");
        return;
    };
    // Senders of packets have no scope: only the given name has it.
    let there = SocketAddrV6::new(Ipv6Addr::LOCALHOST, server.local_address().port(), 0, 7).into();
    let mut client = UdpSocket::open(&UdpOptions::to(there)).unwrap();
    let here = client.local_address();
    for round in 0..40u8 {
        let count = if round < 20 { 1 } else { 100 };
        server.send(here, &vec![round; 50 * count], 50).unwrap();
        for (from, packet) in taken(&mut client, count) {
            assert_eq!((from, packet), (there, vec![round; 50]));
        }
    }
}
