//! A bridge is stopped for a minute, as a suspended machine: one whose name was taken ends without handling anything
//! more, one without a successor goes on.

use crate::machines::{ALL, TestMachine, Work};
use crate::traffic::{NotedCalls, Traffic};
use gapless_rpc::CallError;
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::process::Process;
use gapless_testkit::scenarios::Module;
use rustix::process::Signal;
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(crate::AT_A_TIME)
        .scenario("a_replaced_bridge_is_fenced", a_replaced_bridge_is_fenced)
        .scenario("the_other_bridge_goes_on", the_other_bridge_goes_on)
        .scenario("the_own_bridge_goes_on", the_own_bridge_goes_on)
}

/// 20 leases.
const MINUTE: Duration = Duration::from_secs(60);

fn stop_for_a_minute(process: &Process, meanwhile: impl FnOnce()) {
    process.stop();
    let begun = Instant::now();
    meanwhile();
    std::thread::sleep(MINUTE.saturating_sub(begun.elapsed()));
    process.signal(Signal::CONT);
}

fn a_replaced_bridge_is_fenced() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there, third) = (TestMachine::new("here"), TestMachine::new("there"), TestMachine::new("third"));
    let (mut one, mut two) = (there.instance("one"), third.instance("two"));
    let mut notes = NotedCalls::of(&mut [&mut one, &mut two]);
    let bridge = here.bridge(&broker, "", ALL);
    let mut first = there.bridge_named("other", &broker, ALL, "");
    here.until_answered_by("one");
    let traffic = Traffic::start(&here);
    traffic.wait_for_calls(50);
    let mut second = None;
    stop_for_a_minute(&first.process, || {
        bridge.until_event("silent");
        second = Some(third.bridge_named("other", &broker, ALL, ""));
        here.until_answered_by("two");
        traffic.wait_for_calls(50);
    });
    let words = first.until_failed();
    assert!(words.contains("began a second time"), "{words}");
    traffic.wait_for_calls(50);
    let kinds = traffic.end(&mut notes);
    assert!(kinds["reply"] >= 60, "{kinds:?}");
    assert_eq!(here.call(Work::Name).unwrap(), b"two");
    assert_eq!(there.call(Work::Name).unwrap(), b"one");
    assert!(second.is_some_and(|mut second| second.process.ended().is_none()));
}

fn the_other_bridge_goes_on() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut one = there.instance("one");
    let mut notes = NotedCalls::of(&mut [&mut one]);
    let bridge = here.bridge(&broker, "", ALL);
    let other = there.bridge(&broker, ALL, "");
    here.until_answered_by("one");
    let traffic = Traffic::start(&here);
    traffic.wait_for_calls(50);
    stop_for_a_minute(&other.process, || {
        bridge.until_event("silent");
        traffic.wait_for_calls(50);
        let error = here.call(Work::Name).unwrap_err();
        assert!(matches!(error, CallError::NoRoute { .. }), "{error}");
    });
    here.until_answered_by("one");
    bridge.until_event("is back");
    traffic.wait_for_calls(50);
    let kinds = traffic.end(&mut notes);
    assert!(kinds["reply"] >= 60 && kinds.contains_key("unknown") && kinds.contains_key("no_route"), "{kinds:?}");
}

fn the_own_bridge_goes_on() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut one = there.instance("one");
    let mut notes = NotedCalls::of(&mut [&mut one]);
    let bridge = here.bridge(&broker, "", ALL);
    let other = there.bridge(&broker, ALL, ALL);
    here.until_answered_by("one");
    let traffic = Traffic::start(&here);
    traffic.wait_for_calls(50);
    stop_for_a_minute(&bridge.process, || {
        let soon = Duration::from_secs(1);
        let error = here.call_with(Work::Name, |options| options.timeout = Some(soon)).unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
        other.until_event("bridge here is silent");
    });
    other.until_event("bridge here is back");
    here.until_answered_by("one");
    traffic.wait_for_calls(50);
    let kinds = traffic.end(&mut notes);
    assert!(kinds["reply"] >= 60, "{kinds:?}");
}
