//! Errors that no real broker can be asked for, by librdkafka's mock cluster.

#![allow(unsafe_code, reason = "a record that only foreign programs send")]

use super::{
    BrokerConnection, BrokerErrorKind, Consumer, ConsumerEvent, ConsumerOptions, DeliveryReport, ProduceRequest,
    Producer, ProducerEvent, ProducerOptions, RecordPersistence, StartOffset,
};
use gapless_testkit::wait::{PATIENCE, until_some};
use rdkafka::bindings;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, DefaultProducerContext, Producer as _};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use std::ffi::CStr;
use std::time::Duration;

fn cluster() -> (MockCluster<'static, DefaultProducerContext>, BrokerConnection) {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("a", 1, 1).unwrap();
    let connection = BrokerConnection::new(&cluster.bootstrap_servers(), "test");
    (cluster, connection)
}

fn producer(connection: &BrokerConnection, delivery_timeout: Duration) -> Producer {
    let options = ProducerOptions { delivery_timeout, is_idempotent: false, ..ProducerOptions::default() };
    Producer::open(connection, &options).unwrap()
}

fn deliver(producer: &Producer) -> DeliveryReport {
    producer.send(&ProduceRequest { topic: "a", key: None, payload: Some(b"1"), headers: &[] }, 1).unwrap();
    until_some("a report on a record", || match producer.take() {
        Some(ProducerEvent::Delivery(delivery)) => Some(delivery),
        _ => None,
    })
}

#[test]
fn refusals_say_not_persisted() {
    let (cluster, connection) = cluster();
    let producer = producer(&connection, Duration::from_secs(20));
    for (error, kind) in [
        (RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, BrokerErrorKind::TooLarge),
        (RDKafkaRespErr::RD_KAFKA_RESP_ERR_POLICY_VIOLATION, BrokerErrorKind::NotAuthorized),
    ] {
        cluster.request_errors(RDKafkaApiKey::Produce, &[error]);
        let refused = deliver(&producer);
        assert_eq!(refused.persistence, RecordPersistence::NotPersisted, "{refused:?}");
        assert_eq!(refused.error.expect("it was refused").kind, kind);
        assert_eq!((refused.offset, refused.append_time_ms), (None, None));
    }
    let accepted = deliver(&producer);
    assert_eq!((accepted.persistence, accepted.error), (RecordPersistence::Persisted, None));
}

#[test]
fn an_earlier_attempt_is_known() {
    let (cluster, connection) = cluster();
    let producer = producer(&connection, Duration::from_secs(20));
    let refusal = RDKafkaRespErr::RD_KAFKA_RESP_ERR_POLICY_VIOLATION;
    until_some("a refusal of the first attempt", || {
        cluster.request_errors(RDKafkaApiKey::Produce, &[refusal]);
        Some(deliver(&producer)).filter(|refused| refused.is_first_attempt)
    });
    let lost_lead = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
    cluster.request_errors(RDKafkaApiKey::Produce, &[lost_lead, refusal]);
    let refused = deliver(&producer);
    assert_eq!(
        (refused.persistence, refused.is_first_attempt),
        (RecordPersistence::NotPersisted, false),
        "{refused:?}"
    );
}

#[test]
fn passing_errors_are_retried() {
    let (cluster, connection) = cluster();
    let errors = [
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__TRANSPORT,
    ];
    cluster.request_errors(RDKafkaApiKey::Produce, &errors);
    let accepted = deliver(&producer(&connection, Duration::from_secs(60)));
    assert_eq!((accepted.persistence, accepted.error), (RecordPersistence::Persisted, None));
}

#[test]
fn a_cut_request_is_possibly_persisted() {
    let (cluster, connection) = cluster();
    let connection = connection.with("message.send.max.retries", "0");
    let producer = producer(&connection, Duration::from_secs(20));
    cluster.request_errors(RDKafkaApiKey::Produce, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR__TRANSPORT]);
    let lost = deliver(&producer);
    assert_eq!(lost.persistence, RecordPersistence::PossiblyPersisted, "{lost:?}");
    assert_eq!(lost.error.expect("no answer came").kind, BrokerErrorKind::Unreachable);
}

#[test]
fn withdrawn_records_leave_no_gap() {
    let (cluster, connection) = cluster();
    let producer = Producer::open(&connection, &ProducerOptions::default()).unwrap();
    assert_eq!(deliver(&producer).error, None);
    cluster.broker_down(1).unwrap();
    let record = ProduceRequest { topic: "a", key: None, payload: Some(b"1"), headers: &[] };
    (2..5).for_each(|token| producer.send(&record, token).unwrap());
    producer.withdraw();
    let mut withdrawn = Vec::new();
    until_some("reports on all", || {
        while let Some(event) = producer.take() {
            if let ProducerEvent::Delivery(delivery) = event {
                assert_eq!(delivery.error.map(|error| error.kind), Some(BrokerErrorKind::Discarded));
                withdrawn.push(delivery.token);
            }
        }
        (withdrawn.len() == 3).then_some(())
    });
    cluster.broker_up(1).unwrap();
    until_some("a record that is appended", || match deliver(&producer).error {
        None => Some(()),
        Some(error) => {
            assert_eq!(error.kind, BrokerErrorKind::Discarded, "{error:?}");
            None
        }
    });
    for _ in 0..3 {
        assert_eq!(deliver(&producer).error, None);
    }
}

#[test]
fn a_consumer_reads_on_after_an_error() {
    let (cluster, connection) = cluster();
    let error = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    cluster.request_errors(RDKafkaApiKey::Fetch, &[error]);
    deliver(&producer(&connection, Duration::from_secs(20)));
    let consumer = Consumer::open(&connection, &ConsumerOptions::new("a", StartOffset::Beginning)).unwrap();
    let mut reported = None;
    let has_none = until_some("a record", || match consumer.take()? {
        ConsumerEvent::Record(record) => Some(record.headers().is_some_and(|headers| headers.is_empty())),
        ConsumerEvent::Trouble(error) => {
            reported = Some(error);
            None
        }
        ConsumerEvent::End => None,
    });
    assert!(has_none, "a record without headers has some");
    assert_eq!(reported.expect("the error is reported").kind, BrokerErrorKind::NotAuthorized);
}

/// Safe functions do not send such header names.
fn send_header(connection: &BrokerConnection, name: &CStr) {
    let producer: BaseProducer = connection.config(&[], &[]).unwrap().create().unwrap();
    let value = b"1";
    // SAFETY: a list of arguments as librdkafka describes it, each tag with its values, and all memory lives until it returns.
    let result = unsafe {
        bindings::rd_kafka_producev(
            producer.client().native_ptr(),
            bindings::rd_kafka_vtype_t::RD_KAFKA_VTYPE_TOPIC,
            c"a".as_ptr(),
            bindings::rd_kafka_vtype_t::RD_KAFKA_VTYPE_HEADER,
            name.as_ptr(),
            value.as_ptr(),
            value.len().cast_signed(),
            bindings::rd_kafka_vtype_t::RD_KAFKA_VTYPE_END,
        )
    };
    assert_eq!(result, RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR);
    producer.flush(PATIENCE).unwrap();
}

#[test]
fn names_of_headers_may_be_any_bytes() {
    let (_cluster, connection) = cluster();
    send_header(&connection, c"\xFF\xFE");
    send_header(&connection, c"");
    let consumer = Consumer::open(&connection, &ConsumerOptions::new("a", StartOffset::Beginning)).unwrap();
    for name in [&b"\xFF\xFE"[..], b""] {
        let is_read = until_some("a record", || match consumer.take()? {
            ConsumerEvent::Record(record) => Some(record.headers() == Some(vec![(name, Some(&b"1"[..]))])),
            _ => None,
        });
        assert!(is_read, "{name:?}");
    }
}
