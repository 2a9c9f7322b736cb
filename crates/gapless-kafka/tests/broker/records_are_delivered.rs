use super::clients::{connection, consumer, consumer_trouble, delivery, make_topic, producer, record, send};
use gapless_kafka::client::{
    BrokerErrorKind, Compression, Consumer, ConsumerEvent, ConsumerOptions, ProduceRequest, Producer, ProducerOptions,
    RecordPersistence, StartOffset, TopicCreation, TopicSpec,
};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until_some};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("records_are_delivered", records_are_delivered)
        .scenario("other_clients_read_and_write", other_clients_read_and_write)
}

/// A plain Java client, whose compression this build of librdkafka may not know.
fn other_clients_read_and_write() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let connection = connection(&broker.address());
    let topics = make_topic(&connection, "a");
    let compact = TopicSpec::inbox("b", Duration::from_secs(600), Compression::Lz4);
    topics.ensure(&compact, PATIENCE).unwrap();
    let options = ProducerOptions { compression: Compression::Lz4, ..ProducerOptions::default() };
    let own = Producer::open(&connection, &options).unwrap();
    for topic in ["a", "b"] {
        for form in ["gzip", "zstd", "lz4", "snappy", "none"] {
            broker.java_client(&["send", topic, form, &format!("{{\"form\":\"{form}\"}}"), "gapless-kind=request"]);
        }
        let headers = [("gapless-kind", &b"reply"[..])];
        own.send(&ProduceRequest { topic, key: None, payload: Some(&[b'x'; 5_000]), headers: &headers }, 0).unwrap();
        assert_eq!(delivery(&own).persistence, RecordPersistence::Persisted);
        let reader = consumer(&connection, topic, StartOffset::Beginning);
        for form in ["gzip", "zstd", "lz4", "snappy", "none"] {
            let read = record(&reader);
            assert_eq!(read.payload, Some(format!("{{\"form\":\"{form}\"}}").into_bytes()));
            assert_eq!(read.headers, [(b"gapless-kind".to_vec(), Some(b"request".to_vec()))]);
            assert!(read.append_time_ms.is_some(), "the broker has set no time");
        }
        assert_eq!(record(&reader).payload.map(|payload| payload.len()), Some(5_000));
        let printed = broker.java_client(&["read", topic, "6"]);
        let last = format!("gapless-kind=reply\n5: {}\n", "x".repeat(5_000));
        assert!(printed.ends_with(&last), "{printed}");
    }

    // A record that this build cannot read is reported again and again.
    let settings = vec![("compression.type".to_owned(), "producer".to_owned())];
    let kept = TopicSpec { name: "c".to_owned(), replicas: None, settings };
    assert_eq!(topics.ensure(&kept, PATIENCE).unwrap(), TopicCreation::New);
    let wanted = TopicSpec { name: "c".to_owned(), ..compact };
    let TopicCreation::Existing(differences) = topics.ensure(&wanted, PATIENCE).unwrap() else { panic!("it is there") };
    let is_found = differences.iter().any(|each| each.to_string() == "compression.type is producer; expected lz4");
    assert!(is_found, "{differences:?}");
    broker.java_client(&["send", "c", "zstd", "1"]);
    broker.java_client(&["send", "c", "none", "2"]);
    let told = consumer_trouble(&consumer(&connection, "c", StartOffset::Offset(0)));
    assert_eq!(told.kind, BrokerErrorKind::Unreadable, "{told}");
    assert_eq!(record(&consumer(&connection, "c", StartOffset::Offset(1))).payload.as_deref(), Some(&b"2"[..]));
}

fn records_are_delivered() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let connection = connection(&broker.address());
    let topics = make_topic(&connection, "a.inbox.b");
    let producer = producer(&connection);
    let before_ms = milliseconds_now();

    let headers = [("gapless-kind", &b"request"[..]), ("gapless-kind", &b""[..]), ("h-\u{e4}", &[0, 255][..])];
    let sent = ProduceRequest { topic: "a.inbox.b", key: Some(b"k\0"), payload: Some(&[0, 1, 255]), headers: &headers };
    producer.send(&sent, usize::MAX).unwrap();
    let first = delivery(&producer);
    assert_eq!((first.token, first.persistence, first.offset), (usize::MAX, RecordPersistence::Persisted, Some(0)));
    assert_eq!(first.error, None);
    let reader = consumer(&connection, "a.inbox.b", StartOffset::Beginning);
    let read = record(&reader);
    assert_eq!(read.offset, 0);
    assert_eq!(read.key.as_deref(), Some(&b"k\0"[..]));
    assert_eq!(read.payload.as_deref(), Some(&[0, 1, 255][..]));
    let expected = headers.map(|(name, value)| (name.as_bytes().to_vec(), Some(value.to_vec())));
    assert_eq!(read.headers, expected);
    assert_eq!(read.append_time_ms, first.append_time_ms);
    let append_time_ms = read.append_time_ms.expect("the topic has append times");
    assert!((before_ms..=milliseconds_now()).contains(&append_time_ms), "{append_time_ms}");

    producer.send(&ProduceRequest { topic: "a.inbox.b", key: Some(b""), payload: None, headers: &[] }, 1).unwrap();
    send(&producer, "a.inbox.b", b"", 2);
    producer.flush(PATIENCE).unwrap();
    assert_eq!(producer.pending(), 0);
    assert_eq!((delivery(&producer).offset, delivery(&producer).offset), (Some(1), Some(2)));
    let (tombstone, empty) = (record(&reader), record(&reader));
    assert_eq!((tombstone.payload, tombstone.key, tombstone.headers), (None, Some(Vec::new()), Vec::new()));
    assert_eq!((empty.payload, empty.key), (Some(Vec::new()), None));

    assert_eq!(record(&consumer(&connection, "a.inbox.b", StartOffset::Offset(2))).offset, 2);
    let options = ConsumerOptions { reports_end: true, ..ConsumerOptions::new("a.inbox.b", StartOffset::End) };
    let latest = Consumer::open(&connection, &options).unwrap();
    assert!(matches!(woken(&latest), ConsumerEvent::End));
    send(&producer, "a.inbox.b", b"later", 3);
    let ConsumerEvent::Record(later) = woken(&latest) else { panic!("a record is next") };
    assert_eq!((later.offset(), later.payload()), (3, Some(&b"later"[..])));
    assert!(matches!(woken(&latest), ConsumerEvent::End));
    latest.restart(StartOffset::Offset(1)).unwrap();
    assert_eq!(record(&latest).offset, 1);
    assert_eq!(topics.offsets("a.inbox.b", PATIENCE).unwrap(), 0..4);

    for number in 0..20_000_usize {
        let payload = number.to_le_bytes();
        until_some("room for a record", || {
            producer
                .send(&ProduceRequest { topic: "a.inbox.b", key: None, payload: Some(&payload), headers: &[] }, number)
                .ok()
        });
    }
    assert_eq!(delivery(&producer).token, 3);
    for number in 0..20_000_usize {
        let delivery = delivery(&producer);
        assert_eq!((delivery.token, delivery.persistence), (number, RecordPersistence::Persisted));
    }
    assert_eq!(record(&reader).offset, 3);
    for number in 0..20_000_usize {
        assert_eq!(record(&reader).payload, Some(number.to_le_bytes().to_vec()));
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn woken(consumer: &Consumer) -> ConsumerEvent<'_> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let begun = Instant::now();
    loop {
        match consumer.poll_take(&mut Context::from_waker(&waker)) {
            Poll::Ready(ConsumerEvent::Trouble(error)) => println!("{error}"),
            Poll::Ready(event) => return event,
            Poll::Pending => std::thread::park_timeout(PATIENCE),
        }
        assert!(begun.elapsed() < PATIENCE, "no one was woken");
    }
}

fn milliseconds_now() -> i64 {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is later than 1970");
    i64::try_from(elapsed.as_millis()).expect("it is soon after 1970")
}
