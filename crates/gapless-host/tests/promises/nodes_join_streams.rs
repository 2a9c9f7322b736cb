//! A service is a node of a stream of others: its instances give each message to the stream once, also after restarts; its
//! handle answers queries and status, and ends it.

use crate::programs::{Calls, PATIENCE, model};
use gapless_client::QueryError;
use gapless_client::node::{AnyLink, NodeEvent, NodeState, StreamNode};
use gapless_client::{ClientOptions, StreamConfig};
use gapless_engine::Context;
use gapless_host::{Host, HostError, NodeStatus, Phase, Role, Running};
use gapless_message::{Message, State};
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::wait::until;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

const TOKEN: u128 = 77;

#[derive(Serialize, Deserialize, Message)]
struct Order(u64);

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct Total {
    orders: u64,
    sum: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64, refusal = TooEarly)]
struct AskSum {
    orders_min: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct TooEarly {
    orders: u64,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Unknown;

#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64)]
struct Panics;

#[derive(Default, Serialize, Deserialize, State)]
struct Adder {
    orders: u64,
    sum: u64,
}

#[gapless_engine::service]
impl Adder {
    #[event]
    fn order(&mut self, Order(amount): Order, context: &mut Context<'_>) {
        assert_ne!(amount, 13, "no order is 13");
        self.orders += 1;
        self.sum += amount;
        context.publish(&Total { orders: self.orders, sum: self.sum });
    }

    #[query]
    fn sum(&self, AskSum { orders_min }: AskSum) -> Result<u64, TooEarly> {
        if self.orders < orders_min { Err(TooEarly { orders: self.orders }) } else { Ok(self.sum) }
    }

    #[query]
    fn panics(&self, _: Panics) -> u64 {
        panic!("a query of this type panics")
    }
}

struct Exchange {
    folder: tempfile::TempDir,
    stream: Option<EventStream>,
}

impl Exchange {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = "[stream]\ndirectory = \"stream\"\nwindow = \"1 MiB\"\nmessage_length_max = \"64 KiB\"\n\
                    [journal]\nsegment_length = \"1 MiB\"\n";
        std::fs::write(folder.path().join("stream.toml"), text).unwrap();
        let mut exchange = Self { folder, stream: None };
        exchange.open();
        exchange
    }

    fn open(&mut self) {
        let options = EventStreamOptions::from_config(&self.config()).unwrap();
        self.stream = Some(EventStream::start(&options).unwrap());
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("stream.toml")
    }

    fn config(&self) -> StreamConfig {
        StreamConfig::load(self.file()).unwrap()
    }

    fn host(&self) -> Host {
        Host::on_stream(self.file()).token(TOKEN)
    }

    fn instance(&self, name: &str) -> Running {
        let directory = self.folder.path().join(name);
        self.host().directory(directory).snapshot_every(4).service(Adder::default()).start().unwrap()
    }

    fn node(&self) -> StreamNode<AnyLink> {
        let config = self.config();
        let mut node = StreamNode::new(config.link().unwrap(), config.node_options(None));
        node.wait_open(PATIENCE).unwrap();
        node
    }
}

/// Publishes the orders, and returns the totals of the stream once there are `count`.
fn totals(node: &mut StreamNode<AnyLink>, orders: std::ops::RangeInclusive<u64>, count: usize) -> Vec<Total> {
    orders.for_each(|amount| _ = node.publish_message(&Order(amount)).unwrap());
    let mut totals = Vec::new();
    until("the totals are in the stream", || {
        node.poll(64, |event| {
            if let NodeEvent::Message(message) = event {
                totals.extend(message.read::<Total>());
            }
        })
        .unwrap();
        totals.len() >= count && node.in_flight() == 0
    });
    totals
}

#[test]
fn instances_publish_once() {
    let exchange = Exchange::new();
    let (one, two) = (exchange.instance("one"), exchange.instance("two"));
    let mut node = exchange.node();
    let expected = |orders| Total { orders, sum: (1..=orders).sum() };
    assert_eq!(totals(&mut node, 1..=10, 10), (1..=10).map(expected).collect::<Vec<_>>());
    for host in [&one, &two] {
        until("it has handled everything", || matches!(host.query(&AskSum { orders_min: 10 }), Ok(55)));
        let status = host.status();
        assert_eq!((status.phase, status.role, status.starts), (Phase::Running, Role::Node, 1));
        assert!(status.handled >= 10 && status.dead_letters == 0, "{status:?}");
    }
    let handled = one.stop().unwrap();
    assert_eq!((one.status().phase, one.status().handled), (Phase::Stopped, handled));
    assert_eq!(totals(&mut node, 11..=12, 2), [expected(11), expected(12)], "the other instance goes on");
    two.stop().unwrap();

    let one = exchange.instance("one");
    assert_eq!(one.status().recovered.snapshot_sequence, handled);
    until("it has read the rest", || matches!(one.query(&AskSum { orders_min: 12 }), Ok(78)));
    assert_eq!(totals(&mut node, 13 - 1..=12, 1), [Total { orders: 13, sum: 90 }]);
    drop(one);
    let said = std::fs::read_dir(exchange.folder.path().join("one/snapshots")).unwrap().count();
    assert!(said > 0, "a drop stops it, too");
}

#[test]
fn node_starts_before_its_stream() {
    let mut exchange = Exchange::new();
    exchange.stream.take().unwrap().stop().unwrap();
    let host = exchange.host().service(Adder::default()).start().unwrap();
    assert_eq!((host.status().phase, host.status().handled), (Phase::Running, 0));
    let early = host.query(&AskSum { orders_min: 1 });
    assert!(matches!(early, Err(QueryError::Refused(TooEarly { orders: 0 }))), "{early:?}");
    let status = || host.status().node.expect("the status of a node");
    until("its status says what it waits for", || status().waits_for.is_some());
    let waiting = status();
    assert!(waiting.waits_for.as_ref().is_some_and(|peer| peer.contains("no sequencer answers")), "{waiting:?}");
    assert_eq!((waiting.state, waiting.in_flight), (NodeState::Connecting, 0));
    exchange.open();
    let mut node = exchange.node();
    assert_eq!(totals(&mut node, 5..=5, 1), [Total { orders: 1, sum: 5 }]);
    let is_settled = NodeStatus { state: NodeState::Live, in_flight: 0, waits_for: None };
    until("it has nothing in flight", || status() == is_settled && host.status().released >= 2);
    host.stop().unwrap();
}

#[test]
fn failed_handler_ends_the_node() {
    let exchange = Exchange::new();
    let host = exchange.host().service(Adder::default()).start().unwrap();
    let mut node = exchange.node();
    node.publish_message(&Order(13)).unwrap();
    let waits = host.clone();
    let waiting = std::thread::spawn(move || waits.wait());
    until("the order is in the stream", || {
        node.poll(16, |_| {}).unwrap();
        node.in_flight() == 0
    });
    let error = waiting.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("no order is 13"), "{error}");
    let status = host.status();
    assert!(status.phase == Phase::Failed && status.failure.unwrap().contains("no order is 13"));
    let Err(QueryError::Unavailable { reason }) = host.query(&Panics) else { panic!("it has ended") };
    assert!(reason.contains("no order is 13"), "{reason}");
    assert!(host.stop().unwrap_err().to_string().contains("no order is 13"));
}

#[test]
fn bad_queries_change_nothing() {
    let exchange = Exchange::new();
    let host = exchange.host().service(Adder::default()).start().unwrap();
    let Err(QueryError::Failed { reason }) = host.query(&Panics) else { panic!("a panic is no answer") };
    assert!(reason.contains("a query of this type panics"), "{reason}");
    assert!(matches!(host.query(&Unknown), Err(QueryError::Unhandled { .. })));
    assert!(matches!(host.query(&AskSum { orders_min: 0 }), Ok(0)));
    host.stop().unwrap();
    let Err(QueryError::Unavailable { reason }) = host.query(&Unknown) else { panic!("it is stopped") };
    assert!(reason.contains("stopped"), "{reason}");
    let host = Host::in_memory().service(Adder::default()).start().unwrap();
    let Err(QueryError::Unavailable { reason }) = host.query(&AskSum { orders_min: 0 }) else { panic!("no node") };
    assert!(reason.contains("Running::client"), "{reason}");
}

#[test]
fn node_takes_no_commands() {
    let exchange = Exchange::new();
    let host = exchange.host().service(Adder::default()).start().unwrap();
    let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    let refusals = [
        host.polled_client(options).err(),
        host.snapshot().err(),
        host.advance(Duration::from_secs(1)).err(),
        host.begin_version(2).err(),
        exchange.host().replicated_state(Calls::new).start().err(),
        exchange.host().aggregates(model()).start().err(),
    ];
    for error in refusals {
        let said = error.as_ref().expect("a refusal").to_string();
        assert!(matches!(error, Some(HostError::Refused { .. })) && said.contains("stream.toml"), "{said}");
    }
    let missing = Host::on_stream(Path::new("/no/such.toml")).token(1).service(Adder::default()).start();
    assert!(missing.err().expect("a refusal").to_string().contains("/no/such.toml"));
}
