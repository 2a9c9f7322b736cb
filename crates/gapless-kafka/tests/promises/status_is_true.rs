use super::world::{BridgeWorld, MS, ROUTE, SECOND};
use gapless_agent::Now;
use gapless_kafka::peers::{CallLoad, PeerState};
use gapless_kafka::status::{BridgePhase, BridgeStatus, OfferedRouteStatus, RefusedPeer, TakenRouteStatus};

fn status(world: &BridgeWorld, bridge: usize) -> BridgeStatus {
    world.bridges[bridge].core.status(Now { monotonic_ns: world.now_ns, epoch_ns: 0 })
}

#[test]
fn both_ends_count_a_call() {
    let mut world = BridgeWorld::of(1, &["a", "b"]);
    world.call(0, "wait", None);
    world.run_for(100 * MS);
    let (caller, server) = (status(&world, 0), status(&world, 1));
    let load = CallLoad { calls: 1, bytes: "1 wait".len() as u64 };
    for (status, other, to, from) in
        [(&caller, "b", load, CallLoad::default()), (&server, "a", CallLoad::default(), load)]
    {
        assert_eq!(status.phase, BridgePhase::Serving);
        let [peer] = &status.peers[..] else { panic!("{status:?}") };
        assert_eq!((&*peer.name, &*peer.machine, peer.state), (other, &*format!("machine-{other}"), PeerState::Alive));
        assert_eq!((peer.protocol, peer.routes, peer.calls_to, peer.calls_from), (1, 1, to, from));
        assert!(peer.heard_ms <= 1_100, "{peer:?}");
    }
    assert_eq!(caller.peers[0].incarnation, server.incarnation);
    assert_eq!(server.offered, [OfferedRouteStatus { route: ROUTE.to_owned(), instances: 1, calls: 1 }]);
    let taken =
        TakenRouteStatus { route: ROUTE.to_owned(), instances: 1, bridges: vec!["b".to_owned()], is_served: false };
    assert_eq!(caller.taken, [taken]);
    let json = serde_json::to_vec(&caller).unwrap();
    assert_eq!(serde_json::from_slice::<BridgeStatus>(&json).unwrap(), caller);
}

#[test]
fn a_lost_broker_has_its_time() {
    let mut world = BridgeWorld::of(2, &["a", "b"]);
    let begun = status(&world, 0).broker;
    assert!(begun.is_connected && begun.since_ms.is_some_and(|since_ms| since_ms <= 3_000), "{begun:?}");
    world.is_broker_down = true;
    world.run_for(20 * SECOND);
    let lost = status(&world, 0).broker;
    assert!(!lost.is_connected && lost.since_ms.is_some_and(|ms| (15_000..=21_000).contains(&ms)), "{lost:?}");
    world.is_broker_down = false;
    world.run_for(10 * SECOND);
    let back = status(&world, 0).broker;
    assert!(back.is_connected && back.since_ms.is_some_and(|since_ms| since_ms <= 10_000), "{back:?}");
}

#[test]
fn silent_and_refused_peers_differ() {
    let mut world = BridgeWorld::of(3, &["a", "b", "c"]);
    world.kill(1);
    world.run_for(20 * SECOND);
    let next = gapless_kafka::record::names::BridgeId { name: "c".into(), incarnation: 7 };
    let writer = gapless_kafka::record::RecordWriter::new(&next);
    world.kill(2);
    world.append("test.presence", writer.lease("c", "", Some(br#"{"protocol": 2}"#.to_vec())));
    world.run_for(SECOND);
    let status = status(&world, 0);
    let peers: Vec<_> = status.peers.iter().map(|peer| (&*peer.name, peer.state)).collect();
    assert_eq!(peers, [("b", PeerState::Silent)]);
    assert!((19_000..23_000).contains(&status.peers[0].heard_ms), "{:?}", status.peers);
    let reason = "it speaks version 2 of the protocol; this bridge speaks version 1".to_owned();
    assert_eq!(status.refused_peers, [RefusedPeer { name: "c".to_owned(), reason }]);
    assert!(status.taken.is_empty(), "{:?}", status.taken);
}

#[test]
fn stale_leases_are_no_sign_of_life() {
    let mut world = BridgeWorld::of(4, &["a", "b"]);
    let earlier = world.records("test.presence").into_iter().rev();
    let earlier = earlier.clone().find(|record| record.key.as_deref() == Some(b"b")).unwrap();
    world.run_for(SECOND);
    world.restart(1, 2);
    world.run_for(2 * SECOND);
    world.kill(1);
    for _ in 0..3 {
        world.run_for(SECOND);
        world.append("test.presence", earlier.clone());
    }
    world.run_for(100 * MS);
    let heard_ms = status(&world, 0).peers[0].heard_ms;
    assert!((3_000..4_200).contains(&heard_ms), "{heard_ms}");
    assert_eq!(world.bridges[0].core.counters().stale_leases, 3);
}
