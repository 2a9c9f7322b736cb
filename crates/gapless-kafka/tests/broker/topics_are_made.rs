use super::clients::{connection, consumer, consumer_trouble, delivery, producer, record, send};
use gapless_kafka::client::{
    BrokerErrorKind, Compression, ProduceRequest, StartOffset, TopicCreation, TopicSpec, Topics,
};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until_some};
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!()).scenario("topics_are_made", topics_are_made)
}

fn topics_are_made() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let connection = connection(&broker.address());
    let topics = Topics::connect(&connection, PATIENCE).unwrap();
    assert_eq!(topics.describe("a.inbox.b", PATIENCE).unwrap(), None);
    let missing = topics.offsets("a.inbox.b", PATIENCE).unwrap_err();
    assert_eq!(missing.kind, BrokerErrorKind::UnknownTopic, "{missing}");

    let inbox = TopicSpec::inbox("a.inbox.b", Duration::from_secs(600), Compression::None);
    assert_eq!(topics.ensure(&inbox, PATIENCE).unwrap(), TopicCreation::New);
    assert_eq!(topics.ensure(&inbox, PATIENCE).unwrap(), TopicCreation::Existing(Vec::new()));
    let found = topics.describe("a.inbox.b", PATIENCE).unwrap().expect("it was made");
    assert_eq!(found.partitions, 1);
    assert_eq!(found.settings["message.timestamp.type"], "LogAppendTime");
    assert_eq!(found.settings["retention.ms"], "600000");
    assert_eq!(topics.offsets("a.inbox.b", PATIENCE).unwrap(), 0..0);

    let presence = TopicSpec::compacted("a.presence");
    assert_eq!(topics.ensure(&presence, PATIENCE).unwrap(), TopicCreation::New);
    let other = TopicSpec { name: "a.presence".to_owned(), ..inbox.clone() };
    let TopicCreation::Existing(differences) = topics.ensure(&other, PATIENCE).unwrap() else { panic!("it is there") };
    assert!(
        differences.iter().any(|each| each.to_string() == "cleanup.policy is compact; expected delete"),
        "{differences:?}"
    );

    let producer = producer(&connection);
    send(&producer, "a.inbox.b", b"1", 1);
    let reader = consumer(&connection, "a.inbox.b", StartOffset::Beginning);
    assert_eq!(record(&reader).payload.as_deref(), Some(&b"1"[..]));
    topics.remove("a.inbox.b", PATIENCE).unwrap();
    let removed = consumer_trouble(&reader);
    assert_eq!(removed.kind, BrokerErrorKind::UnknownTopic, "{removed}");
    let again = topics.remove("a.inbox.b", PATIENCE).unwrap_err();
    assert_eq!(again.kind, BrokerErrorKind::UnknownTopic, "{again}");
    assert_eq!(topics.ensure(&inbox, PATIENCE).unwrap(), TopicCreation::New);
    assert_eq!(delivery(&producer).token, 1);
    let offset = until_some("a record in the next topic", || {
        let sent = ProduceRequest { topic: "a.inbox.b", key: None, payload: Some(b"2"), headers: &[] };
        producer.send(&sent, 2).ok()?;
        delivery(&producer).offset
    });
    reader.restart(StartOffset::Beginning).unwrap();
    let next = record(&reader);
    assert_eq!((next.payload.as_deref(), offset), (Some(&b"2"[..]), 0));

    let settings = vec![("retention.ms".to_owned(), "soon".to_owned())];
    let wrong = TopicSpec { name: "other".to_owned(), settings, ..inbox };
    let refused = topics.ensure(&wrong, PATIENCE).unwrap_err();
    assert_eq!((refused.kind, refused.code.as_str()), (BrokerErrorKind::Configuration, "InvalidConfig"), "{refused}");
}
