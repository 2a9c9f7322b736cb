//! No checksum covers a heartbeat, so an announcement far beyond the known end counts only once the sequencer has
//! confirmed it.

use crate::memory_world::{GROUP, TYPE, World, at};
use gapless_client::node::{Start, StreamNodeOptions};
use gapless_transport::network::{Datagrams, MemorySocket, Peer};
use gapless_wire::FeedSession;
use gapless_wire::mold::{end_of_session, heartbeat};

fn forge(forger: &mut MemorySocket, number: u64) {
    let mut packet = [0; 20];
    heartbeat(&mut packet, FeedSession::new("MONDAY").unwrap(), number);
    forger.send(Peer::from(GROUP), &packet, packet.len()).unwrap();
    end_of_session(&mut packet, FeedSession::new("MONDAY").unwrap(), number);
    forger.send(Peer::from(GROUP), &packet, packet.len()).unwrap();
}

#[test]
fn forgeries_are_counted_and_ignored() {
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
    let mut forger = world.memory.socket(at(9, 9)).unwrap();
    for round in 0..2_000u64 {
        let numbers = [1 << 60, (1 << 60) + 1, u64::MAX - 2, released + 2_500, released + 1_000_000];
        forge(&mut forger, numbers[round as usize % 5]);
        world.step(&both);
        let counts = world.nodes[reader].link().counts();
        assert_eq!(counts.frames_requested, 0, "round {round}: {counts:?}");
        assert_eq!(world.nodes[reader].released_sequence(), released, "round {round}");
    }
    let counts = world.nodes[reader].link().counts();
    assert!(counts.claims_doubted >= 3_000, "{counts:?}");
    // The sequencer is asked at growing intervals.
    assert!((1..=6).contains(&counts.claims_refuted), "{counts:?}");
    world.nodes[publisher].publish(TYPE, b"and it goes on").unwrap();
    world.until(&both, "it goes on", |world| world.read == [51, 51]);
}

#[test]
fn honest_far_heartbeat_is_confirmed() {
    let mut world = World::new();
    let publisher = world.node(StreamNodeOptions::default());
    let reader = world.node(StreamNodeOptions::reading(Start::First));
    let both = [publisher, reader];
    world.until(&both, "both are in", |world| world.nodes[0].can_publish());
    // The operating system keeps only the first part for a reader that does not poll.
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
