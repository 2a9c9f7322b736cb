use super::world::{BridgeWorld, MS, ROUTE, SECOND, offer};
use gapless_kafka::presence::Lease;
use gapless_kafka::record::{EnvelopeContent, KafkaRecord, ReplyHead, read};
use gapless_message::Encoding;
use std::borrow::Cow;

fn record(headers: &[(&'static str, &str)], payload: &str) -> KafkaRecord {
    let headers = headers.iter().map(|(name, value)| (Cow::Borrowed(*name), value.as_bytes().to_vec())).collect();
    KafkaRecord { key: None, headers, payload: Some(payload.as_bytes().to_vec()) }
}

fn header<'a>(record: &'a KafkaRecord, name: &str) -> Option<&'a str> {
    let found = record.headers.iter().find(|(each, _)| each == name);
    found.map(|(_, value)| std::str::from_utf8(value).unwrap())
}

const REQUEST: [(&str, &str); 5] = [
    ("gapless-kind", "request"),
    ("gapless-route", ROUTE),
    ("gapless-correlation", "order 7"),
    ("gapless-reply-topic", "test.reply.orders"),
    ("gapless-encoding", "json"),
];

fn world() -> BridgeWorld {
    let mut world = BridgeWorld::new(1);
    let bridge = world.add("a");
    world.offers(bridge, vec![offer(ROUTE, &[1])]);
    world.run_for(2 * SECOND);
    world
}

#[test]
fn a_json_call_has_a_reply() {
    let mut world = world();
    world.append("test.inbox.a", record(&REQUEST, "1 hello"));
    world.run_for(100 * MS);
    let [reply] = &world.records("test.reply.orders")[..] else { panic!("no reply") };
    assert_eq!(reply.payload.as_deref(), Some(&b"1 hello by a"[..]));
    assert_eq!(
        (header(reply, "gapless-correlation"), header(reply, "gapless-status")),
        (Some("order 7"), Some("reply"))
    );
    let head = &world.bridges[0].started[0].head;
    assert_eq!((head.encoding, head.fingerprint, world.bridges[0].started[0].timeout), (Encoding::Json, 0, None));
}

#[test]
fn repeated_call_gets_the_same_reply() {
    let mut world = world();
    for _ in 0..3 {
        world.append("test.inbox.a", record(&REQUEST, "1 hello"));
        world.run_for(100 * MS);
    }
    let replies = world.records("test.reply.orders");
    assert_eq!((replies.len(), world.handled[&1]), (3, 1));
    assert!(replies.iter().all(|reply| reply.payload == replies[0].payload));
}

#[test]
fn a_repeated_refusal_is_the_same() {
    let mut world = world();
    let mut elsewhere = REQUEST;
    elsewhere[1].1 = "no/such/route";
    for _ in 0..3 {
        world.append("test.inbox.a", record(&elsewhere, ""));
        world.run_for(100 * MS);
    }
    let replies = world.records("test.reply.orders");
    let is_refusal =
        |reply: &KafkaRecord| reply.payload.as_ref().is_some_and(|json| json.starts_with(br#"{"kind":"no_r"#));
    assert!(replies.len() == 3 && replies.iter().all(is_refusal), "{replies:?}");
    let mut send = elsewhere.to_vec();
    send[2].1 = "order 8";
    send.push(("gapless-one-way", "true"));
    for _ in 0..2 {
        world.append("test.inbox.a", record(&send, ""));
    }
    world.run_for(100 * MS);
    assert_eq!(world.records("test.reply.orders").len(), 3);
}

#[test]
fn a_repeated_ending_is_the_same() {
    let mut world = world();
    world.too_long = Some(|record| record.headers.contains(&("gapless-status".into(), b"reply".to_vec())));
    for _ in 0..3 {
        world.append("test.inbox.a", record(&REQUEST, "1 hello"));
        world.run_for(100 * MS);
    }
    let replies = world.records("test.reply.orders");
    let is_ending =
        |reply: &KafkaRecord| reply.payload.as_ref().is_some_and(|json| json.starts_with(br#"{"kind":"bad_m"#));
    assert!(replies.len() == 3 && replies.iter().all(is_ending), "{replies:?}");
    assert_eq!(world.handled[&1], 1);
}

#[test]
fn refusals_and_errors_are_readable() {
    let mut world = world();
    let mut numbered = REQUEST;
    for (correlation, what) in [("1", "1 refuse"), ("2", "2 panic")] {
        numbered[2].1 = correlation;
        world.append("test.inbox.a", record(&numbered, what));
    }
    let mut broken = REQUEST;
    broken[1].1 = "no/such/route";
    world.append("test.inbox.a", record(&broken, ""));
    broken[1].1 = "a b";
    broken[2].1 = "4";
    world.append("test.inbox.a", record(&broken, ""));
    world.run_for(100 * MS);
    let replies = world.records("test.reply.orders");
    let of = |correlation: &str| replies.iter().find(|reply| header(reply, "gapless-correlation") == Some(correlation));
    let refused = of("1").unwrap();
    assert_eq!(
        (header(refused, "gapless-status"), header(refused, "gapless-refusal-code")),
        (Some("refused"), Some("7"))
    );
    for (correlation, kind) in [("2", "panicked"), ("order 7", "no_route"), ("4", "bad_message")] {
        let json: serde_json::Value =
            serde_json::from_slice(of(correlation).unwrap().payload.as_ref().unwrap()).unwrap();
        assert_eq!(
            (header(of(correlation).unwrap(), "gapless-status"), json["kind"].as_str()),
            (Some("ended"), Some(kind))
        );
    }
}

#[test]
fn forbidden_reply_topic_makes_no_call() {
    let mut world = world();
    for topic in ["payments", "test.presence", "test.inbox.a"] {
        let mut request = REQUEST;
        request[3].1 = topic;
        world.append("test.inbox.a", record(&request, "1 hello"));
    }
    world.append("test.inbox.a", record(&[REQUEST[0], REQUEST[1], REQUEST[2], REQUEST[4]], "1 hello"));
    world.run_for(100 * MS);
    assert!(world.bridges[0].started.is_empty() && !world.topics.contains_key("payments"));
    assert_eq!(world.bridges[0].core.counters().without_address, 4);
    let send = [REQUEST[0], REQUEST[1], REQUEST[2], REQUEST[4], ("gapless-one-way", "true")];
    world.append("test.inbox.a", record(&send, "1 hello"));
    world.run_for(100 * MS);
    assert_eq!(world.handled[&1], 1);
}

#[test]
fn programs_without_replies_have_names() {
    let mut world = world();
    let mut send =
        [REQUEST[0], REQUEST[1], REQUEST[2], REQUEST[4], ("gapless-one-way", "true"), ("gapless-caller", "")];
    for caller in ["m1/till", "m2/till", "m1/till", ""] {
        send[5].1 = caller;
        world.append("test.inbox.a", record(&send, "1 hello"));
    }
    world.run_for(100 * MS);
    assert_eq!((world.handled[&1], world.bridges[0].core.counters().repeated_requests), (3, 1));
    let mut request = REQUEST.to_vec();
    for caller in ["m1/till", "m2/till"] {
        request.push(("gapless-caller", caller));
        world.append("test.inbox.a", record(&request, "2 hello"));
        request.pop();
    }
    world.run_for(100 * MS);
    assert_eq!((world.handled[&2], world.records("test.reply.orders").len()), (1, 1));
}

#[test]
fn a_reply_waits_for_the_broker() {
    let mut world = world();
    world.append("test.inbox.a", record(&REQUEST, "1 sleep 50"));
    world.run_for(20 * MS);
    world.is_broker_down = true;
    world.run_for(2 * SECOND);
    world.is_broker_down = false;
    world.run_for(3 * SECOND);
    let [reply] = &world.records("test.reply.orders")[..] else { panic!("no reply") };
    assert_eq!(
        (header(reply, "gapless-status"), &*reply.payload.clone().unwrap()),
        (Some("reply"), &b"1 sleep 50 by a"[..])
    );
    assert_eq!(world.bridges[0].core.counters().lost_replies, 1);
}

#[test]
fn deadlines_are_of_the_append() {
    let mut world = world();
    let mut request = REQUEST.to_vec();
    request.push(("gapless-time-left-ms", "2000"));
    world.append("test.inbox.a", record(&request, "1 hello"));
    world.run_for(100 * MS);
    let left = world.bridges[0].started[0].timeout.unwrap().as_millis();
    assert!((1_990..=2_000).contains(&left), "{left}");
    request[2].1 = "order 8";
    world.pause(0);
    world.append("test.inbox.a", record(&request, "2 hello"));
    world.run_for(3 * SECOND);
    world.resume(0);
    world.run_for(100 * MS);
    let json = world.records("test.reply.orders").pop().unwrap().payload.unwrap();
    let json = String::from_utf8(json).unwrap();
    assert!(json.contains("not_begun") && json.contains("its time was over when bridge a read the request"), "{json}");
    assert!(!world.handled.contains_key(&2));
}

#[test]
fn pings_and_cancels_are_for_all() {
    let mut world = world();
    let ping = [("gapless-kind", "ping"), ("gapless-correlation", "p"), ("gapless-reply-topic", "test.reply.orders")];
    world.append("test.inbox.a", record(&ping, ""));
    world.append("test.inbox.a", record(&REQUEST, "1 wait"));
    world.run_for(100 * MS);
    let pong = world.records("test.reply.orders").pop().unwrap();
    assert_eq!((header(&pong, "gapless-kind"), header(&pong, "gapless-correlation")), (Some("pong"), Some("p")));
    let mut cancel = REQUEST;
    cancel[0].1 = "cancel";
    world.append("test.inbox.a", record(&cancel, ""));
    world.run_for(100 * MS);
    assert_eq!(world.bridges[0].cancelled.len(), 1);
}

fn examples(language: &str) -> Vec<&'static str> {
    let page = include_str!("../../../../docs/protocols/kafka.md");
    let begin = format!("```{language}\n");
    page.split(&*begin).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn examples_of_the_page_are_read() {
    let [lease] = examples("json")[..] else { panic!("one lease") };
    let lease = Lease::read(lease.as_bytes()).unwrap();
    assert_eq!((lease.routes[0].instances[0].identity, lease.routes[0].request.fingerprint), (7, 0xaa));
    let [request, reply] = examples("text")[..] else { panic!("a request and its reply") };
    let headers = |text: &'static str| {
        let lines = text.lines().filter(|line| line.starts_with("gapless-"));
        let named = lines.map(|line| line.split_once(": ").unwrap());
        named.map(|(name, value)| (Cow::Borrowed(name), value.as_bytes().to_vec())).collect::<Vec<_>>()
    };
    let request = read(&headers(request)).unwrap();
    assert!(matches!(request.content, EnvelopeContent::Request(head, None) if head.time_left_ms == Some(5_000)));
    let reply = read(&headers(reply)).unwrap();
    assert_eq!(reply.content, EnvelopeContent::Reply(ReplyHead::Reply, None));
    assert_eq!(
        (reply.sender.correlation, reply.sender.from.unwrap().incarnation),
        (request.sender.correlation, 0x00c0_ffee_00c0_ffee)
    );
}
