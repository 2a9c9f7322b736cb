use crate::machines::{ALL, BridgePlan, ROUTE, TestMachine, Work};
use crate::traffic::{NotedCalls, Traffic};
use gapless_kafka::client::{
    BrokerConnection, Compression, Consumer, ConsumerEvent, ConsumerOptions, ProduceRequest, Producer, ProducerEvent,
    ProducerOptions, RecordPersistence, StartOffset, TopicSpec, Topics,
};
use gapless_kafka::record::names;
use gapless_rpc::{CallError, CallOptions, Retry};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until_some};
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(crate::AT_A_TIME)
        .scenario("another_version_is_refused", another_version_is_refused)
        .with_choices("any_bytes_are_counted", any_bytes_are_counted)
}

const PRESENCE: &str = "test.presence";
const INBOX: &str = "test.inbox.there";
const BOTH_VERSIONS: [&str; 2] = ["version 2 of the protocol", "speaks version 1"];

#[derive(Debug, Default)]
struct ForeignRecords {
    key: Option<Vec<u8>>,
    headers: Vec<(String, Vec<u8>)>,
    payload: Option<Vec<u8>>,
}

impl ForeignRecords {
    fn with(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

fn connection(broker: &KafkaBroker) -> BrokerConnection {
    BrokerConnection::new(&broker.address(), "gapless-test")
}

fn make_inbox(broker: &KafkaBroker, name: &str) {
    let topics = Topics::connect(&connection(broker), PATIENCE).unwrap();
    topics.ensure(&TopicSpec::inbox(name, Duration::from_secs(3_600), Compression::None), PATIENCE).unwrap();
}

fn send(producer: &Producer, topic: &str, records: &[ForeignRecords]) {
    for ForeignRecords { key, headers, payload } in records {
        let headers: Vec<(&str, &[u8])> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let (key, payload) = (key.as_deref(), payload.as_deref());
        producer.send(&ProduceRequest { topic, key, payload, headers: &headers }, 0).unwrap();
    }
    for _ in records {
        let delivery = until_some("a report on a record", || match producer.take() {
            Some(ProducerEvent::Delivery(delivery)) => Some(delivery),
            _ => None,
        });
        assert_eq!(delivery.persistence, RecordPersistence::Persisted, "{delivery:?}");
    }
}

fn read(broker: &KafkaBroker, topic: &str, name: &str, value: &str) -> String {
    let reader = Consumer::open(&connection(broker), &ConsumerOptions::new(topic, StartOffset::Beginning)).unwrap();
    until_some("the record", || {
        let Some(ConsumerEvent::Record(record)) = reader.take() else { return None };
        let headers = record.headers().unwrap_or_default();
        let is_meant = headers.contains(&(name.as_bytes(), Some(value.as_bytes())));
        let headers = headers.iter().map(|(name, value)| {
            format!("{}: {}\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value.unwrap_or_default()))
        });
        let payload = String::from_utf8_lossy(record.payload().unwrap_or_default()).into_owned();
        is_meant.then(|| headers.collect::<String>() + &payload)
    })
}

fn lease_of_future(protocol: u16) -> ForeignRecords {
    let json = r#"{"protocol": PROTOCOL, "incarnation": "00c0ffee00c0ffePROTOCOL", "mark": {"offset": 0, "time_ms": 1764000000000},
        "machine": "m1", "lease_ms": 3600000, "is_stopping": false,
        "routes": [{"route": "work/future",
            "request": {"name": "Work", "version": 1, "fingerprint": "00000000000000aa", "encoding": "postcard"},
            "reply": {"name": "Bytes", "version": 1, "fingerprint": "00000000000000bb", "encoding": "postcard"},
            "instances": [{"identity": "0000000000000007", "name": "future.1", "workers": 4, "is_open": true}]}]}"#;
    let payload = json.replace("PROTOCOL", &protocol.to_string()).into_bytes();
    let record = ForeignRecords { key: Some(b"future".to_vec()), payload: Some(payload), ..ForeignRecords::default() };
    record
        .with(names::PROTOCOL, protocol.to_string())
        .with(names::KIND, "lease")
        .with(names::FROM, format!("future@00c0ffee00c0ffe{protocol}"))
}

fn another_version_is_refused() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    make_inbox(&broker, "test.inbox.future");
    make_inbox(&broker, "test.reply.program");
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _one = there.instance("one");
    let bridge = here.start(&BridgePlan { lease_time: "300s", ..here.plan(broker.address(), "", ALL) });
    let other = there.bridge(&broker, ALL, "");
    here.until_answered_by("one");
    let producer = Producer::open(&connection(&broker), &ProducerOptions::default()).unwrap();
    send(&producer, PRESENCE, &[lease_of_future(1)]);
    bridge.until_event("bridge future on m1 has begun");
    let caller = here.domain.caller::<Work, Vec<u8>>("work/future").unwrap();
    let options = CallOptions {
        timeout: Some(Duration::from_secs(600)),
        retry: Retry::Never,
        wait_for_route: Some(PATIENCE),
        ..CallOptions::default()
    };
    let call = std::thread::spawn(move || caller.call_with(Work::Name, &options));
    let request = read(&broker, "test.inbox.future", names::KIND, "request");
    assert!(request.contains("gapless-route: work/future"), "{request}");
    send(&producer, PRESENCE, &[lease_of_future(2)]);
    let told = bridge.until_event("bad_lease: ");
    assert!(told.contains("bridge future") && BOTH_VERSIONS.iter().all(|words| told.contains(words)), "{told}");
    let error = call.join().expect("the call ends").unwrap_err();
    let words = error.to_string();
    assert!(matches!(error, CallError::Unknown { .. }), "{words}");
    assert!(BOTH_VERSIONS.iter().all(|version| words.contains(version)), "{words}");
    send(&producer, PRESENCE, &[lease_of_future(1)]);
    bridge.until_event("bridge future is back");
    let request = ForeignRecords { payload: Some(b"\"Name\"".to_vec()), ..ForeignRecords::default() }
        .with(names::PROTOCOL, "2")
        .with(names::KIND, "request")
        .with(names::CORRELATION, "of-version-2")
        .with(names::ROUTE, ROUTE)
        .with(names::ENCODING, "json")
        .with(names::REPLY_TOPIC, "test.reply.program");
    send(&producer, INBOX, &[request]);
    let reply = read(&broker, "test.reply.program", names::CORRELATION, "of-version-2");
    assert!(reply.contains("gapless-status: ended") && reply.contains("unavailable"), "{reply}");
    assert!(BOTH_VERSIONS.iter().all(|version| reply.contains(version)), "{reply}");
    here.until_answered_by("one");
    let told = other.stop();
    let counted = told.iter().rfind(|event| event.starts_with("ignored: ")).expect("they are counted");
    assert!(counted.contains("1 of another version"), "{counted}");
}

fn value(random: &mut Random) -> Vec<u8> {
    const VALUES: [&str; 26] = [
        "request",
        "reply",
        "cancel",
        "mark",
        "ping",
        "pong",
        "discarded",
        "lease",
        "0",
        "1",
        "2",
        "65536",
        "18446744073709551615",
        "-1",
        "00c0ffee00c0ffee",
        "nobody@00c0ffee00c0ffee",
        "here@00c0ffee00c0ffee",
        ROUTE,
        "work/../do",
        "test.inbox.here",
        "test.reply.nobody",
        "0/2/2000",
        "1/2/2000",
        "4294967295/4294967295/18446744073709551615",
        "json",
        "ended",
    ];
    if random.happens(700) {
        return random.pick(&VALUES).as_bytes().to_vec();
    }
    let length = if random.happens(10) { 70_000 } else { random.below(300) };
    (0..length).map(|_| random.number() as u8).collect()
}

/// Never a mark of this bridge's name, which would replace it.
fn any_record(random: &mut Random) -> ForeignRecords {
    let mut record = ForeignRecords::default();
    if random.happens(800) {
        record = record.with(names::KIND, value(random));
    }
    if random.happens(600) {
        record = record.with(names::CORRELATION, value(random));
    }
    for _ in 0..random.below(8) {
        let name = if random.happens(900) { random.pick(&names::ALL) } else { "h-any" };
        record = record.with(name, value(random));
    }
    record.key = random.happens(500).then(|| value(random));
    record.payload = random.happens(900).then(|| value(random));
    record
}

fn any_lease(random: &mut Random) -> ForeignRecords {
    let mut record = any_record(random);
    let key = random.pick(&["here", "there", "nobody", "no name", ""]);
    // Kafka itself refuses records without a key.
    record.key = Some(key.as_bytes().to_vec());
    // A tombstone of a known bridge would stop it.
    record.payload = Some(b"\xFF".iter().copied().chain(value(random)).collect());
    if key == "nobody" {
        let mut json = lease_of_future(1).payload.unwrap_or_default();
        for _ in 0..random.below(4) {
            let at = random.below(json.len() as u64) as usize;
            json[at] = random.number() as u8;
        }
        record.payload = random.happens(900).then_some(json);
    }
    record
}

fn any_bytes_are_counted(random: &mut Random) {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut one = there.instance("one");
    let mut notes = NotedCalls::of(&mut [&mut one]);
    let (bridge, other) = (here.bridge(&broker, "", "\"work/do\""), there.bridge(&broker, ALL, ""));
    here.until_answered_by("one");
    let traffic = Traffic::start(&here);
    let producer = Producer::open(&connection(&broker), &ProducerOptions::default()).unwrap();
    for _ in 0..rounds(50, 10) {
        let records: Vec<_> = (0..200).map(|_| any_record(random)).collect();
        send(&producer, INBOX, &records);
        let leases: Vec<_> = (0..100).map(|_| any_lease(random)).collect();
        send(&producer, PRESENCE, &leases);
    }
    here.until_answered_by("one");
    traffic.wait_for_calls(50);
    let kinds = traffic.end(&mut notes);
    assert!(kinds["reply"] >= 20, "{kinds:?}");
    for bridge in [bridge, other] {
        let told = bridge.stop();
        let counted = told.iter().rfind(|event| event.starts_with("ignored: ")).expect("they are counted");
        println!("{counted}");
        assert!(counted.contains("that break the protocol"), "{counted}");
    }
}
