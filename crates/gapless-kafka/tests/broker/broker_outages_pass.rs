use super::clients::{connection, consumer, deliver, delivery, make_topic, producer, producer_within, record, send};
use gapless_kafka::client::{
    BrokerErrorKind, ConsumerEvent, DeliveryReport, Producer, ProducerEvent, ProducerOptions, RecordPersistence,
    StartOffset, Topics,
};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::random::{Random, is_full};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until, until_some};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("no_broker_is_reached", no_broker_is_reached)
        .scenario("a_killed_broker_comes_back", a_killed_broker_comes_back)
        .scenario("a_stopped_broker_is_noticed", a_stopped_broker_is_noticed)
        .with_choices("reports_are_true_after_kills", reports_are_true_after_kills)
}

fn no_broker_is_reached() {
    let nowhere = connection("127.0.0.1:1");
    let begun = Instant::now();
    let error = Topics::connect(&nowhere, Duration::from_secs(2)).err().expect("nobody listens there");
    assert_eq!(error.kind, BrokerErrorKind::Unreachable, "{error}");
    assert!(begun.elapsed() < PATIENCE, "{error}");
    println!("no broker: {error}");
    let producer = producer_within(&nowhere, Duration::from_secs(3));
    send(&producer, "a", b"", 1);
    let (mut is_told, mut lost) = (false, None);
    until_some("a trouble and a report", || {
        match producer.take() {
            Some(ProducerEvent::Trouble(error)) => is_told |= error.kind == BrokerErrorKind::Unreachable,
            Some(ProducerEvent::Delivery(delivery)) => lost = Some(delivery),
            None => (),
        }
        (is_told && lost.is_some()).then_some(())
    });
    let lost = lost.expect("it was waited for");
    assert_eq!(lost.persistence, RecordPersistence::NotPersisted);
    assert_eq!(lost.error.expect("it was not sent").kind, BrokerErrorKind::TimedOut);
}

fn reports(producer: &Producer, count: usize) -> Vec<DeliveryReport> {
    (0..count).map(|_| delivery(producer)).collect()
}

fn tokens_with(deliveries: &[DeliveryReport], persistence: RecordPersistence) -> BTreeSet<usize> {
    let found = deliveries.iter().filter(|delivery| delivery.persistence == persistence);
    found.map(|delivery| delivery.token).collect()
}

fn a_killed_broker_comes_back() {
    let Some(mut broker) = KafkaBroker::start(&[]) else { return };
    let connection = connection(&broker.address());
    make_topic(&connection, "a");
    let first = producer(&connection);
    send(&first, "a", &0_usize.to_le_bytes(), 0);
    assert_eq!(delivery(&first).offset, Some(0));
    let reader = consumer(&connection, "a", StartOffset::Beginning);
    assert_eq!(record(&reader).offset, 0);
    drop(first);
    // Gives up soon while the broker is down, and is connected before.
    let delivery_timeout = Duration::from_secs(3);
    let options = ProducerOptions { delivery_timeout, batch_bytes_max: 500, ..ProducerOptions::default() };
    let producer = Producer::open(&connection, &options).unwrap();
    deliver(&producer, "a", &0_usize.to_le_bytes(), 0);

    broker.process().stop();
    for number in 1..=2_000_usize {
        send(&producer, "a", &number.to_le_bytes(), number);
    }
    until("the first batch is on its way", || has_unread_bytes(&broker.address()));
    broker.kill();
    let lost = reports(&producer, 2_000);
    let (possibly, not) =
        (tokens_with(&lost, RecordPersistence::PossiblyPersisted), tokens_with(&lost, RecordPersistence::NotPersisted));
    println!("killed: {} possibly persisted, {} not persisted", possibly.len(), not.len());
    assert!(!possibly.is_empty() && !not.is_empty(), "{} and {}", possibly.len(), not.len());
    assert_eq!(possibly.len() + not.len(), 2_000);

    broker.restart();
    let begun = Instant::now();
    let back = deliver(&producer, "a", &usize::MAX.to_le_bytes(), usize::MAX);
    println!("the producer is back after {} ms", begun.elapsed().as_millis());
    assert!(back.offset > Some(0), "{back:?}");
    let mut read = BTreeSet::new();
    loop {
        let payload = record(&reader).payload.expect("a payload");
        match usize::from_le_bytes(payload.try_into().expect("eight bytes")) {
            usize::MAX => break,
            number => drop(read.insert(number)),
        }
    }
    println!("the consumer is back after {} ms; it read {} of them", begun.elapsed().as_millis(), read.len());
    let surprises: Vec<_> = read.intersection(&not).collect();
    assert!(surprises.is_empty(), "reported as not persisted, and read: {surprises:?}");
}

fn has_unread_bytes(address: &str) -> bool {
    let (host, port) = address.split_once(':').expect("host and port");
    let host: Ipv4Addr = host.parse().expect("an address");
    let (host, port) = (u32::from_ne_bytes(host.octets()), port.parse::<u16>().expect("a port"));
    // The kernel's form; an IPv4 address is the end of an IPv6 one.
    let local = format!("{host:08X}:{port:04X}");
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
        let table = std::fs::read_to_string(table).unwrap_or_default();
        table.lines().skip(1).any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let [Some(at), Some(_peer), Some(state), Some(queues)] = std::array::from_fn(|_| fields.next()) else {
                return false;
            };
            let is_connected = state == "01";
            is_connected
                && at.ends_with(&local)
                && queues.split_once(':').is_some_and(|(_, unread)| unread != "00000000")
        })
    })
}

fn a_stopped_broker_is_noticed() {
    let Some(mut broker) = KafkaBroker::start(&[]) else { return };
    let mut connection = connection(&broker.address());
    connection.request_timeout = Duration::from_secs(1);
    make_topic(&connection, "a");
    let delivery_timeout = Duration::from_secs(4);
    let options = ProducerOptions { delivery_timeout, ..ProducerOptions::default() };
    let producer = Producer::open(&connection, &options).unwrap();
    let reader = consumer(&connection, "a", StartOffset::Beginning);
    deliver(&producer, "a", b"1", 1);
    assert_eq!(record(&reader).offset, 0);

    broker.process().stop();
    let begun = Instant::now();
    send(&producer, "a", b"2", 2);
    let lost = delivery(&producer);
    let told_ms = begun.elapsed().as_millis();
    println!("a record to a stopped broker is reported after {told_ms} ms: {lost:?}");
    assert_eq!((lost.token, lost.persistence), (2, RecordPersistence::PossiblyPersisted));
    assert_eq!(lost.error.expect("no answer came").kind, BrokerErrorKind::TimedOut);
    let told = until_some("a trouble of the consumer", || match reader.take()? {
        ConsumerEvent::Trouble(error) => Some(error),
        _ => None,
    });
    println!("the consumer says after {} ms: {told}", begun.elapsed().as_millis());

    let begun = Instant::now();
    drop(consumer(&connection, "a", StartOffset::Beginning));
    drop(super::clients::producer(&connection));
    println!("a producer and a consumer of a stopped broker end after {} ms", begun.elapsed().as_millis());
    assert!(begun.elapsed() < PATIENCE / 4, "{:?}", begun.elapsed());

    broker.process().signal(Signal::CONT);
    deliver(&producer, "a", b"3", 3);
    let mut was_appended = false;
    until_some("the last record", || {
        let payload = record(&reader).payload;
        was_appended |= payload.as_deref() == Some(b"2");
        (payload.as_deref() == Some(b"3")).then_some(())
    });
    println!("the record that was possibly persisted was appended: {was_appended}");
}

/// Records reported as persisted are in the log, once and in order; those reported as not persisted are not.
fn reports_are_true_after_kills(random: &mut Random) {
    const IN_FLIGHT_MAX: usize = 500;
    let Some(mut broker) = KafkaBroker::start(&[]) else { return };
    let connection = connection(&broker.address());
    make_topic(&connection, "a");
    let options = ProducerOptions { delivery_timeout: Duration::from_secs(1), ..ProducerOptions::default() };
    let producer = Producer::open(&connection, &options).unwrap();
    let (mut sent, mut deliveries) = (0_usize, Vec::new());
    let mut send_until = |reported: usize, mut persisted: usize| {
        until_some("records are reported", || {
            while sent < deliveries.len() + IN_FLIGHT_MAX {
                send(&producer, "a", &sent.to_le_bytes(), sent);
                sent += 1;
            }
            while let Some(event) = producer.take() {
                let ProducerEvent::Delivery(delivery) = event else { continue };
                persisted = persisted.saturating_sub(usize::from(delivery.persistence == RecordPersistence::Persisted));
                deliveries.push(delivery);
            }
            (deliveries.len() >= reported && persisted == 0).then_some(deliveries.len())
        })
    };
    for _ in 0..if is_full() { 6 } else { 2 } {
        let before = send_until(0, 1_000);
        let more = usize::try_from(random.below(20_000)).expect("it is small");
        send_until(before + more, 0);
        broker.kill();
        let before = send_until(0, 0);
        send_until(before + IN_FLIGHT_MAX, 0);
        broker.restart();
    }
    send_until(0, 1_000);
    producer.flush(PATIENCE).unwrap();
    while let Some(event) = producer.take() {
        if let ProducerEvent::Delivery(delivery) = event {
            deliveries.push(delivery);
        }
    }
    assert_eq!(deliveries.len(), sent);
    let [not, possibly, persisted] =
        [RecordPersistence::NotPersisted, RecordPersistence::PossiblyPersisted, RecordPersistence::Persisted]
            .map(|of_them| tokens_with(&deliveries, of_them));
    let last = *persisted.last().expect("some were persisted");
    let (reader, mut read) = (consumer(&connection, "a", StartOffset::Beginning), Vec::new());
    while read.last().is_none_or(|number| *number < last) {
        let payload = record(&reader).payload.expect("a payload");
        read.push(usize::from_le_bytes(payload.try_into().expect("eight bytes")));
    }
    let (not_len, possibly_len, persisted_len) = (not.len(), possibly.len(), persisted.len());
    println!("of {sent}: {persisted_len} persisted, {possibly_len} possibly, {not_len} not; read {}", read.len());
    assert!(read.windows(2).all(|pair| pair[0] < pair[1]), "a record was read twice or out of order");
    let read = BTreeSet::from_iter(read);
    assert_eq!(persisted.difference(&read).next(), None, "persisted, and not read");
    assert_eq!(not.intersection(&read).next(), None, "not persisted, and read");
}
