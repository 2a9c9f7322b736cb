use crate::machines::{ALL, TestMachine, Work};
use gapless_rpc::CallError;
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until_some;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("the_broker_is_killed", the_broker_is_killed)
        .scenario("the_broker_comes_later", the_broker_comes_later)
}

fn the_broker_is_killed() {
    let Some(mut broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _instance = there.instance("one");
    let bridge = here.bridge(&broker, "", ALL);
    let _other = there.bridge(&broker, ALL, "");
    assert_eq!(here.answered_by(), "one");
    broker.kill();
    bridge.until_event("lost");
    let reason = until_some("the route says why", || match here.call(Work::Name) {
        Err(CallError::NoRoute { reason, .. }) if !reason.is_empty() => Some(reason),
        _ => None,
    });
    assert!(reason.contains("broker"), "{reason}");
    assert_eq!(there.call(Work::Name).unwrap(), b"one");
    broker.restart();
    here.until_answered_by("one");
    bridge.until_event("back");
}

fn the_broker_comes_later() {
    let Some(mut broker) = KafkaBroker::start(&[]) else { return };
    broker.kill();
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _instance = there.instance("one");
    let bridge = here.bridge(&broker, "", ALL);
    let _other = there.bridge(&broker, ALL, "");
    bridge.until_event("waiting for the broker");
    broker.restart();
    here.until_answered_by("one");
}
