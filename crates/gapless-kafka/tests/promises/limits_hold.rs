use super::world::{BridgeWorld, MS, ProducerFaults, ROUTE, SECOND, limits};
use gapless_kafka::config::BridgeLimits;
use gapless_kafka::outcome::CallFailure;
use gapless_kafka::record::names::BridgeId;
use gapless_kafka::record::{RecordWriter, ReplyHead, RequestHead, SegmentPlace};

fn world_with(seed: u64, limits: BridgeLimits) -> BridgeWorld {
    let mut world = BridgeWorld::new(seed);
    world.limits = limits;
    for (name, identity) in [("a", 1), ("b", 2)] {
        let bridge = world.add(name);
        world.offers(bridge, vec![super::world::offer(ROUTE, &[identity])]);
    }
    world.run_for(3 * SECOND);
    world
}

#[test]
fn calling_bridge_enforces_its_limits() {
    let mut world = world_with(1, BridgeLimits { calls_per_peer: 3, bytes_per_peer: 10_000, ..limits() });
    let waiting: Vec<_> = (0..3).map(|_| world.call(0, "sleep 200", None)).collect();
    let busy = world.call(0, "hello", None);
    assert!(matches!(world.ended(busy), CallFailure::Busy { reason } if reason.contains("3 calls or 10000 bytes")));
    world.run_for(SECOND);
    waiting.iter().for_each(|number| assert!(world.reply(*number).ends_with("by b")));
    let long = format!("{:8000}", "sleep 200");
    let (first, second) = (world.call(0, &long, None), world.call(0, &long, None));
    assert!(matches!(world.ended(second), CallFailure::Busy { .. }));
    world.run_for(SECOND);
    assert!(world.reply(first).starts_with(&format!("{first} sleep 200")));
    let too_long = world.call(0, &" ".repeat((16 << 20) + 1), None);
    assert!(matches!(world.ended(too_long), CallFailure::BadMessage { .. }));
    world.check();
}

#[test]
fn serving_bridge_enforces_its_limits() {
    let mut world = world_with(2, BridgeLimits { calls_per_peer: 3, ..limits() });
    let writer = RecordWriter::new(world.bridges[0].core.id());
    let to = world.bridges[1].core.id().incarnation;
    for number in 0..5 {
        let head = RequestHead { route: ROUTE.to_owned(), ..RequestHead::default() };
        let mut record = writer.request(&format!("x:{number}"), to, &head, None);
        record.payload = Some(b"0 wait".to_vec());
        world.append("test.inbox.b", record);
    }
    world.run_for(100 * MS);
    assert_eq!(world.bridges[1].started.len(), 3);
    let busy = |json: &[u8]| json.starts_with(br#"{"kind":"busy""#);
    let answers = world.records("test.inbox.a");
    assert_eq!(answers.iter().filter(|record| record.payload.as_deref().is_some_and(busy)).count(), 2);
}

#[test]
fn unfinished_requests_have_a_limit() {
    let mut world = world_with(9, BridgeLimits { calls_per_peer: 3, ..limits() });
    let writer = RecordWriter::new(world.bridges[0].core.id());
    let to = world.bridges[1].core.id().incarnation;
    let place = SegmentPlace { index: 0, count: 2, total_bytes: 2 };
    for number in 0..5 {
        let head = RequestHead { route: ROUTE.to_owned(), ..RequestHead::default() };
        let mut record = writer.request(&format!("x:{number}"), to, &head, Some(place));
        record.payload = Some(b"0".to_vec());
        world.append("test.inbox.b", record);
    }
    world.run_for(100 * MS);
    let busy = |json: &[u8]| json.starts_with(br#"{"kind":"busy""#);
    let answers = world.records("test.inbox.a");
    assert_eq!(answers.iter().filter(|record| record.payload.as_deref().is_some_and(busy)).count(), 2);
}

#[test]
fn repeated_records_begin_once() {
    let mut world = BridgeWorld::of(3, &["a", "b"]);
    world.faults = ProducerFaults { repeated: 1000, ..ProducerFaults::default() };
    let number = world.call(0, "hello", None);
    world.run_for(SECOND);
    assert_eq!((world.handled[&number], world.bridges[1].core.counters().repeated_requests), (1, 1));
    assert!(world.reply(number).ends_with("by b"));
    assert_eq!(world.bridges[0].core.counters().late_replies, 1);
}

#[test]
fn unexpected_replies_are_counted() {
    let mut world = BridgeWorld::of(4, &["a", "b", "c"]);
    let number = world.call_with(0, "sleep 500", None, |head| head.instance = Some(2));
    world.run_for(100 * MS);
    let a = world.bridges[0].core.id().clone();
    let correlation = format!("{:016x}:{number}", a.incarnation);
    let reply = |from: &BridgeId, to| RecordWriter::new(from).reply(&correlation, Some(to), &ReplyHead::Reply, None);
    let (b, c) = (world.bridges[1].core.id().clone(), world.bridges[2].core.id().clone());
    let old_b = BridgeId { incarnation: 1, ..b.clone() };
    for record in [reply(&c, a.incarnation), reply(&old_b, a.incarnation), reply(&b, 1)] {
        world.append("test.inbox.a", record);
    }
    world.append("test.inbox.a", RecordWriter::new(&b).control("discarded", &correlation, Some(a.incarnation)));
    world.run_for(SECOND);
    assert!(world.reply(number).ends_with("by b"));
    world.append("test.inbox.a", reply(&b, a.incarnation));
    world.run_for(100 * MS);
    let counters = world.bridges[0].core.counters();
    assert_eq!((counters.foreign_replies, counters.replies_to_earlier, counters.late_replies), (3, 1, 1));
}

#[test]
fn hostile_headers_change_nothing() {
    let mut world = BridgeWorld::of(5, &["a", "b"]);
    let writer = RecordWriter::new(world.bridges[0].core.id());
    let whole = writer.request("x:1", 7, &RequestHead { route: ROUTE.to_owned(), ..RequestHead::default() }, None);
    let mut appended = 0;
    for index in 0..whole.headers.len() {
        for value in [&b""[..], b"\xff\xff", b"-1", &[b'9'; 2_000], b"1/2/3/4", b"@", b"\0"] {
            let mut record = whole.clone();
            record.headers[index].1 = value.to_vec();
            world.append("test.inbox.b", record);
            appended += 1;
        }
        let mut record = whole.clone();
        record.headers.remove(index);
        world.append("test.inbox.b", record);
    }
    world.run_for(SECOND);
    let malformed = world.bridges[1].core.counters().malformed_records;
    assert!(malformed > appended * 3 / 4, "{malformed} of {appended}");
    let number = world.call(0, "hello", Some(1_000));
    world.run_for(SECOND);
    assert!(world.reply(number).ends_with("by b"));
}

#[test]
fn bundles_fit_the_broker() {
    let mut world = BridgeWorld::of(8, &["a", "b"]);
    let calls = (0..200).map(|number| world.call(0, &format!("{:1$}", "hello", number * 5), Some(1_000)));
    let numbers: Vec<_> = calls.collect();
    world.run_for(SECOND);
    numbers.iter().for_each(|number| assert!(world.reply(*number).ends_with("by b")));
    world.check();
}

#[test]
fn many_calls_share_records() {
    let mut world = world_with(7, BridgeLimits { segment_bytes: 64 << 10, ..limits() });
    let appended = ["a", "b"].map(|name| world.records(&format!("test.inbox.{name}")).len());
    let numbers: Vec<_> = (0..200).map(|_| world.call(0, "hello", Some(1_000))).collect();
    world.run_for(SECOND);
    numbers.iter().for_each(|number| assert!(world.reply(*number).ends_with("by b")));
    for (name, before) in ["a", "b"].into_iter().zip(appended) {
        let records = world.records(&format!("test.inbox.{name}")).len() - before;
        assert!(records < 60, "{records} records in the inbox of {name}");
    }
    world.check();
}
