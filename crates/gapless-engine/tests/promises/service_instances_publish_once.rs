//! Instances are started, stopped, killed and doubled; the messages that follow from the stream are published exactly
//! once.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::ClientError;
use gapless_client::node::{NodeEvent, SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_engine::context::Context;
use gapless_engine::{Handlers, Reject, Service, StreamService, StreamServiceOptions};
use gapless_schema::{EncodeError, Encoding};
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::messages::SequencerRequest;
use gapless_stream::options::EventStreamOptions;
use std::path::Path;
use std::time::{Duration, Instant};

const ORDER: u32 = 1 << 16 | 1;
const TOTAL: u32 = 1 << 16 | 2;
const LONG: u32 = 1 << 16 | 3;
const RANG: u32 = 1 << 16 | 4;
const TOKEN: u128 = 4242;
const PATIENCE: Duration = Duration::from_secs(60);

/// Publishes each total, a long report for every tenth order, a timer's message for every seventh. Refuses 13.
#[derive(Default)]
struct Adder {
    total: u64,
    orders: u64,
}

fn out(context: &mut Context<'_>, schema: u32, bytes: &[u8]) -> Result<(), Reject> {
    context.publish_bytes(schema, Encoding::Opaque, bytes.len(), |buffer| {
        buffer.copy_from_slice(bytes);
        Ok::<_, EncodeError>(bytes.len())
    })
}

impl Service for Adder {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(ORDER, |adder: &mut Self, payload, context| {
            let amount = u64::from_le_bytes(payload.try_into().map_err(|_| Reject::from("not 8 bytes".to_owned()))?);
            if amount == 13 {
                out(context, TOTAL, b"never seen")?;
                return Err(Reject::from("13 is refused".to_owned()));
            }
            adder.total += amount;
            adder.orders += 1;
            out(context, TOTAL, &adder.total.to_le_bytes())?;
            if adder.orders.is_multiple_of(10) {
                out(context, LONG, &vec![adder.orders as u8; 5_000])?;
            }
            if adder.orders.is_multiple_of(7) {
                context.set_numbered_timer(adder.orders, context.time_ns() + 1_000_000);
                context.set_numbered_timer(adder.orders, context.time_ns() + 2_000);
                context.set_numbered_timer(2, context.time_ns() + 1_000);
                context.cancel_numbered_timer(2);
            }
            Ok(())
        });
    }

    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        assert_ne!(timer, 2, "the timer was cancelled");
        out(context, RANG, &[])
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.total.to_le_bytes());
        state.extend_from_slice(&self.orders.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let (total, orders) = state.split_at_checked(8).ok_or("too short")?;
        self.total = u64::from_le_bytes(total.try_into().map_err(|_| "total")?);
        self.orders = u64::from_le_bytes(orders.try_into().map_err(|_| "orders")?);
        Ok(())
    }
}

type AdderInstance = StreamService<Adder, SharedMemoryLink>;

fn options(place: &Path) -> EventStreamOptions {
    let mut options = EventStreamOptions::in_directory(place.join("stream"));
    options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
    options.window_bytes = 4 << 20;
    options.message_length_max = 1 << 20;
    options.frame_length_max = 1_376;
    options
}

fn link(place: &Path) -> SharedMemoryLink {
    SharedMemoryLink::new(&place.join("stream"), SharedMemoryOptions::default())
}

fn instance(place: &Path, name: &str) -> AdderInstance {
    let mut options = StreamServiceOptions::new(TOKEN);
    options.directory = Some(place.join(name));
    options.snapshot_interval_frames = Some(200);
    StreamService::new(Adder::default(), link(place), options).unwrap()
}

struct TestStream {
    node: StreamNode<SharedMemoryLink>,
    totals: Vec<u64>,
    longs: Vec<u8>,
    rang: usize,
    sent: u64,
    sum: Vec<u64>,
}

impl TestStream {
    fn new(place: &Path) -> Self {
        let mut node = StreamNode::new(link(place), StreamNodeOptions::default());
        node.wait_open(PATIENCE).unwrap();
        Self { node, totals: Vec::new(), longs: Vec::new(), rang: 0, sent: 0, sum: Vec::new() }
    }

    fn order(&mut self, amount: u64) {
        let message = MessageType { schema: ORDER, encoding: Encoding::Opaque };
        self.node.publish(message, &amount.to_le_bytes()).unwrap();
        if amount != 13 {
            self.sent += 1;
            self.sum.push(self.sum.last().unwrap_or(&0) + amount);
        }
    }

    fn poll(&mut self) {
        let Self { node, totals, longs, rang, .. } = self;
        node.poll(256, |event| {
            let NodeEvent::Message(message) = event else { return };
            match message.schema {
                TOTAL => totals.push(u64::from_le_bytes(message.payload.try_into().unwrap())),
                LONG => {
                    assert!(message.payload.len() == 5_000 && message.payload.iter().all(|b| *b == message.payload[0]));
                    longs.push(message.payload[0]);
                }
                RANG => *rang += 1,
                _ => {}
            }
        })
        .unwrap();
    }

    fn is_complete(&self) -> bool {
        self.totals.len() as u64 == self.sent
            && self.longs.len() as u64 == self.sent / 10
            && self.rang as u64 == self.sent / 7
    }

    fn run(
        &mut self,
        instances: &mut [&mut AdderInstance],
        mut is_done: impl FnMut(&Self, &[&mut AdderInstance]) -> bool,
    ) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.poll();
            let mut applied = 0;
            for instance in instances.iter_mut() {
                applied += instance.poll(64).unwrap();
            }
            if is_done(self, instances) {
                return;
            }
            if Instant::now() > deadline {
                let (totals, longs, rang) = (self.totals.len(), self.longs.len(), self.rang);
                let at = |instance: &&mut AdderInstance| {
                    (instance.last_sequence(), instance.node().state(), instance.node().in_flight())
                };
                let instances: Vec<_> = instances.iter().map(at).collect();
                let position = self.node.position();
                panic!("of {}: {totals} totals, {longs} longs, {rang} rang; {position}, {instances:?}", self.sent);
            }
            if applied == 0 {
                std::thread::yield_now();
            }
        }
    }

    fn settle(&mut self, instances: &mut [&mut AdderInstance]) {
        self.run(instances, |world, instances| {
            let position = world.node.position();
            world.is_complete() && instances.iter().all(|instance| instance.last_sequence() + 1 >= position)
        });
        assert_eq!(self.totals, self.sum, "each total once, in order");
        assert_eq!(self.longs, (1..=self.sent / 10).map(|n| (n * 10) as u8).collect::<Vec<_>>());
        for instance in instances {
            assert_eq!((instance.service().total, instance.service().orders), (*self.sum.last().unwrap(), self.sent));
        }
    }
}

#[test]
fn two_instances_publish_once() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let stream = EventStream::start(&options(place)).unwrap();
    let mut world = TestStream::new(place);
    let (mut a, mut b) = (instance(place, "a"), instance(place, "b"));
    for amount in 0..300 {
        world.order(amount % 20);
        if amount % 10 == 0 {
            world.run(&mut [&mut a, &mut b], |_, _| true);
        }
    }
    world.settle(&mut [&mut a, &mut b]);
    assert_eq!((a.dead_letter_count(), b.dead_letter_count()), (15, 15), "13 was refused 15 times");

    drop(a);
    for amount in 0..200 {
        world.order(amount % 20);
    }
    world.settle(&mut [&mut b]);
    let mut third = instance(place, "third");
    assert_eq!(third.snapshot_sequence(), 0);
    world.run(&mut [&mut b, &mut third], |_, instances| instances[1].last_sequence() >= instances[0].last_sequence());
    drop(b);
    for amount in 0..100 {
        world.order(amount % 20);
    }
    world.settle(&mut [&mut third]);

    let mut a = instance(place, "a");
    assert!(a.snapshot_sequence() > 0, "the instance took snapshots");
    for amount in 0..100 {
        world.order(amount % 20);
    }
    world.settle(&mut [&mut a, &mut third]);
    a.stop().unwrap();
    assert_eq!(instance(place, "a").snapshot_sequence(), third.last_sequence(), "a clean stop leaves a snapshot");
    stream.stop().unwrap();
}

#[test]
fn backlog_survives_stream_restarts() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let mut stream = EventStream::start(&options(place)).unwrap();
    let mut world = TestStream::new(place);
    // More messages than it may keep in flight: it must not wait for its own, which come after them.
    for amount in 0..3_000 {
        world.order(amount % 20);
        if amount % 500 == 0 {
            world.run(&mut [], |world, _| world.node.in_flight() < 100);
        }
    }
    world.run(&mut [], |world, _| world.node.in_flight() == 0);
    let mut few = StreamServiceOptions::new(TOKEN);
    few.kept_bytes_max = 64 << 10;
    let mut service = StreamService::new(Adder::default(), link(place), few).unwrap();
    for round in 0..5 {
        for _ in 0..20 {
            world.run(&mut [&mut service], |_, _| true);
        }
        drop(stream);
        stream = EventStream::start(&options(place)).unwrap();
        world.order(round);
    }
    world.settle(&mut [&mut service]);
    drop(service);
    let mut again = instance(place, "again");
    world.settle(&mut [&mut again]);
    stream.stop().unwrap();
}

#[test]
fn halt_only_delays_publishing() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let stream = EventStream::start(&options(place)).unwrap();
    let mut world = TestStream::new(place);
    let mut service = instance(place, "a");
    for amount in 0..70 {
        world.order(amount % 20);
    }
    stream.ask(SequencerRequest::Halt { reason: "a look".to_owned() }).unwrap();
    for _ in 0..200 {
        world.run(&mut [&mut service], |_, _| true);
    }
    stream.ask(SequencerRequest::Resume).unwrap();
    world.settle(&mut [&mut service]);
    stream.stop().unwrap();
}

#[test]
fn directory_has_one_instance() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let new = |name: &str| {
        let mut options = StreamServiceOptions::new(TOKEN);
        options.directory = Some(place.join(name));
        StreamService::new(Adder::default(), link(place), options)
    };
    let refusal = |name: &str| new(name).err().expect("a refusal").to_string();
    let first = new("a").unwrap();
    let said = refusal("a");
    assert!(said.contains("lock"), "{said}");
    drop(first);
    drop(new("a").unwrap());
    EventStream::start(&options(place)).unwrap().stop().unwrap();
    let said = refusal("stream");
    assert!(said.contains("a directory of its own"), "{said}");
    let mut options = options(place);
    options.directory = Some(place.join("a"));
    let said = EventStream::start(&options).err().expect("a refusal").to_string();
    assert!(said.contains("node"), "{said}");
}

/// The stream takes nothing from the service while this instance ends, and forgets the messages that it was sent.
fn outputs_outlive(end: impl FnOnce(AdderInstance)) {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let stream = EventStream::start(&options(place)).unwrap();
    let mut world = TestStream::new(place);
    let instance = || {
        let mut options = StreamServiceOptions::new(TOKEN);
        options.directory = Some(place.join("a"));
        options.snapshot_interval_frames = Some(1);
        StreamService::new(Adder::default(), link(place), options).unwrap()
    };
    let mut service = instance();
    world.order(1);
    world.settle(&mut [&mut service]);
    for amount in 2..40 {
        world.order(amount);
    }
    world.run(&mut [], |world, _| world.node.in_flight() == 0);
    stream.ask(SequencerRequest::Halt { reason: "a look".to_owned() }).unwrap();
    world.run(&mut [&mut service], |world, instances| {
        instances[0].last_sequence() + 1 >= world.node.position() && instances[0].service().orders == world.sent
    });
    assert!(service.node().in_flight() > 0);
    end(service);
    drop(stream);
    let stream = EventStream::start(&options(place)).unwrap();
    stream.ask(SequencerRequest::Resume).unwrap();
    let mut next = instance();
    assert!(next.snapshot_sequence() > 0, "the settled outputs have a snapshot");
    world.settle(&mut [&mut next]);
    stream.stop().unwrap();
}

#[test]
fn unsent_outputs_survive_a_kill() {
    outputs_outlive(drop);
}

#[test]
fn unsent_outputs_survive_a_stop() {
    outputs_outlive(|service| service.stop().unwrap());
}

#[test]
fn new_instance_needs_whole_stream() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let mut options = options(place);
    options.persistence.retention.bytes_max = Some(4 << 20);
    options.state_interval_frames = 1_000;
    options.state_interval_min = Duration::ZERO;
    let stream = EventStream::start(&options).unwrap();
    let mut world = TestStream::new(place);
    let message = MessageType { schema: 99, encoding: Encoding::Opaque };
    let journal = place.join("stream").join("journal");
    let segments = || std::fs::read_dir(&journal).unwrap().count();
    let deadline = Instant::now() + PATIENCE;
    let first = |journal: &Path| gapless_journal::JournalReader::open(journal).map_or(1, |r| r.first_sequence());
    while first(&journal) == 1 {
        for _ in 0..2_000 {
            world.node.publish(message, &[7; 1_000]).unwrap();
        }
        world.run(&mut [], |world, _| world.node.in_flight() == 0);
        assert!(Instant::now() < deadline, "nothing was deleted of {} segments", segments());
    }
    let mut service = instance(place, "late");
    let refused = loop {
        match service.poll(64) {
            Ok(_) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    let expected = matches!(
        &refused,
        gapless_engine::EngineError::Stream(gapless_stream::StreamError::Client(ClientError::Lapped {
            sequence: 1,
            ..
        }))
    );
    assert!(expected, "{refused}");
    stream.stop().unwrap();
}
