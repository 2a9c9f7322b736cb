//! The floor of calls over Kafka: the same payloads, as many in flight, with a bare producer and consumer at each end
//! of two topics.

use super::failed;
use crate::rpc::payloads::content::{TaggedPayloads, is_whole};
use gapless_agent::block_on::thread_waker;
use gapless_kafka::client::{
    BrokerConnection, BrokerErrorKind, Compression, Consumer, ConsumerEvent, ConsumerOptions, ProduceRequest, Producer,
    ProducerEvent, ProducerOptions, StartOffset, TopicSpec, Topics,
};
use gapless_measure::Result;
use gapless_measure::histogram::LatencyHistogram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

pub const BARE_PAIR: &str = "bare_producer_consumer";
pub const BARE_ROUND_TRIP: &str = "bare_kafka_round_trip";

const PATIENCE: Duration = Duration::from_secs(60);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Limits the cost of a lost wake-up.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// Confirms a payload.
const CAME: &[u8] = &[1];

pub struct BarePair {
    connection: BrokerConnection,
    topics: [String; 2],
    producer: Producer,
    replies: Consumer,
}

#[derive(Debug, Default)]
pub struct BareExchange {
    pub count: u64,
    pub elapsed: Duration,
    /// Round trips with one in flight.
    pub latencies: LatencyHistogram,
    pub wrong: u64,
}

impl BarePair {
    /// Creates the topics of requests and replies, and opens the sending end.
    ///
    /// # Errors
    /// A broker that cannot be reached, or refuses.
    pub fn open(brokers: &str, names: [String; 2]) -> Result<Self> {
        let connection = BrokerConnection::new(brokers, "gapless-bench");
        let topics = Topics::connect(&connection, PATIENCE).map_err(failed)?;
        for name in &names {
            topics
                .ensure(&TopicSpec::inbox(name, Duration::from_secs(3600), Compression::None), PATIENCE)
                .map_err(failed)?;
        }
        let [_, replies] = &names;
        let next = end_of(&topics, replies)?;
        let replies = consumer(&connection, replies, next)?;
        Ok(Self { producer: producer(&connection)?, replies, connection, topics: names })
    }

    /// The payload comes back if there are two `ways`.
    ///
    /// # Errors
    /// A broker that fails; an answer that does not arrive.
    pub fn exchange(&self, (length, ways): (usize, usize), in_flight: u64, count: u64) -> Result<BareExchange> {
        let topics = Topics::connect(&self.connection, PATIENCE).map_err(failed)?;
        let [to, back] = &self.topics;
        let next = end_of(&topics, to)?;
        let (requests, answers) = (consumer(&self.connection, to, next)?, producer(&self.connection)?);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let answering = scope.spawn(|| answer(&requests, (&answers, back), ways, &is_over));
            let exchanged = self.send_and_await((length, ways), in_flight, count);
            is_over.store(true, Ordering::Relaxed);
            let answered = answering.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            answered.and(exchanged)
        })
    }

    fn send_and_await(&self, (length, ways): (usize, usize), in_flight: u64, count: u64) -> Result<BareExchange> {
        let payloads = TaggedPayloads::new(length);
        let mut exchange = BareExchange::default();
        let mut sent = 0;
        let begun = Instant::now();
        let (mut sent_at, mut progress_at) = (begun, begun);
        while exchange.count < count {
            while sent < count && sent - exchange.count < in_flight {
                sent_at = Instant::now();
                send(&self.producer, &self.topics[0], payloads.of(sent))?;
                sent += 1;
            }
            let before = exchange.count;
            take(&self.replies, |reply| {
                let is_right = if ways == 2 { reply == payloads.of(exchange.count) } else { reply == CAME };
                exchange.wrong += u64::from(!is_right);
                exchange.count += 1;
                if in_flight == 1 {
                    exchange.latencies.record(sent_at.elapsed().as_nanos() as u64);
                }
                Ok(())
            })?;
            check_deliveries(&self.producer)?;
            if exchange.count > before {
                progress_at = Instant::now();
            } else if progress_at.elapsed() > PATIENCE {
                return Err(failed("the bare clients have had no answer for a minute"));
            }
        }
        exchange.elapsed = begun.elapsed();
        Ok(exchange)
    }
}

/// A broker knows a new topic a little later than its controller.
fn end_of(topics: &Topics, name: &str) -> Result<i64> {
    let begun = Instant::now();
    loop {
        match topics.offsets(name, PATIENCE) {
            Err(error) if error.kind == BrokerErrorKind::UnknownTopic && begun.elapsed() < PATIENCE => {
                thread::sleep(CHECK_INTERVAL)
            }
            found => return found.map(|offsets| offsets.end).map_err(failed),
        }
    }
}

fn answer(requests: &Consumer, (answers, back): (&Producer, &str), ways: usize, is_over: &AtomicBool) -> Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        take(requests, |request| match (is_whole(request), ways) {
            (false, _) => Err(failed("a bare payload is not whole")),
            (true, 2) => send(answers, back, request),
            (true, _) => send(answers, back, CAME),
        })?;
        check_deliveries(answers)?;
    }
    Ok(())
}

fn take(consumer: &Consumer, mut then: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let waker = thread_waker();
    let mut context = Context::from_waker(&waker);
    let mut is_first = true;
    loop {
        match consumer.poll_take(&mut context) {
            Poll::Ready(ConsumerEvent::Record(record)) => then(record.payload().unwrap_or_default())?,
            Poll::Ready(ConsumerEvent::End) => {}
            Poll::Ready(ConsumerEvent::Trouble(error)) => return Err(failed(error)),
            Poll::Pending if is_first => {
                thread::park_timeout(SLEEP_MAX);
                return Ok(());
            }
            Poll::Pending => return Ok(()),
        }
        is_first = false;
    }
}

fn send(producer: &Producer, topic: &str, payload: &[u8]) -> Result<()> {
    producer.send(&ProduceRequest { topic, key: None, payload: Some(payload), headers: &[] }, 0).map_err(failed)
}

fn check_deliveries(producer: &Producer) -> Result<()> {
    while let Some(event) = producer.take() {
        match event {
            ProducerEvent::Delivery(delivery) => delivery.error.map_or(Ok(()), |error| Err(failed(error)))?,
            ProducerEvent::Trouble(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

fn producer(connection: &BrokerConnection) -> Result<Producer> {
    Producer::open(connection, &ProducerOptions::default()).map_err(failed)
}

fn consumer(connection: &BrokerConnection, topic: &str, offset: i64) -> Result<Consumer> {
    Consumer::open(connection, &ConsumerOptions::new(topic, StartOffset::Offset(offset))).map_err(failed)
}
