//! Round trips of a bare producer and consumer: the baseline for a call over two hops.

use super::clients::{connection, consumer, make_topic, record, send};
use gapless_kafka::client::{
    BrokerConnection, Consumer, ConsumerEvent, ProduceRequest, Producer, ProducerEvent, ProducerOptions, StartOffset,
};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::random::is_full;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::PATIENCE;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!()).scenario("round_trips_are_measured", round_trips_are_measured)
}

/// Payload bytes, records one at a time, records in flight together.
const SIZES: [(usize, usize, usize); 4] =
    [(72, 2_000, 200_000), (256, 2_000, 200_000), (10_069, 1_000, 40_000), (500_071, 100, 800)];

fn round_trips_are_measured() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let connection = connection(&broker.address());
    println!("| bytes | p50 of one at a time, us | p99, us | pipelined records/s | MB/s |");
    println!("| ---: | ---: | ---: | ---: | ---: |");
    for (bytes, singly, together) in SIZES {
        let share = if is_full() { 1 } else { 10 };
        measure(&connection, bytes, singly / share, together / share);
    }
}

fn measure(connection: &BrokerConnection, bytes: usize, singly: usize, together: usize) {
    let topic = format!("measured.{bytes}");
    make_topic(connection, &topic);
    let producer = Producer::open(connection, &ProducerOptions::default()).unwrap();
    let reader = consumer(connection, &topic, StartOffset::Beginning);
    let (payload, waiter) = (vec![1; bytes], Waiter::new());
    for token in 0..50 {
        send(&producer, &topic, &payload, token);
        assert_eq!(record(&reader).payload.map(|payload| payload.len()), Some(bytes));
    }
    while producer.take().is_some() {}
    let mut times = Vec::with_capacity(singly);
    for token in 0..singly {
        let begun = Instant::now();
        send(&producer, &topic, &payload, token);
        waiter.record(&reader);
        times.push(begun.elapsed());
        while producer.take().is_some() {}
    }
    times.sort();
    let (sent, begun, mut read) = (&mut 0, Instant::now(), 0);
    while read < together {
        let record = ProduceRequest { topic: &topic, key: None, payload: Some(&payload), headers: &[] };
        while *sent < together && *sent < read + window(bytes) && producer.send(&record, *sent).is_ok() {
            *sent += 1;
        }
        waiter.record(&reader);
        read += 1;
        while let Some(event) = producer.take() {
            assert!(matches!(&event, ProducerEvent::Delivery(delivery) if delivery.error.is_none()), "{event:?}");
        }
    }
    let rate = together as f64 / begun.elapsed().as_secs_f64();
    let (p50, p99) = (times[singly / 2], times[singly * 99 / 100]);
    let megabytes = rate * bytes as f64 / 1e6;
    println!("| {bytes} | {} | {} | {rate:.0} | {megabytes:.0} |", p50.as_micros(), p99.as_micros());
}

fn window(bytes: usize) -> usize {
    (16_000_000 / bytes).clamp(16, 20_000)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

struct Waiter(Waker);

impl Waiter {
    fn new() -> Self {
        Self(Waker::from(Arc::new(Unpark(std::thread::current()))))
    }

    fn record(&self, consumer: &Consumer) {
        let begun = Instant::now();
        loop {
            match consumer.poll_take(&mut Context::from_waker(&self.0)) {
                Poll::Ready(ConsumerEvent::Record(_)) => return,
                Poll::Ready(ConsumerEvent::Trouble(error)) => panic!("{error}"),
                Poll::Ready(ConsumerEvent::End) => (),
                Poll::Pending => std::thread::park_timeout(Duration::from_secs(1)),
            }
            assert!(begun.elapsed() < PATIENCE, "no record came");
        }
    }
}
