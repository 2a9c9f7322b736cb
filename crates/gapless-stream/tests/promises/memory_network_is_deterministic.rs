//! Equal seeds give equal runs, each fault occurs at its rate, and the counters account for every packet.
#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_transport::network::{Datagrams, Faults, MemoryCounters, MemoryNetwork, MemorySocket, Peer};
use std::net::Ipv4Addr;

fn address(host: u8) -> Peer {
    (Ipv4Addr::new(10, 0, 0, host), 1000).into()
}

fn pair(network: &MemoryNetwork) -> (MemorySocket, MemorySocket) {
    (network.socket(address(1)).unwrap(), network.socket(address(2)).unwrap())
}

fn numbers(socket: &mut MemorySocket) -> Vec<u64> {
    let mut numbers = Vec::new();
    while socket.receive(&mut |_, packet| numbers.push(u64::from_le_bytes(packet.try_into().unwrap()))).unwrap() > 0 {}
    numbers
}

fn send_number(socket: &mut MemorySocket, to: Peer, number: u64) {
    assert_eq!(socket.send(to, &number.to_le_bytes(), 8).unwrap(), 8);
}

const EVERYTHING: Faults =
    Faults { loss: 0.1, duplication: 0.1, reordering: 0.1, corruption: 0.1, delay_ns: 100..=10_000 };

fn run(seed: u64) -> (Vec<(u64, Peer, Vec<u8>)>, MemoryCounters) {
    let network = MemoryNetwork::new(seed, EVERYTHING);
    let (mut one, mut two) = pair(&network);
    let mut receiver = network.socket(address(3)).unwrap();
    receiver.join(address(9));
    two.join(address(9));
    let mut seen = Vec::new();
    for round in 0..2_000u64 {
        send_number(&mut one, address(3), round);
        send_number(&mut two, address(9), round);
        network.advance(500);
        for socket in [&mut receiver, &mut two] {
            socket.receive(&mut |from, packet| seen.push((network.now_ns(), from, packet.to_vec()))).unwrap();
        }
    }
    (seen, network.counters())
}

#[test]
fn equal_seeds_give_equal_runs() {
    assert_eq!(run(42), run(42));
    assert_ne!(run(42).0, run(43).0);
}

#[test]
fn faults_occur_at_their_rates() {
    const SENT: u64 = 20_000;
    let network = MemoryNetwork::new(5, EVERYTHING);
    network.set_queue_bytes_max(usize::MAX);
    let (mut sender, mut receiver) = pair(&network);
    let mut intact = 0;
    for number in 0..SENT {
        send_number(&mut sender, address(2), number * 2);
        network.advance(100);
        intact += numbers(&mut receiver).len();
    }
    network.advance(1_000_000);
    intact += numbers(&mut receiver).len();
    let counters = network.counters();
    assert_eq!((counters.sent, counters.delivered), (SENT, intact as u64));
    // Six standard deviations of 20,000 draws at 0.1 are 255.
    for (fault, count) in [
        ("loss", counters.lost),
        ("duplication", counters.duplicated * 10 / 9),
        ("corruption", counters.corrupted),
        ("reordering", counters.reordered * 10 / 9),
    ] {
        assert!((1_700..2_300).contains(&count), "{fault}: {count} of {SENT}");
    }
    accounted_for(&counters);
}

#[test]
fn no_faults_by_default() {
    let network = MemoryNetwork::new(5, Faults { delay_ns: 100..=9_000, ..Faults::NONE });
    let (mut sender, mut receiver) = pair(&network);
    for number in 0..1_000 {
        send_number(&mut sender, address(2), number);
        network.advance(10);
    }
    network.advance(9_000);
    assert_eq!(numbers(&mut receiver), (0..1_000).collect::<Vec<_>>());
    assert_eq!(network.counters(), MemoryCounters { sent: 1_000, delivered: 1_000, ..Default::default() });
}

#[test]
fn faults_change_while_it_runs() {
    let network = MemoryNetwork::new(5, Faults { loss: 1.0, ..Faults::NONE });
    let (mut sender, mut receiver) = pair(&network);
    send_number(&mut sender, address(2), 1);
    network.set_faults(Faults { duplication: 1.0, ..Faults::NONE });
    send_number(&mut sender, address(2), 2);
    network.set_faults(Faults { corruption: 1.0, ..Faults::NONE });
    send_number(&mut sender, address(2), 3);
    let seen = numbers(&mut receiver);
    assert_eq!(seen[..2], [2, 2]);
    assert_eq!((seen[2] ^ 3).count_ones(), 1, "one bit is turned over");
    assert_eq!(seen.len(), 3);
    accounted_for(&network.counters());
}

#[test]
fn packet_arrives_after_its_delay() {
    let network = MemoryNetwork::new(5, Faults { delay_ns: 100..=100, ..Faults::NONE });
    let (mut sender, mut receiver) = pair(&network);
    assert_eq!(network.next_arrival_ns(), None);
    send_number(&mut sender, address(2), 1);
    assert_eq!(network.next_arrival_ns(), Some(100));
    network.set_time(99);
    assert!(numbers(&mut receiver).is_empty());
    network.advance(1);
    assert_eq!(numbers(&mut receiver), [1]);
}

#[test]
fn cut_link_drops_until_healed() {
    let network = MemoryNetwork::new(5, Faults::NONE);
    let (mut one, mut two) = pair(&network);
    let mut three = network.socket(address(3)).unwrap();
    network.cut(address(1), address(2));
    send_number(&mut one, address(2), 1);
    send_number(&mut two, address(1), 1);
    send_number(&mut one, address(3), 1);
    assert_eq!((numbers(&mut one), numbers(&mut two), numbers(&mut three)), (vec![], vec![], vec![1]));
    network.heal(address(2), address(1));
    network.cut_one_way(address(1), address(2));
    send_number(&mut one, address(2), 2);
    send_number(&mut two, address(1), 2);
    assert_eq!((numbers(&mut one), numbers(&mut two)), (vec![2], vec![]));
    network.heal_all();
    send_number(&mut one, address(2), 3);
    assert_eq!(numbers(&mut two), [3]);
    assert_eq!(network.counters().cut, 3);
    accounted_for(&network.counters());
}

#[test]
fn full_queue_drops_and_counts() {
    let network = MemoryNetwork::new(5, Faults::NONE);
    let (mut sender, mut receiver) = pair(&network);
    network.set_queue_bytes_max(3 * (64 + 8));
    for number in 0..5 {
        send_number(&mut sender, address(2), number);
    }
    assert_eq!(numbers(&mut receiver), [0, 1, 2]);
    assert_eq!(network.counters().overflowed, 2);
    send_number(&mut sender, address(2), 5);
    assert_eq!(numbers(&mut receiver), [5]);
    accounted_for(&network.counters());
}

#[test]
fn full_sender_takes_whole_packets() {
    let network = MemoryNetwork::new(5, Faults::NONE);
    let (mut sender, mut receiver) = pair(&network);
    network.set_send_room(address(1), Some(3));
    assert_eq!(sender.send(address(2), &[0; 16], 8).unwrap(), 16);
    assert_eq!(sender.send_uneven(address(2), &[0; 16], &[8, 8]).unwrap(), 1);
    assert_eq!(sender.send(address(2), &[0; 8], 8).unwrap(), 0);
    network.set_send_room(address(1), None);
    assert_eq!(sender.send(address(2), &[0; 8], 8).unwrap(), 8);
    assert_eq!(numbers(&mut receiver).len(), 4);
}

#[test]
fn group_reaches_only_its_members() {
    let network = MemoryNetwork::new(5, Faults::NONE);
    let (mut one, mut two) = pair(&network);
    let mut three = network.socket(address(3)).unwrap();
    for socket in [&one, &two, &three] {
        socket.join(address(9));
    }
    send_number(&mut one, address(9), 1);
    assert_eq!((numbers(&mut one), numbers(&mut two), numbers(&mut three)), (vec![1], vec![1], vec![1]));
    two.leave(address(9));
    drop(three);
    send_number(&mut one, address(9), 2);
    assert_eq!((numbers(&mut one), numbers(&mut two)), (vec![2], vec![]));
    accounted_for(&network.counters());
}

#[test]
fn dropped_socket_frees_its_address() {
    let network = MemoryNetwork::new(5, Faults::NONE);
    let (mut sender, receiver) = pair(&network);
    assert!(network.socket(address(2)).is_err());
    send_number(&mut sender, address(2), 1);
    drop(receiver);
    send_number(&mut sender, address(2), 2);
    assert_eq!(network.counters().unreachable, 2);
    let mut receiver = network.socket(address(2)).unwrap();
    send_number(&mut sender, address(2), 3);
    assert_eq!(numbers(&mut receiver), [3]);
    accounted_for(&network.counters());
}

fn accounted_for(counters: &MemoryCounters) {
    let MemoryCounters { sent, delivered, lost, duplicated, cut, overflowed, unreachable, .. } = *counters;
    assert_eq!(sent + duplicated, delivered + lost + cut + overflowed + unreachable, "{counters:?}");
}
