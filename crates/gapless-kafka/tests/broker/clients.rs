use gapless_kafka::client::{
    BrokerConnection, BrokerError, Compression, Consumer, ConsumerEvent, ConsumerOptions, DeliveryReport,
    ProduceRequest, Producer, ProducerEvent, ProducerOptions, RecordPersistence, StartOffset, TopicSpec, Topics,
};
use gapless_testkit::wait::{PATIENCE, until_some};
use std::time::Duration;

#[derive(Debug, PartialEq, Eq)]
pub struct OwnedRecord {
    pub offset: i64,
    pub append_time_ms: Option<i64>,
    pub key: Option<Vec<u8>>,
    pub payload: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

pub fn connection(brokers: &str) -> BrokerConnection {
    BrokerConnection::new(brokers, "gapless-test")
}

/// Waits also for a broker that has just started, on a busy machine.
pub fn producer(connection: &BrokerConnection) -> Producer {
    producer_within(connection, Duration::from_secs(60))
}

pub fn producer_within(connection: &BrokerConnection, delivery_timeout: Duration) -> Producer {
    Producer::open(connection, &ProducerOptions { delivery_timeout, ..ProducerOptions::default() }).unwrap()
}

pub fn make_topic(connection: &BrokerConnection, name: &str) -> Topics {
    let topics = Topics::connect(connection, PATIENCE).unwrap();
    topics.ensure(&TopicSpec::inbox(name, Duration::from_secs(3_600), Compression::None), PATIENCE).unwrap();
    topics
}

pub fn send(producer: &Producer, topic: &str, payload: &[u8], token: usize) {
    producer.send(&ProduceRequest { topic, key: None, payload: Some(payload), headers: &[] }, token).unwrap();
}

/// Troubles before it are dropped.
pub fn delivery(producer: &Producer) -> DeliveryReport {
    until_some("a report on a record", || match producer.take() {
        Some(ProducerEvent::Delivery(delivery)) => Some(delivery),
        _ => None,
    })
}

/// Sends the record until the broker has it.
pub fn deliver(producer: &Producer, topic: &str, payload: &[u8], token: usize) -> DeliveryReport {
    until_some("a record is acknowledged", || {
        send(producer, topic, payload, token);
        Some(delivery(producer)).filter(|delivery| delivery.persistence == RecordPersistence::Persisted)
    })
}

/// Reports on records fail the test.
pub fn producer_trouble(producer: &Producer) -> BrokerError {
    until_some("a trouble of the producer", || match producer.take()? {
        ProducerEvent::Trouble(error) => Some(error),
        ProducerEvent::Delivery(delivery) => panic!("a report: {delivery:?}"),
    })
}

pub fn consumer(connection: &BrokerConnection, topic: &str, start: StartOffset) -> Consumer {
    Consumer::open(connection, &ConsumerOptions::new(topic, start)).unwrap()
}

/// Troubles before it are dropped.
pub fn record(consumer: &Consumer) -> OwnedRecord {
    until_some("a record", || match consumer.take() {
        Some(ConsumerEvent::Record(record)) => {
            let headers = record.headers().expect("headers decode").into_iter();
            Some(OwnedRecord {
                offset: record.offset(),
                append_time_ms: record.append_time_ms(),
                key: record.key().map(<[u8]>::to_vec),
                payload: record.payload().map(<[u8]>::to_vec),
                headers: headers.map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec))).collect(),
            })
        }
        _ => None,
    })
}

/// Records fail the test.
pub fn consumer_trouble(consumer: &Consumer) -> BrokerError {
    until_some("a trouble of the consumer", || match consumer.take()? {
        ConsumerEvent::Trouble(error) => Some(error),
        ConsumerEvent::Record(record) => panic!("a record at {}", record.offset()),
        ConsumerEvent::End => None,
    })
}
