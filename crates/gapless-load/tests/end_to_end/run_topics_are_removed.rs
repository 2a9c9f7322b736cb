#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_kafka::client::{BrokerConnection, Topics};
use gapless_load::network::bare::BarePair;
use gapless_load::network::run_topics::{RunTopics, TopicRemoval};
use gapless_testkit::kafka_broker::KafkaBroker;
use std::time::Duration;

#[test]
fn run_topics_are_removed() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (address, topics) = (broker.address(), RunTopics::default());
    let is_there = |name: &str| {
        let found = Topics::connect(&BrokerConnection::new(&address, "test"), Duration::from_secs(30)).unwrap();
        found.describe(name, Duration::from_secs(30)).unwrap().is_some()
    };
    let removed = TopicRemoval::new(&address, topics.all(&["near", "far"]));
    let pair = BarePair::open(&address, topics.bare()).unwrap();
    for ways in [1, 2] {
        let exchange = pair.exchange((72, ways), 8, 20).unwrap();
        assert_eq!((exchange.count, exchange.wrong), (20, 0));
    }
    assert!(topics.bare().iter().all(|name| is_there(name)));
    drop(pair);
    drop(removed);
    assert!(topics.all(&["near", "far"]).iter().all(|name| !is_there(name)));
}
