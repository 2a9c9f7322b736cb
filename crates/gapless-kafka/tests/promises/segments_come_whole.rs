use super::world::{BridgeWorld, MS, ROUTE, SECOND};
use gapless_kafka::calls_out::{AppendFailure, Certainty};
use gapless_kafka::effects::DeliveryToken;
use gapless_kafka::outcome::CallFailure;
use gapless_kafka::record::{RecordWriter, RequestHead, SegmentPlace};

#[test]
fn long_requests_and_replies_pass() {
    let mut world = BridgeWorld::of(1, &["a", "b"]);
    let long = format!("{:50000}", "hello");
    let asked = world.call(0, &long, Some(5_000));
    let answered = world.call(0, "reply 100000", Some(5_000));
    world.run_for(2 * SECOND);
    assert!(world.reply(asked).ends_with("by b"));
    assert_eq!(world.reply(answered).len(), 100_000);
    assert_eq!(world.bridges[1].started[0].payload.len(), 50_000 + asked.to_string().len() + 1);
    let is_short =
        |record: &gapless_kafka::record::KafkaRecord| record.payload.as_ref().is_none_or(|bytes| bytes.len() <= 1024);
    assert!(world.records("test.inbox.b").iter().all(is_short));
    world.check();
}

#[test]
fn lost_segment_ends_the_call_at_once() {
    let mut world = BridgeWorld::of(2, &["a", "b"]);
    let is_third = |record: &gapless_kafka::record::KafkaRecord| {
        record.headers.iter().any(|(name, value)| name == "gapless-segment" && value.starts_with(b"2/"))
    };
    world.drop = Some(is_third);
    let asked = world.call(0, &format!("{:5000}", "hello"), Some(60_000));
    let answered = world.call(0, "reply 5000", Some(60_000));
    world.run_for(SECOND);
    assert!(matches!(world.ended(asked), CallFailure::Unknown { .. } | CallFailure::NotBegun { .. }));
    assert!(
        matches!(world.ended(answered), CallFailure::Unknown { reason, .. } if reason.contains("segment 3 of 5 is missing"))
    );
    assert!(world.duration_ms(asked) < 100 && world.duration_ms(answered) < 100);
    world.check();
}

#[test]
fn missing_segments_time_out() {
    let mut world = BridgeWorld::of(3, &["a", "b"]);
    let writer = RecordWriter::new(world.bridges[0].core.id());
    let to = world.bridges[1].core.id().incarnation;
    let place = SegmentPlace { index: 0, count: 2, total_bytes: 20 };
    let head = RequestHead { route: ROUTE.to_owned(), time_left_ms: Some(500), ..RequestHead::default() };
    for (correlation, time_left_ms) in [("x:1", Some(500)), ("x:2", None)] {
        let head = RequestHead { time_left_ms, ..head.clone() };
        let mut record = writer.request(correlation, to, &head, Some(place));
        record.payload = Some(vec![b'0'; 10]);
        world.append("test.inbox.b", record);
    }
    let refusals = |world: &BridgeWorld| {
        let is_refusal = |json: &[u8]| json.starts_with(br#"{"kind":"not_begun""#);
        let answers = world.records("test.inbox.a");
        answers.iter().filter(|record| record.payload.as_deref().is_some_and(is_refusal)).count()
    };
    world.run_for(400 * MS);
    assert_eq!(refusals(&world), 0);
    world.run_for(300 * MS);
    assert_eq!(refusals(&world), 1, "the time of the call");
    world.run_for(28 * SECOND);
    assert_eq!(refusals(&world), 1);
    world.run_for(3 * SECOND);
    assert_eq!(refusals(&world), 2, "and of a call without end");
    let mut late = writer.segment(true, "x:1", Some(to), SegmentPlace { index: 1, ..place });
    late.payload = Some(vec![b'0'; 10]);
    world.append("test.inbox.b", late);
    world.run_for(SECOND);
    assert!(world.bridges[1].started.is_empty());
    assert_eq!(refusals(&world), 2);
}

#[test]
fn a_refused_segment_is_not_begun() {
    let mut world = BridgeWorld::of(4, &["a", "b"]);
    let asked = world.call(0, &format!("{:5000}", "hello"), Some(60_000));
    let result = Err(AppendFailure { certainty: Certainty::Absent, reason: "no right".to_owned() });
    let token = DeliveryToken::Request(gapless_kafka::effects::RequestId(asked));
    world.input(0, gapless_kafka::bridge_core::BridgeInput::Delivered { token, result });
    assert!(matches!(world.ended(asked), CallFailure::NotBegun { reason, .. } if reason.contains("no right")));
}
