//! A bridge whose inbox has lost records goes on as a new incarnation; no handler begins twice.

use crate::machines::{ALL, TestMachine};
use crate::traffic::{NotedCalls, Traffic};
use gapless_kafka::client::{BrokerConnection, Compression, TopicSpec, Topics};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until, until_some};
use rustix::process::Signal;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(crate::AT_A_TIME)
        .scenario("retention_is_shorter_than_an_outage", retention_is_shorter_than_an_outage)
        .scenario("topics_are_deleted", topics_are_deleted)
}

const INBOX: &str = "test.inbox.there";

fn topics(broker: &KafkaBroker) -> Topics {
    Topics::connect(&BrokerConnection::new(&broker.address(), "gapless-test"), PATIENCE).unwrap()
}

fn retention_is_shorter_than_an_outage() {
    let arguments = ["--set", "log.retention.check.interval.ms=500", "--set", "log.initial.task.delay.ms=500"];
    let Some(broker) = KafkaBroker::start(&arguments) else { return };
    let topics = topics(&broker);
    let retention = Duration::from_secs(4);
    topics.ensure(&TopicSpec::inbox(INBOX, retention, Compression::None), PATIENCE).unwrap();
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut one = there.instance("one");
    let mut notes = NotedCalls::of(&mut [&mut one]);
    let bridge = here.bridge(&broker, "", ALL);
    let other = there.bridge(&broker, ALL, "");
    let differs = other.until_event("topic_differs: ");
    assert!(differs.contains("retention.ms is 4000"), "{differs}");
    here.until_answered_by("one");
    let traffic = Traffic::start(&here);
    traffic.wait_for_calls(50);
    other.process.stop();
    let stopped_at = topics.offsets(INBOX, PATIENCE).unwrap().end;
    bridge.until_event("silent");
    until_some("retention has taken the records of the outage", || {
        let left = topics.offsets(INBOX, PATIENCE).unwrap();
        (left.start > stopped_at && left.is_empty()).then_some(())
    });
    other.process.signal(Signal::CONT);
    other.until_event("inbox_lost: ");
    here.until_answered_by("one");
    traffic.wait_for_calls(50);
    let kinds = traffic.end(&mut notes);
    assert!(kinds["reply"] >= 60 && kinds.contains_key("unknown"), "{kinds:?}");
}

fn topics_are_deleted() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let topics = topics(&broker);
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut one = there.instance("one");
    let mut notes = NotedCalls::of(&mut [&mut one]);
    let _bridge = here.bridge(&broker, "", ALL);
    let other = there.bridge(&broker, ALL, "");
    here.until_answered_by("one");
    let traffic = Traffic::start(&here);
    traffic.wait_for_calls(50);
    topics.remove(INBOX, PATIENCE).unwrap();
    other.until_event("inbox_lost: ");
    here.until_answered_by("one");
    topics.remove("test.presence", PATIENCE).unwrap();
    until("the topic of leases is made again", || topics.describe("test.presence", PATIENCE).unwrap().is_some());
    let mut two = there.instance("two");
    notes.add(&mut two);
    one.kill();
    here.until_answered_by("two");
    traffic.wait_for_calls(50);
    let kinds = traffic.end(&mut notes);
    assert!(kinds["reply"] >= 60, "{kinds:?}");
}
