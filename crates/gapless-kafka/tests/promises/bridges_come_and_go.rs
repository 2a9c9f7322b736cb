use super::world::{BridgeWorld, MS, ProducerFaults, ROUTE, SECOND, limits, offer, program_request};
use gapless_kafka::bridge_core::BridgeInput;
use gapless_kafka::config::BridgeLimits;
use gapless_kafka::effects::{BridgeError, BridgeNotice};
use gapless_kafka::outcome::CallFailure;
use gapless_kafka::record::KafkaRecord;
use gapless_testkit::random::rounds;

#[test]
fn a_restart_tells_begun_from_unbegun() {
    let mut world = BridgeWorld::of(1, &["a", "b"]);
    let begun = world.call(0, "wait", None);
    world.run_for(100 * MS);
    world.kill(1);
    let waiting = world.call(0, "hello", None);
    world.run_for(10 * MS);
    world.restart(1, 2);
    world.run_for(4 * MS);
    let after_mark = world.call(0, "hello", None);
    world.run_for(2 * SECOND);
    for number in [begun, waiting] {
        assert!(matches!(world.ended(number), CallFailure::Unknown { reason, .. } if reason == "bridge b began again"));
    }
    assert!(matches!(world.ended(after_mark), CallFailure::NotBegun { .. }), "{:?}", world.ended(after_mark));
    assert!(world.duration_ms(after_mark) < 100);
    world.check();
    let again = world.call(0, "hello", None);
    world.run_for(SECOND);
    assert!(world.reply(again).ends_with("by b"));
}

#[test]
fn next_incarnation_discards_requests() {
    let mut world = BridgeWorld::of(2, &["a", "b"]);
    world.restart(1, 2);
    world.pause(0);
    world.run_for(SECOND);
    let before = world.topics["test.inbox.a"].len();
    let old = world.bridges[0].core.id().clone();
    let writer = gapless_kafka::record::RecordWriter::new(&old);
    let head = gapless_kafka::record::RequestHead { route: ROUTE.to_owned(), ..Default::default() };
    world.append("test.inbox.b", writer.request("x:1", 77, &head, None));
    world.run_for(100 * MS);
    assert_eq!(world.bridges[1].core.counters().discarded_requests, 1);
    let answers = world.records("test.inbox.a").split_off(before);
    let kinds: Vec<_> =
        answers.iter().map(|record| String::from_utf8_lossy(&record.headers[1].1).into_owned()).collect();
    assert!(kinds.contains(&"discarded".to_owned()), "{kinds:?}");
    assert!(world.bridges[1].started.is_empty());
}

#[test]
fn second_bridge_of_a_name_ends_first() {
    let mut world = BridgeWorld::of(3, &["a", "b"]);
    let running = world.call(0, "wait", None);
    let own = world.call(1, "wait", None);
    world.run_for(100 * MS);
    let second = world.add("b");
    world.offers(second, vec![offer(ROUTE, &[2])]);
    world.run_for(2 * SECOND);
    let Some(Err(BridgeError::NameTaken { name, own: first, other })) = &world.bridges[1].ended else {
        panic!("{:?}", world.bridges[1].ended)
    };
    assert_eq!((&**name, first != other), ("b", true));
    assert!(first.starts_with("machine-b/gapless (") && other.starts_with("machine-b/gapless ("), "{first} {other}");
    assert!(matches!(world.ended(running), CallFailure::Unknown { .. }));
    assert!(matches!(world.ended(own), CallFailure::Unknown { reason, .. } if reason.contains("began a second time")));
    let after = world.call(0, "hello", None);
    world.run_for(SECOND);
    assert!(world.reply(after).ends_with("by b"));
    assert!(world.bridges[second].ended.is_none());
    world.check();
}

#[test]
fn resumed_process_has_lost_its_name() {
    let mut world = BridgeWorld::of(4, &["a", "b"]);
    world.pause(1);
    world.run_for(10 * MS);
    let second = world.add("b");
    world.offers(second, vec![offer(ROUTE, &[2])]);
    world.run_for(60 * SECOND);
    let notices = world.bridges[0].notices.len();
    world.resume(1);
    world.run_for(2 * SECOND);
    assert!(matches!(world.bridges[1].ended, Some(Err(BridgeError::NameTaken { .. }))));
    assert_eq!(world.bridges[0].notices.len(), notices);
    let after = world.call(0, "hello", Some(1_000));
    world.run_for(SECOND);
    assert!(world.reply(after).ends_with("by b"));
    world.check();
}

#[test]
fn silence_ends_calls_before_deadlines() {
    let mut world = BridgeWorld::of(5, &["a", "b"]);
    let number = world.call(0, "wait", Some(3_600_000));
    world.run_for(100 * MS);
    world.kill(1);
    world.run_for(7 * SECOND);
    assert!(matches!(world.ended(number), CallFailure::Unknown { reason, .. } if reason.contains("its lease is over")));
    assert!((4_000..6_500).contains(&world.duration_ms(number)), "{}", world.duration_ms(number));
    assert!(world.bridges[0].relays.is_empty());
    let after = world.call(0, "hello", None);
    let words = "bridge b, which offered it, is silent since 7 s";
    assert_eq!(*world.ended(after), CallFailure::NoRoute { reason: words.to_owned() });
    let other = world.call_with(0, "hello", None, |head| head.route = "shop/other".to_owned());
    assert_eq!(*world.ended(other), CallFailure::NoRoute { reason: String::new() }, "it did not offer that route");
    world.check();
}

#[test]
fn silent_bridges_are_named_to_callers() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut world = BridgeWorld::of(21, &names);
    world.kill(2);
    world.run_for(7 * SECOND);
    let wanted = world.call_with(0, "hello", None, |head| head.instance = Some(3));
    let CallFailure::NoRoute { reason } = world.ended(wanted) else { panic!("another end") };
    let start = "its instance 0000000000000003 has gone; bridge c, which offered it, is silent since ";
    assert!(reason.starts_with(start) && reason.ends_with(" s"), "{reason}");
    let unknown = world.call_with(0, "hello", None, |head| head.instance = Some(99));
    let CallFailure::NoRoute { reason } = world.ended(unknown) else { panic!("another end") };
    assert_eq!(reason, "its instance 0000000000000063 has gone");
    (1..names.len()).filter(|index| *index != 2).for_each(|index| world.kill(index));
    world.run_for(7 * SECOND);
    let after = world.call(0, "hello", None);
    let CallFailure::NoRoute { reason } = world.ended(after) else { panic!("another end") };
    assert_eq!(reason.matches("is silent since").count(), 3, "{reason}");
    world.restart(1, 2);
    world.run_for(3 * SECOND);
    let back = world.call(0, "hello", None);
    world.run_for(SECOND);
    assert!(world.reply(back).ends_with("by b"));
}

#[test]
fn many_calls_end_with_their_bridge() {
    let mut world = BridgeWorld::new(13);
    world.limits = BridgeLimits { calls_per_peer: 10_000, ..limits() };
    for (name, identity) in [("a", 1), ("b", 2)] {
        let bridge = world.add(name);
        world.offers(bridge, vec![offer(ROUTE, &[identity])]);
    }
    world.run_for(3 * SECOND);
    let numbers: Vec<_> = (0..rounds(10_000, 1_000)).map(|_| world.call(0, "wait", None)).collect();
    world.run_for(SECOND);
    world.kill(1);
    world.run_for(7 * SECOND);
    assert!(numbers.iter().all(|number| matches!(world.ended(*number), CallFailure::Unknown { .. })));
    assert_eq!(world.bridges[0].core.in_flight(), (0, 0));
    world.check();
}

#[test]
fn a_bridge_that_goes_on_is_back() {
    let mut world = BridgeWorld::of(6, &["a", "b"]);
    world.pause(1);
    world.run_for(60 * SECOND);
    assert!(world.bridges[0].relays.is_empty());
    world.resume(1);
    world.run_for(3 * SECOND);
    assert!(world.bridges[0].notices.contains(&BridgeNotice::PeerBack { bridge: "b".to_owned() }));
    assert!(!world.bridges[1].notices.iter().any(|notice| matches!(notice, BridgeNotice::PeerSilent { .. })));
    for (caller, by) in [(0, "b"), (1, "a")] {
        let number = world.call(caller, "hello", Some(1_000));
        world.run_for(SECOND);
        assert!(world.reply(number).ends_with(&format!("by {by}")));
    }
}

#[test]
fn unread_inbox_is_detected() {
    let mut world = BridgeWorld::of(7, &["a", "b"]);
    world.bridges[1].stop_reading();
    world.bridges[1].is_stuck = true;
    let number = world.call(0, "hello", None);
    world.run_for(12 * SECOND);
    assert!(matches!(world.ended(number), CallFailure::Unknown { reason, .. } if reason.contains("answers no ping")));
    assert!(world.duration_ms(number) < 9_000, "{}", world.duration_ms(number));
    assert!(world.bridges[0].relays.is_empty());
    let after = world.call(0, "hello", None);
    let CallFailure::NoRoute { reason } = world.ended(after) else { panic!("another end") };
    assert!(reason.starts_with("bridge b, which offered it, is deaf since "), "{reason}");
}

#[test]
fn a_clean_stop_lets_calls_end() {
    let mut world = BridgeWorld::of(8, &["a", "b"]);
    let short = world.call(0, "sleep 500", None);
    let long = world.call(0, "wait", None);
    let own = world.call(1, "sleep 700", None);
    world.run_for(50 * MS);
    world.input(1, BridgeInput::Stop);
    world.run_for(30 * MS);
    assert!(world.bridges[1].relays.is_empty());
    let own_late = world.call(1, "hello", None);
    assert!(matches!(world.ended(own_late), CallFailure::NoRoute { reason } if reason == "bridge b stops"));
    world.run_for(200 * MS);
    assert!(world.bridges[0].relays.is_empty(), "its lease says so");
    world.run_for(13 * SECOND);
    assert!(world.reply(short).ends_with("by b") && world.reply(own).ends_with("by a"));
    assert!(matches!(world.ended(long), CallFailure::Unknown { .. }));
    assert_eq!(world.bridges[1].ended, Some(Ok(())));
    assert!(world.records("test.presence").last().is_some_and(|record| record.payload.is_some()), "a is there");
    assert!(world.bridges[0].notices.contains(&BridgeNotice::PeerStopped { bridge: "b".to_owned() }));
    world.check();
}

#[test]
fn a_lost_broker_is_a_reason() {
    let mut world = BridgeWorld::of(9, &["a", "b"]);
    let flying = world.call(0, "wait", None);
    world.run_for(100 * MS);
    world.is_broker_down = true;
    let stuck = world.call(0, "hello", None);
    let words = "broker 7: connection refused".to_owned();
    world.input(0, BridgeInput::BrokerTrouble { reason: words.clone() });
    world.run_for(7 * SECOND);
    assert!(matches!(world.ended(stuck), CallFailure::NotBegun { .. }));
    assert!(matches!(world.ended(flying), CallFailure::Unknown { reason, .. } if reason.contains(&words)));
    assert!(!world.bridges[0].relays.is_empty(), "relays stay, to give the reason");
    let refused = world.call(0, "hello", None);
    let CallFailure::NoRoute { reason } = world.ended(refused) else { panic!("another end") };
    assert!(
        reason.starts_with("the broker of bridge a cannot be reached since") && reason.ends_with(&format!("({words})"))
    );
    assert!(!world.bridges[0].notices.iter().any(|notice| matches!(notice, BridgeNotice::PeerSilent { .. })));
    world.is_broker_down = false;
    world.run_for(3 * SECOND);
    assert!(world.bridges[0].notices.contains(&BridgeNotice::BrokerBack));
    let after = world.call(0, "hello", Some(1_000));
    world.run_for(SECOND);
    assert!(world.reply(after).ends_with("by b"));
    world.check();
}

#[test]
fn short_outages_silence_no_bridge() {
    let mut world = BridgeWorld::of(20, &["a", "b"]);
    world.run_for(SECOND / 2);
    // The leases of b around the outage are lost: its lease is over before a misses its own.
    world.refused_bridge = Some(1);
    world.run_for(2 * SECOND);
    world.is_broker_down = true;
    world.run_for(3_400 * MS);
    world.is_broker_down = false;
    world.run_for(600 * MS);
    world.refused_bridge = None;
    world.run_for(3 * SECOND);
    let notices = &world.bridges[0].notices;
    let is_known = |notice: &BridgeNotice| matches!(notice, BridgeNotice::Serving | BridgeNotice::PeerBegan { .. });
    assert!(notices.iter().all(is_known), "{notices:?}");
}

#[test]
fn refused_marks_are_retried() {
    let mut world = BridgeWorld::new(10);
    world.faults = ProducerFaults { refused: 1000, ..ProducerFaults::default() };
    let bridge = world.add("a");
    world.run_for(5 * SECOND);
    assert!(world.bridges[bridge].notices.is_empty());
    let early = world.call(bridge, "hello", None);
    assert!(matches!(world.ended(early), CallFailure::NoRoute { reason } if reason == "bridge a has not begun yet"));
    world.faults = ProducerFaults::default();
    world.run_for(3 * SECOND);
    assert_eq!(world.bridges[bridge].notices, [BridgeNotice::Serving]);
}

#[test]
fn lost_records_make_a_new_incarnation() {
    let mut world = BridgeWorld::of(11, &["a", "b"]);
    let out = world.call(1, "wait", None);
    let back = world.call(0, "wait", None);
    world.run_for(100 * MS);
    let old = world.bridges[1].core.id().clone();
    world.topics.insert("test.inbox.b".to_owned(), Vec::new());
    world.bridges[1].stop_reading();
    world.input(1, BridgeInput::InboxLost { incarnation: 99, reason: "topic deleted".to_owned() });
    world.run_for(3 * SECOND);
    assert_ne!(*world.bridges[1].core.id(), old);
    assert!(matches!(world.ended(out), CallFailure::Unknown { reason, .. } if reason.contains("topic deleted")));
    assert!(matches!(world.ended(back), CallFailure::Unknown { .. }));
    world.check_calls();
}

#[test]
fn leases_of_the_past_are_no_bridges() {
    let mut world = BridgeWorld::of(12, &["a", "b"]);
    world.kill(1);
    world.run_for(60 * SECOND);
    let late = world.add("c");
    world.offers(late, vec![offer(ROUTE, &[3])]);
    world.run_for(SECOND);
    let names: Vec<_> = world.bridges[late].relays[ROUTE].instances.iter().map(|each| each.name.clone()).collect();
    assert_eq!(names, ["machine-a/shop.1"]);
}

#[test]
fn marks_of_another_log_prove_nothing() {
    let mut world = BridgeWorld::of(21, &["a", "b"]);
    world.run_for(20 * SECOND);
    let begun = world.call(0, "wait", None);
    world.run_for(100 * MS);
    assert_eq!(world.handled[&begun], 1);
    // The recreated topic's next mark has a small offset, and by a slow broker clock an early time.
    world.broker_ahead_ms -= 5_000;
    world.topics.insert("test.inbox.b".to_owned(), Vec::new());
    world.bridges[1].stop_reading();
    world.input(1, BridgeInput::InboxLost { incarnation: 99, reason: "topic deleted".to_owned() });
    world.run_for(3 * SECOND);
    assert!(matches!(world.ended(begun), CallFailure::Unknown { .. }), "{:?}", world.ended(begun));
    world.check();
}

#[test]
fn a_begun_request_is_never_discarded() {
    let mut world = BridgeWorld::of(22, &["a", "b"]);
    let begun = world.call(0, "wait", None);
    world.run_for(100 * MS);
    let is_request = |record: &&KafkaRecord| record.headers.iter().any(|(_, value)| value == b"request");
    let request = world.records("test.inbox.b").iter().find(is_request).unwrap().clone();
    world.bridges[0].stop_reading_leases();
    world.bridges[1].stop_reading();
    world.input(1, BridgeInput::InboxLost { incarnation: 99, reason: "the test says so".to_owned() });
    world.run_for(100 * MS);
    world.append("test.inbox.b", request);
    world.run_for(500 * MS);
    let counters = world.bridges[1].core.counters();
    assert_eq!((counters.discarded_requests, counters.repeated_requests), (0, 1));
    assert!(world.calls[&begun].outcomes.is_empty(), "{:?}", world.calls[&begun]);
}

#[test]
fn clean_stop_waits_for_unsent_replies() {
    let mut world = BridgeWorld::of(23, &["a"]);
    let request = KafkaRecord { payload: Some(b"1 hello".to_vec()), headers: program_request("7", ROUTE), key: None };
    world.append("test.inbox.a", request);
    world.refused_bridge = Some(0);
    world.run_for(100 * MS);
    world.input(0, BridgeInput::Stop);
    world.run_for(400 * MS);
    world.refused_bridge = None;
    world.run_for(12 * SECOND);
    assert_eq!(world.bridges[0].ended, Some(Ok(())));
    let [reply] = &world.records("test.reply.x")[..] else { panic!("no reply") };
    assert_eq!(reply.payload.as_deref(), Some(&b"1 hello by a"[..]));
}
