use super::world::{BridgeWorld, MS, ROUTE, SECOND, offer};
use gapless_kafka::bridge_core::{BridgeInput, Topic};
use gapless_kafka::effects::{BridgeNotice, RequestId};
use gapless_kafka::outcome::CallFailure;
use gapless_kafka::record::names::BridgeId;
use gapless_kafka::record::{RecordWriter, ReplyHead, RequestHead};

#[test]
fn an_unreadable_inbox_is_skipped() {
    let mut world = BridgeWorld::of(1, &["a", "b"]);
    let (out, back) = (world.call(1, "wait", None), world.call(0, "wait", None));
    world.run_for(100 * MS);
    world.append_unreadable("test.inbox.b");
    world.run_for(SECOND);
    assert!(matches!(world.ended(out), CallFailure::Unknown { reason, .. } if reason.contains("no batch")));
    assert!(matches!(world.ended(back), CallFailure::Unknown { .. }));
    assert!(world.duration_ms(out) < 200 && world.duration_ms(back) < 300, "{}", world.duration_ms(back));
    let is_told = |notice: &BridgeNotice| matches!(notice, BridgeNotice::Unreadable { topic: Topic::Inbox, .. });
    assert!(world.bridges[1].notices.iter().any(is_told));
    assert_eq!(world.bridges[1].core.counters().unreadable_records, 1);
    world.run_for(2 * SECOND);
    world.check_calls();
}

#[test]
fn an_unreadable_lease_is_skipped() {
    let mut world = BridgeWorld::of(2, &["a", "b"]);
    let number = world.call(0, "sleep 900", None);
    world.append_unreadable("test.presence");
    world.run_for(SECOND);
    assert!(world.reply(number).ends_with("by b"));
    let late = world.add("c");
    world.offers(late, vec![offer(ROUTE, &[3])]);
    world.run_for(4 * SECOND);
    for bridge in &world.bridges {
        assert_eq!((bridge.skips, bridge.core.counters().unreadable_records), (1, 1), "{}", bridge.name);
        assert_eq!(bridge.relays[ROUTE].instances.len(), 2, "{}", bridge.name);
        let is_loss =
            |notice: &BridgeNotice| matches!(notice, BridgeNotice::PeerSilent { .. } | BridgeNotice::BrokerLost { .. });
        assert!(!bridge.notices.iter().any(is_loss), "{:?}", bridge.notices);
    }
}

#[test]
fn a_stuck_reader_is_opened_again() {
    let mut world = BridgeWorld::of(3, &["a", "b"]);
    let first = world.bridges[1].core.id().clone();
    world.bridges[1].stop_reading();
    world.run_for(12 * SECOND);
    assert_ne!(*world.bridges[1].core.id(), first, "it has begun again");
    world.check_calls();
    world.bridges[0].stop_reading_leases();
    world.run_for(12 * SECOND);
    assert_eq!((world.bridges[0].skips, world.bridges[1].skips), (1, 0));
    world.check_calls();
}

#[test]
fn an_unread_mark_is_written_again() {
    let mut world = BridgeWorld::new(4);
    let bridge = world.add("a");
    world.run_for(2 * MS);
    while world.records("test.inbox.a").is_empty() {
        world.run_for(MS / 4);
    }
    world.is_broker_down = true;
    world.run_for(2 * MS);
    world.bridges[bridge].stop_reading();
    world.is_broker_down = false;
    world.run_for(12 * SECOND);
    assert!(world.bridges[bridge].notices.contains(&BridgeNotice::Serving), "{:?}", world.bridges[bridge].notices);
}

#[test]
fn an_outage_opens_no_reader_again() {
    let mut world = BridgeWorld::of(5, &["a", "b"]);
    let incarnations =
        |world: &BridgeWorld| world.bridges.iter().map(|bridge| bridge.core.id().clone()).collect::<Vec<_>>();
    let before = incarnations(&world);
    for _ in 0..3 {
        let appended = world.records("test.inbox.a").len();
        while world.records("test.inbox.a").len() == appended {
            world.run_for(MS / 4);
        }
        let reader = world.bridges[0].stop_reading();
        world.is_broker_down = true;
        world.run_for(7 * SECOND);
        world.is_broker_down = false;
        world.run_for(3 * SECOND);
        world.bridges[0].read_from(reader);
        world.run_for(2 * SECOND);
    }
    assert_eq!((incarnations(&world), world.bridges[0].skips), (before, 0));
    world.check_calls();
}

#[test]
fn a_stalled_producer_holds_requests() {
    let mut world = BridgeWorld::of(6, &["a", "b"]);
    (world.is_broker_down, world.give_up_ns) = (true, 30 * SECOND);
    let first = world.call(0, "hello", None);
    world.run_for(600 * MS);
    let [held, given_up] = [(); 2].map(|()| world.call(0, "hello", None));
    let brief = world.call(0, "hello", Some(300));
    world.give_up(given_up);
    world.run_for(400 * MS);
    assert_eq!(*world.ended(brief), CallFailure::TimedOut { after_ms: 300, begun: false });
    world.run_for(5 * SECOND);
    assert!(matches!(world.ended(held), CallFailure::NotBegun { reason, .. } if reason.contains("cannot be reached")));
    assert!(world.duration_ms(held) < 5_500, "{}", world.duration_ms(held));
    assert_eq!(world.bridges[0].purges, 1);
    assert!(matches!(world.ended(first), CallFailure::Unknown { reason, .. } if reason.contains("purged")));
    world.is_broker_down = false;
    world.run_for(4 * SECOND);
    world.check_calls();
    assert!([first, held, given_up, brief].iter().all(|number| !world.handled.contains_key(number)));
}

#[test]
fn trouble_holds_requests_at_once() {
    let mut world = BridgeWorld::of(7, &["a", "b"]);
    (world.is_broker_down, world.give_up_ns) = (true, 30 * SECOND);
    let first = world.call(0, "hello", None);
    world.input(0, BridgeInput::BrokerTrouble { reason: "refused".to_owned() });
    let held = world.call(0, "hello", None);
    world.run_for(6 * SECOND);
    assert!(
        matches!(world.ended(held), CallFailure::NotBegun { .. })
            && matches!(world.ended(first), CallFailure::Unknown { .. })
    );
    world.check();
}

#[test]
fn held_requests_go_with_the_time_left() {
    let mut world = BridgeWorld::of(8, &["a", "b"]);
    world.is_broker_down = true;
    let first = world.call(0, "hello", Some(60_000));
    world.run_for(600 * MS);
    let held = world.call(0, &format!("{:3000}", "hello"), Some(5_000));
    let withheld = world.call(0, "hello", Some(5_000));
    let last = world.call(0, "hello", None);
    world.bridges[0].refused_requests.insert(RequestId(withheld));
    world.is_broker_down = false;
    world.run_for(4 * SECOND);
    assert!(matches!(world.ended(first), CallFailure::NotBegun { .. }), "its producer has given it up");
    assert!(world.reply(held).ends_with("by b") && world.reply(last).ends_with("by b"));
    let started = &world.bridges[1].started;
    let left_ms = started[0].timeout.unwrap().as_millis();
    assert!((2_500..2_610).contains(&left_ms), "{left_ms}");
    assert_eq!((started.len(), started[1].timeout), (2, None));
    world.check_calls();
}

#[test]
fn late_records_have_less_time() {
    let mut world = BridgeWorld::of(9, &["a", "b"]);
    let (on_time, endless) = (world.call(0, "hello", Some(4_000)), world.call(0, "hello", None));
    world.run_for(SECOND);
    assert!(world.reply(on_time).ends_with("by b") && world.reply(endless).ends_with("by b"));
    world.late_ns = 2_500 * MS;
    let late = world.call(0, "hello", Some(4_000));
    let over = world.call(0, "hello", Some(2_000));
    world.late_ns = 0;
    world.run_for(5 * SECOND);
    assert!(world.reply(late).ends_with("by b"));
    assert!(matches!(world.ended(over), CallFailure::TimedOut { .. }));
    let left_ms = world.bridges[1].started[2].timeout.unwrap().as_millis();
    assert!((1_450..=1_600).contains(&left_ms), "{left_ms}");
    assert!(!world.handled.contains_key(&over), "it does not begin after its end");
    world.check();
}

#[test]
fn requests_in_a_bundle_have_not_begun() {
    let mut world = BridgeWorld::of(13, &["a", "b"]);
    world.late_ns = 200 * MS;
    let leaving = [(); 2].map(|()| world.call(0, "hello", Some(1_000)));
    let [brief, given_up, last] = [Some(50), None, Some(1_000)].map(|timeout_ms| world.call(0, "hello", timeout_ms));
    world.run_for(100 * MS);
    world.give_up(given_up);
    assert_eq!(*world.ended(brief), CallFailure::TimedOut { after_ms: 50, begun: false });
    world.run_for(SECOND);
    assert!([brief, given_up].iter().all(|number| !world.handled.contains_key(number)));
    assert!(leaving.iter().chain([&last]).all(|number| world.reply(*number).ends_with("by b")));
    world.late_ns = 0;
    world.check_calls();
}

#[test]
fn too_long_records_are_bad_messages() {
    let mut world = BridgeWorld::of(10, &["a", "b"]);
    world.too_long = Some(|record| record.headers.contains(&("gapless-kind".into(), b"request".to_vec())));
    let asked = world.call(0, &format!("{:3000}", "hello"), Some(1_000));
    world.run_for(100 * MS);
    assert!(
        matches!(world.ended(asked), CallFailure::BadMessage { reason } if reason.starts_with("the broker does not take"))
    );
    world.too_long = Some(|record| record.headers.contains(&("gapless-status".into(), b"reply".to_vec())));
    let answered = world.call(0, "hello", Some(1_000));
    world.run_for(100 * MS);
    assert!(
        matches!(world.ended(answered), CallFailure::BadMessage { reason } if reason.contains("could not be sent"))
    );
    world.too_long = None;
    world.check_calls();
}

#[test]
fn an_unreadable_reply_ends_its_call() {
    let mut world = BridgeWorld::of(11, &["a", "b", "c"]);
    let number = world.call_with(0, "wait", None, |head| head.instance = Some(2));
    world.run_for(100 * MS);
    let [a, b, c] = [0, 1, 2].map(|bridge: usize| world.bridges[bridge].core.id().clone());
    let reply = |from: &BridgeId| {
        let correlation = format!("{:016x}:{number}", a.incarnation);
        let mut record = RecordWriter::new(from).reply(&correlation, Some(a.incarnation), &ReplyHead::Reply, None);
        let status = record.headers.iter_mut().find(|(name, _)| name == "gapless-status").unwrap();
        status.1 = b"fine".to_vec();
        record
    };
    world.append("test.inbox.a", reply(&c));
    world.run_for(100 * MS);
    assert!(world.calls[&number].outcomes.is_empty(), "of a bridge that was not asked");
    world.append("test.inbox.a", reply(&b));
    world.run_for(100 * MS);
    let CallFailure::Unknown { reason, .. } = world.ended(number) else { panic!("{:?}", world.ended(number)) };
    assert!(reason.starts_with("the reply cannot be read: gapless-status: \"fine\" was found"), "{reason}");
    let counters = world.bridges[0].core.counters();
    assert_eq!((counters.malformed_records, counters.foreign_replies), (2, 1));
}

#[test]
fn sender_deadlines_are_append_times() {
    let mut world = BridgeWorld::of(12, &["a", "b"]);
    let (a, to) = (world.bridges[0].core.id().clone(), world.bridges[1].core.id().incarnation);
    let now_ms = world.broker_ahead_ms + (world.now_ns / MS) as i64;
    for (number, deadline_ms, time_left_ms) in
        [(1, now_ms + 500, Some(5_000)), (2, now_ms + 500, None), (3, now_ms - 1, Some(5_000))]
    {
        let head = RequestHead {
            route: ROUTE.to_owned(),
            deadline_ms: Some(deadline_ms),
            time_left_ms,
            ..RequestHead::default()
        };
        let mut record = RecordWriter::new(&a).request(&format!("x:{number}"), to, &head, None);
        record.payload = Some(format!("{number} hello").into_bytes());
        world.append("test.inbox.b", record);
    }
    world.run_for(100 * MS);
    let left: Vec<_> = world.bridges[1].started.iter().map(|call| call.timeout.unwrap().as_millis()).collect();
    assert!(left.len() == 2 && left.iter().all(|left_ms| (490..=500).contains(left_ms)), "{left:?}");
}

#[test]
fn an_unsent_ending_is_sent_again() {
    let mut world = BridgeWorld::of(12, &["a", "b"]);
    let number = world.call(0, "sleep 100", None);
    world.run_for(50 * MS);
    world.refused_bridge = Some(1);
    world.run_for(2 * SECOND);
    world.refused_bridge = None;
    world.run_for(3 * SECOND);
    assert!(matches!(world.ended(number), CallFailure::Unknown { reason, .. } if reason.contains("could not be sent")));
    world.check_calls();
}
