use super::clients::{connection, consumer, consumer_trouble, delivery, make_topic, producer, producer_trouble, send};
use gapless_kafka::client::{
    BrokerConnection, BrokerErrorKind, ConsumerEvent, ProduceRequest, Producer, ProducerOptions, RecordPersistence,
    StartOffset, TopicSpec, Topics,
};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until_some};
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("sizes_and_topics", sizes_and_topics)
        .scenario("passwords_and_permissions", passwords_and_permissions)
}

fn sizes_and_topics() {
    let Some(broker) = KafkaBroker::start(&["--message-max-bytes", "200000"]) else { return };
    let connection = connection(&broker.address());
    make_topic(&connection, "a");
    let options = ProducerOptions { record_bytes_max: 300_000, ..ProducerOptions::default() };
    let own = Producer::open(&connection, &options).unwrap();
    let sent = |bytes: usize| ProduceRequest { topic: "a", key: None, payload: Some(&ZEROS[..bytes]), headers: &[] };
    let refused = own.send(&sent(400_000), 1).unwrap_err();
    assert_eq!(refused.kind, BrokerErrorKind::TooLarge, "{refused}");
    own.send(&sent(250_000), 2).unwrap();
    let refused = delivery(&own);
    assert_eq!((refused.token, refused.persistence), (2, RecordPersistence::NotPersisted));
    assert_eq!(refused.error.expect("it is refused").kind, BrokerErrorKind::TooLarge);
    own.send(&sent(190_000), 3).unwrap();
    assert_eq!((delivery(&own).offset, own.pending()), (Some(0), 0));

    send(&own, "nowhere", b"", 4);
    let unknown = delivery(&own);
    assert_eq!((unknown.token, unknown.persistence), (4, RecordPersistence::NotPersisted));
    assert_eq!(unknown.error.expect("there is no such topic").kind, BrokerErrorKind::UnknownTopic);
    let told = consumer_trouble(&consumer(&connection, "nowhere", StartOffset::Beginning));
    assert_eq!(told.kind, BrokerErrorKind::UnknownTopic, "{told}");
    let told = consumer_trouble(&consumer(&connection, "a", StartOffset::Offset(77)));
    assert_eq!(told.kind, BrokerErrorKind::OffsetOutOfRange, "{told}");

    let options = ProducerOptions { queue_bytes_max: 1_024, linger: Duration::from_secs(20), ..options };
    let small = Producer::open(&connection, &options).unwrap();
    let full = until_some("its queue is full", || small.send(&sent(600), 5).err());
    assert_eq!(full.kind, BrokerErrorKind::QueueFull, "{full}");
    small.discard();
    let withdrawn = delivery(&small);
    assert_eq!(withdrawn.error.expect("it was withdrawn").kind, BrokerErrorKind::Discarded);
    assert_eq!(withdrawn.persistence, RecordPersistence::NotPersisted);
}

static ZEROS: [u8; 400_000] = [0; 400_000];

fn user(broker: &KafkaBroker, name: &str, password: &str) -> BrokerConnection {
    connection(&broker.address())
        .with("security.protocol", "SASL_PLAINTEXT")
        .with("sasl.mechanism", "PLAIN")
        .with("sasl.username", name)
        .with("sasl.password", password)
}

fn passwords_and_permissions() {
    let arguments = [
        ["--sasl", "root:secret-1"],
        ["--sasl", "app:secret-2"],
        ["--sasl", "guest:secret-3"],
        ["--allow", "app:WRITE:a."],
        ["--allow", "app:READ:a."],
        ["--sasl", "viewer:secret-4"],
        ["--allow", "viewer:DESCRIBE:other"],
    ];
    let arguments = [&["--acl"][..], &arguments.concat()].concat();
    let Some(broker) = KafkaBroker::start(&arguments) else { return };
    let root = user(&broker, "root", "secret-1");
    make_topic(&root, "a.inbox.b");
    make_topic(&root, "other");

    let wrong = user(&broker, "root", "secret-0");
    let refused = Topics::connect(&wrong, PATIENCE).err().expect("the password is wrong");
    assert_eq!(refused.kind, BrokerErrorKind::Authentication, "{refused}");
    assert!(!refused.to_string().contains("secret-0"), "{refused}");
    println!("a wrong password: {refused}");
    let stranger = producer(&wrong);
    send(&stranger, "a.inbox.b", b"", 1);
    assert_eq!(producer_trouble(&stranger).kind, BrokerErrorKind::Authentication);
    let told = consumer_trouble(&consumer(&wrong, "a.inbox.b", StartOffset::Beginning));
    assert_eq!(told.kind, BrokerErrorKind::Authentication, "{told}");

    let app = user(&broker, "app", "secret-2");
    let permitted = producer(&app);
    send(&permitted, "a.inbox.b", b"1", 2);
    assert_eq!(delivery(&permitted).persistence, RecordPersistence::Persisted);
    let reader = consumer(&app, "a.inbox.b", StartOffset::Beginning);
    let first = until_some("an event", || {
        Some(match reader.take()? {
            ConsumerEvent::Record(record) => Ok(record.offset()),
            ConsumerEvent::Trouble(error) => Err(error),
            ConsumerEvent::End => panic!("the end was not asked for"),
        })
    });
    assert_eq!(first, Ok(0));
    let topics = Topics::connect(&app, PATIENCE).unwrap();
    let refused = topics.ensure(&TopicSpec::compacted("a.presence"), PATIENCE).unwrap_err();
    assert_eq!(refused.kind, BrokerErrorKind::NotAuthorized, "{refused}");

    for connection in [&app, &user(&broker, "guest", "secret-3")] {
        let refused = producer(connection);
        send(&refused, "other", b"", 3);
        let delivery = delivery(&refused);
        assert_eq!(delivery.persistence, RecordPersistence::NotPersisted);
        let error = delivery.error.expect("it has no right to that topic");
        assert_eq!(error.kind, BrokerErrorKind::NotAuthorized, "{error}");
        let told = Topics::connect(connection, PATIENCE).unwrap().offsets("other", PATIENCE).unwrap_err();
        assert_eq!(told.kind, BrokerErrorKind::NotAuthorized, "{told}");
    }
    let told = consumer_trouble(&consumer(&user(&broker, "viewer", "secret-4"), "other", StartOffset::Beginning));
    assert_eq!(told.kind, BrokerErrorKind::NotAuthorized, "{told}");
}
