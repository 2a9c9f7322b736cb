use super::world::{BridgeWorld, MS, ROUTE, SECOND, offer};
use gapless_kafka::effects::{BridgeNotice, RemoteInstance};
use gapless_kafka::outcome::CallFailure;
use gapless_kafka::peers::PeerState;
use gapless_kafka::presence::Lease;
use gapless_kafka::record::RecordWriter;
use gapless_kafka::record::names::BridgeId;
use std::collections::BTreeMap;

#[test]
fn unlisted_routes_are_not_bridged() {
    let mut world = BridgeWorld::of(1, &["a", "b"]);
    world.offers(1, vec![offer(ROUTE, &[2]), offer("bank/secret", &[3]), offer("shop/more", &[4])]);
    world.run_for(SECOND);
    assert_eq!(world.bridges[0].relays.keys().collect::<Vec<_>>(), ["shop/more", ROUTE]);
    let head = gapless_kafka::record::RequestHead { route: "bank/secret".to_owned(), ..Default::default() };
    let writer = RecordWriter::new(world.bridges[0].core.id());
    let to = world.bridges[1].core.id().incarnation;
    world.append("test.inbox.b", writer.request("x:1", to, &head, None));
    world.run_for(SECOND);
    assert!(world.bridges[1].started.is_empty());
    let answers = world.records("test.inbox.a");
    let is_refusal = |json: &[u8]| json == br#"{"kind":"no_route","reason":"bridge b does not offer it"}"#;
    assert!(answers.iter().any(|record| record.payload.as_deref().is_some_and(is_refusal)));
    let mut closed = offer(ROUTE, &[2]);
    closed.instances[0].is_open = false;
    world.offers(1, vec![closed]);
    world.run_for(100 * MS);
    assert!(world.bridges[0].relays.is_empty());
}

#[test]
fn calls_go_to_the_least_loaded_bridge() {
    let mut world = BridgeWorld::of(2, &["a", "b", "c"]);
    // Each instance has two workers; b has three instances, c one.
    world.offers(1, vec![offer(ROUTE, &[2, 20, 21])]);
    world.run_for(SECOND);
    for _ in 0..40 {
        world.call(0, "wait", None);
    }
    world.run_for(100 * MS);
    let (b, c) = (world.bridges[1].started.len(), world.bridges[2].started.len());
    assert!(b + c == 40 && (28..=32).contains(&b), "{b} and {c}");
    world.run_for(2 * SECOND);
    world.offers(0, vec![]);
    world.run_for(SECOND);
    let number = world.call(2, "hello", None);
    world.run_for(SECOND);
    assert!(world.reply(number).ends_with("by b"));
}

#[test]
fn a_key_has_one_instance_everywhere() {
    let mut world = BridgeWorld::of(3, &["a", "b", "c", "d"]);
    let mut holders = BTreeMap::<(usize, u64), String>::new();
    for key in 0..40 {
        for caller in [0, 3, 0] {
            let number = world.call_with(caller, "hello", None, |head| head.key = Some(key));
            world.run_for(50 * MS);
            let by = world.reply(number).rsplit(' ').next().unwrap().to_owned();
            let holder = holders.entry((caller, key)).or_insert(by.clone());
            assert_eq!(*holder, by, "key {key}");
        }
        let (of_a, of_d) = (&holders[&(0, key)], &holders[&(3, key)]);
        assert!(of_a == of_d || of_a == "d" || of_d == "a", "key {key}: {of_a} and {of_d}");
    }
    let of_a = holders.iter().filter(|((caller, _), _)| *caller == 0);
    for name in ["b", "c", "d"] {
        assert!(of_a.clone().filter(|(_, by)| *by == name).count() > 3, "{holders:?}");
    }
    // Only the keys of the lost bridge move.
    world.kill(2);
    world.run_for(8 * SECOND);
    for ((_, key), by) in of_a.filter(|(_, by)| *by != "c") {
        let number = world.call_with(0, "hello", None, |head| head.key = Some(*key));
        world.run_for(50 * MS);
        assert!(world.reply(number).ends_with(by), "key {key}");
    }
}

#[test]
fn a_broadcast_names_its_instance() {
    let mut world = BridgeWorld::of(4, &["a", "b", "c"]);
    let instances = world.bridges[0].relays[ROUTE].instances.clone();
    let named = |identity, name: &str| RemoteInstance { identity, name: name.to_owned() };
    assert_eq!(instances, [named(2, "machine-b/shop.2"), named(3, "machine-c/shop.3")]);
    for (identity, by) in [(2, "b"), (3, "c")] {
        let number = world.call_with(0, "hello", None, |head| head.instance = Some(identity));
        world.run_for(50 * MS);
        assert!(world.reply(number).ends_with(&format!("by {by}")));
        let bridge = world.bridges.iter().find(|bridge| bridge.name == by).unwrap();
        assert_eq!(bridge.started.last().unwrap().head.instance, Some(identity));
    }
    let number = world.call_with(0, "hello", None, |head| head.instance = Some(9));
    assert!(
        matches!(world.ended(number), CallFailure::NoRoute { reason } if reason.contains("0000000000000009 has gone"))
    );
}

#[test]
fn own_instances_are_not_remote() {
    let mut world = BridgeWorld::of(5, &["a", "b", "c"]);
    world.offers(0, vec![offer(ROUTE, &[1, 2])]);
    world.offers(1, vec![offer(ROUTE, &[1, 2])]);
    world.run_for(SECOND);
    let identities = |bridge: usize, world: &BridgeWorld| -> Vec<u64> {
        world.bridges[bridge].relays[ROUTE].instances.iter().map(|each| each.identity).collect()
    };
    assert_eq!((identities(0, &world), identities(1, &world), identities(2, &world)), (vec![3], vec![3], vec![1, 2]));
}

#[test]
fn hops_have_an_end() {
    let mut world = BridgeWorld::of(6, &["a", "b"]);
    let last = world.call_with(0, "hello", None, |head| head.hops = 15);
    let over = world.call_with(0, "hello", None, |head| head.hops = 16);
    world.run_for(SECOND);
    assert!(world.reply(last).ends_with("by b"));
    assert!(matches!(world.ended(over), CallFailure::CannotForward { .. }));
}

#[test]
fn another_version_is_named_with_both() {
    let mut world = BridgeWorld::of(7, &["a", "b"]);
    let number = world.call(0, "wait", None);
    world.run_for(100 * MS);
    world.kill(1);
    let next = RecordWriter::new(&BridgeId { name: "b".into(), incarnation: 7 });
    let json = br#"{"protocol": 2, "something": "new"}"#.to_vec();
    for _ in 0..3 {
        world.append("test.presence", next.lease("b", "", Some(json.clone())));
        world.run_for(100 * MS);
    }
    let reason = "it speaks version 2 of the protocol; this bridge speaks version 1".to_owned();
    let bridge = "b".to_owned();
    let notices = world.bridges[0].notices.clone();
    let is_named =
        |notice: &&BridgeNotice| **notice == BridgeNotice::BadLease { bridge: bridge.clone(), reason: reason.clone() };
    assert_eq!(notices.iter().filter(is_named).count(), 1, "{notices:?}");
    assert!(matches!(world.ended(number), CallFailure::Unknown { reason: found, .. } if found.contains(&reason)));
    assert!(world.bridges[0].relays.is_empty());
    let mut request = next.request("x:1", 1, &Default::default(), None);
    request.headers[0].1 = b"2".to_vec();
    world.append("test.inbox.a", request);
    world.run_for(100 * MS);
    let answer = world.records("test.inbox.b").pop().unwrap();
    let json = String::from_utf8(answer.payload.unwrap()).unwrap();
    assert!(json.contains("unavailable") && json.contains("version 2") && json.contains("version 1"), "{json}");
}

#[test]
fn gone_bridges_free_their_slots() {
    let mut world = BridgeWorld::of(9, &["a", "b"]);
    let json = |incarnation| Lease { protocol: 1, lease_ms: 1_000, incarnation, ..Lease::default() }.to_json();
    for number in 0..1_100 {
        let name = format!("gone-{number}");
        let writer = RecordWriter::new(&BridgeId { name: name.as_str().into(), incarnation: number });
        world.append("test.presence", writer.lease(&name, "", Some(json(number))));
    }
    world.run_for(3 * SECOND);
    let late = world.add("late");
    world.offers(late, vec![offer(ROUTE, &[9])]);
    world.run_for(3 * SECOND);
    assert_eq!(world.bridges[0].relays[ROUTE].instances.len(), 2);
    assert_eq!(world.bridges[late].relays[ROUTE].instances.len(), 2);
}

#[test]
fn a_full_prefix_is_told_once() {
    let mut world = BridgeWorld::of(12, &["a", "b"]);
    let json = |incarnation| Lease { protocol: 1, lease_ms: 60_000, incarnation, ..Lease::default() }.to_json();
    for number in 0..1_026 {
        let name = format!("other-{number}");
        let writer = RecordWriter::new(&BridgeId { name: name.as_str().into(), incarnation: number });
        world.append("test.presence", writer.lease(&name, "", Some(json(number))));
    }
    world.run_for(2 * SECOND);
    let full = BridgeNotice::PrefixFull { bridge: "other-1023".to_owned() };
    assert_eq!(world.bridges[0].notices.iter().filter(|notice| **notice == full).count(), 1);
    assert!(
        !world.bridges[0]
            .notices
            .iter()
            .any(|notice| matches!(notice, BridgeNotice::PrefixFull { .. } if *notice != full))
    );
    assert_eq!(world.bridges[0].core.counters().stale_leases, 0);
}

#[test]
fn hostile_leases_change_nothing() {
    let mut world = BridgeWorld::of(8, &["a", "b"]);
    let evil = RecordWriter::new(&BridgeId { name: "evil".into(), incarnation: 7 });
    let full = Lease { protocol: 1, lease_ms: 5_000, ..Lease::default() }.to_json();
    for (key, value) in [("../x", &*full), ("evil", b"{}"), ("evil", b""), ("", &*full), ("evil", &[0xff; 100])] {
        let mut lease = evil.lease("evil", "", Some(value.to_vec()));
        lease.key = Some(key.as_bytes().to_vec());
        world.append("test.presence", lease);
    }
    let mut without_key = evil.lease("evil", "", Some(full));
    without_key.key = None;
    world.append("test.presence", without_key);
    let b = world.bridges[1].core.id().clone();
    world.append("test.presence", RecordWriter::new(&b).lease("b", "", Some(b"{".to_vec())));
    let mut unsigned = RecordWriter::new(&b).lease("b", "", Some(vec![0xff; 10]));
    unsigned.headers.clear();
    world.append("test.presence", unsigned);
    world.append(
        "test.presence",
        RecordWriter::new(&BridgeId { name: "b".into(), incarnation: 7 }).lease("b", "", None),
    );
    world.run_for(SECOND);
    assert_eq!(world.bridges[0].relays[ROUTE].instances.len(), 1);
    assert_eq!(world.bridges[0].core.counters().malformed_records, 5);
}

#[test]
fn garbage_is_judged_by_its_own_name() {
    let mut world = BridgeWorld::of(10, &["a", "b", "c"]);
    // A process c writes under the key b, as if it were a new incarnation.
    let other = RecordWriter::new(&BridgeId { name: "c".into(), incarnation: 7 });
    world.append("test.presence", other.lease("b", "", Some(b"{".to_vec())));
    world.run_for(100 * MS);
    assert_eq!(world.bridges[0].relays[ROUTE].instances.len(), 2);
    assert_eq!(world.bridges[0].core.counters().malformed_records, 1);
}

#[test]
fn garbage_keeps_a_deaf_bridge() {
    let mut world = BridgeWorld::of(11, &["a", "b"]);
    let reader = world.bridges[1].stop_reading();
    world.bridges[1].is_stuck = true;
    world.call(0, "wait", None);
    let state = |world: &BridgeWorld| {
        let now = gapless_agent::Now { monotonic_ns: world.now_ns, epoch_ns: 0 };
        world.bridges[0].core.status(now).peers.first().map(|peer| peer.state)
    };
    while state(&world) != Some(PeerState::Deaf) {
        world.run_for(SECOND);
    }
    let b = RecordWriter::new(world.bridges[1].core.id());
    world.append("test.presence", b.lease("b", "", Some(b"{".to_vec())));
    world.run_for(100 * MS);
    assert_eq!(state(&world), Some(PeerState::Deaf));
    world.bridges[1].read_from(reader);
    world.run_for(3 * SECOND);
    assert_eq!(state(&world), Some(PeerState::Alive));
}
