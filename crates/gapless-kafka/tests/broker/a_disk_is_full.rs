use super::clients::{connection, delivery, make_topic, producer_within, send};
use gapless_kafka::client::{BrokerErrorKind, RecordPersistence};
use gapless_testkit::folder::SmallDisk;
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::ports::own_loopback;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until_some;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!()).scenario("a_full_disk_is_reported", a_full_disk_is_reported)
}

fn a_full_disk_is_reported() {
    let Some(disk) = SmallDisk::new(8 << 10) else { return };
    let arguments = ["--set", "log.index.size.max.bytes=65536"];
    let Some(mut broker) = KafkaBroker::start_at(own_loopback(), Some(&disk.path), &arguments) else { return };
    let connection = connection(&broker.address());
    make_topic(&connection, "a");
    // The last record is reported as lost only then.
    let producer = producer_within(&connection, Duration::from_secs(20));
    let (payload, mut accepted) = (vec![7; 500_000], 0);
    let lost = until_some("the disk is full", || {
        send(&producer, "a", &payload, accepted);
        let delivery = delivery(&producer);
        accepted += usize::from(delivery.error.is_none());
        delivery.error.is_some().then_some(delivery)
    });
    println!("full after {accepted} records: {lost:?}");
    assert!((8..17).contains(&accepted), "{accepted} records of 500 KB on 8 MiB");
    assert_ne!(lost.persistence, RecordPersistence::Persisted);
    let error = lost.error.expect("it was not acknowledged");
    let kinds = [BrokerErrorKind::Storage, BrokerErrorKind::TimedOut, BrokerErrorKind::Unreachable];
    assert!(kinds.contains(&error.kind), "{error}");

    // Kafka ends where its only disk fails.
    broker.process().wait_end("the broker ends");
    disk.remount("size=64m");
    broker.restart();
    let back = until_some("a record is acknowledged again", || {
        send(&producer, "a", b"small", accepted);
        Some(delivery(&producer)).filter(|delivery| delivery.error.is_none())
    });
    assert!(back.offset >= i64::try_from(accepted).ok(), "{back:?} after {accepted}");
}
