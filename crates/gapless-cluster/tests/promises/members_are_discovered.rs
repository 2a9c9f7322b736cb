#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::linked_members::{Member, identity, now, peer};
use gapless_cluster::link::beacon::{BEACON_LENGTH_MAX, Beacon};
use gapless_cluster::link::wire::{ClusterName, MemberIdentity};
use gapless_cluster::link::{DiscoveryOptions, LinkError, Links, MemberLinkOptions, PeerOptions};
use gapless_testkit::ports::{free_address, multicast_group};
use gapless_testkit::random::Random;
use gapless_testkit::wait::turn_until;
use gapless_transport::network::{Datagrams as _, Interface, MulticastOut, UdpOptions, UdpSocket};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

fn options(group: SocketAddr, at: SocketAddr) -> MemberLinkOptions {
    let discovery = DiscoveryOptions { group, interface: "lo".to_owned(), addresses: vec![at] };
    MemberLinkOptions { listen: Some(at), discovery: Some(discovery), ..MemberLinkOptions::default() }
}

fn member(number: u64, group: SocketAddr) -> Member {
    let peers: Vec<PeerOptions> = (1..=3).filter(|other| *other != number).map(|other| peer(other, &[])).collect();
    Member::new(options(group, free_address()), identity(number), &peers)
}

fn all_connected(members: &mut [Member]) -> bool {
    members.iter_mut().for_each(Member::idle);
    let numbers: Vec<_> = members.iter().map(|each| each.links.identity().member).collect();
    members.iter().all(|each| {
        numbers.iter().all(|other| *other == each.links.identity().member || each.links.is_connected(*other))
    })
}

fn stranger(group: SocketAddr) -> UdpSocket {
    let interface = Interface::Name("lo".to_owned());
    let mut options = UdpOptions::at("127.0.0.1:0".parse().unwrap());
    options.multicast_out = MulticastOut { interface: interface.clone(), hops: 1, loops_back: true };
    assert!(group.ip().is_multicast());
    UdpSocket::open(&options).unwrap()
}

#[test]
fn members_discover_each_other() {
    let group = multicast_group();
    let mut members: Vec<_> = (1..=3).map(|number| member(number, group)).collect();
    turn_until("all are connected", || all_connected(&mut members));
    members.remove(2);
    members.push(member(3, group));
    turn_until("all are connected again", || all_connected(&mut members));
}

#[test]
fn false_beacons_do_no_harm() {
    let (group, mut random) = (multicast_group(), Random::seeded());
    let mut liar = stranger(group);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let lies = |cluster: &str, member, incarnation, addresses| {
        Beacon { cluster: ClusterName::new(cluster).unwrap(), member, incarnation, addresses }.to_bytes()
    };
    let nowhere = free_address();
    let mut first = member(1, group);
    let mut second = Member::new(options(group, free_address()), identity(2), &[peer(1, &[]), peer(3, &[])]);
    let mut told = 0;
    let mut tell = |first: &mut Member, second: &mut Member| {
        told += 1;
        let packet = match told % 7 {
            0 => lies("market", 2, 2, vec![nowhere]),
            1 => lies("market", 2, 2, vec![silent.local_addr().unwrap()]),
            2 => lies("bazaar", 2, 2, vec![nowhere; 16]),
            3 => lies("market", 1, 2, vec![nowhere]),
            4 => lies("market", 2, 9, vec![nowhere]),
            5 => lies("market", 77, 2, vec![nowhere]),
            _ => (0..random.below(BEACON_LENGTH_MAX as u64 + 40)).map(|_| random.number() as u8).chain([0]).collect(),
        };
        liar.send(group, &packet, packet.len()).unwrap();
        first.idle();
        second.idle();
        first.links.is_connected(2) && second.links.is_connected(1)
    };
    for _ in 0..50 {
        tell(&mut first, &mut second);
    }
    turn_until("the two are connected", || tell(&mut first, &mut second));
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(200) {
        assert!(tell(&mut first, &mut second));
    }
    assert_eq!(first.links.statistics(2).unwrap().connections, 1);
}

#[test]
fn other_cluster_is_ignored() {
    let group = multicast_group();
    let mut first = member(1, group);
    let other = MemberIdentity { cluster: ClusterName::new("bazaar").unwrap(), ..identity(2) };
    let mut second = Member::new(options(group, free_address()), other, &[peer(1, &[])]);
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(500) {
        first.links.poll(now());
        second.links.poll(now());
    }
    assert_eq!(second.links.pending_statistics().accepted, 0, "no member has dialled it");
}

#[test]
fn missing_interface_is_an_error() {
    let mut options = options(multicast_group(), free_address());
    options.discovery.as_mut().unwrap().interface = "nowhere0".to_owned();
    let refused = Links::open(options, identity(1), &[peer(2, &[])]).unwrap_err();
    assert!(matches!(refused, LinkError::Discovery { .. }), "{refused}");
    assert!(refused.to_string().contains("nowhere0"), "{refused}");
}
