use crate::machines::{ALL, ROUTE, TestMachine, Work};
use gapless_rpc::{Call, CallError, CallOptions, Retry};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until;
use rustix::process::Signal;
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("the_other_bridge_is_killed", the_other_bridge_is_killed)
        .scenario("the_own_bridge_is_killed", the_own_bridge_is_killed)
        .scenario("an_instance_is_killed", an_instance_is_killed)
        .scenario("the_other_bridge_stands_still", the_other_bridge_stands_still)
        .scenario("ten_thousand_calls_are_under_way", ten_thousand_calls_are_under_way)
}

const LONG: Duration = Duration::from_secs(600);

fn never() -> CallOptions {
    CallOptions { timeout: Some(LONG), retry: Retry::Never, ..CallOptions::default() }
}

#[track_caller]
fn early_end(call: Call<Vec<u8>>) -> CallError {
    let begun = Instant::now();
    let error = call.wait().unwrap_err();
    assert!(begun.elapsed() < LONG / 2, "{error}");
    error
}

fn the_other_bridge_is_killed() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut instance = there.instance("one");
    let _bridge = here.bridge(&broker, "", ALL);
    let mut other = there.bridge(&broker, ALL, "");
    assert_eq!(here.answered_by(), "one");
    let call = here.caller().start_with(Work::Wait, &never());
    assert_eq!(instance.line(), "waiting");
    other.process.kill();
    assert_eq!(instance.line(), "cancelled");
    let error = early_end(call);
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    until("the route is gone", || matches!(here.call(Work::Name), Err(CallError::NoRoute { .. })));
    let _again = there.bridge(&broker, ALL, "");
    here.until_answered_by("one");
}

fn the_own_bridge_is_killed() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut instance = there.instance("one");
    let mut bridge = here.bridge(&broker, "", ALL);
    let _other = there.bridge(&broker, ALL, "");
    assert_eq!(here.answered_by(), "one");
    let call = here.caller().start_with(Work::Wait, &never());
    assert_eq!(instance.line(), "waiting");
    bridge.process.kill();
    let error = early_end(call);
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    let _again = here.bridge(&broker, "", ALL);
    assert_eq!(instance.line(), "cancelled");
    here.until_answered_by("one");
}

fn an_instance_is_killed() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let (mut one, _two) = (there.instance("one"), there.instance("two"));
    let _bridges = (here.bridge(&broker, "", ALL), there.bridge(&broker, ALL, ""));
    until("both are known", || here.caller().broadcast(&Work::Name).is_ok_and(|outcomes| outcomes.len() == 2));
    let key = (1..)
        .find(|key| here.call_with(Work::Name, |options| options.key = Some(*key)).is_ok_and(|name| name == b"one"))
        .unwrap();
    let call = here.caller().start_with(Work::Wait, &CallOptions { key: Some(key), ..never() });
    assert_eq!(one.line(), "waiting");
    one.kill();
    let error = early_end(call);
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    here.until_answered_by("two");
    assert_eq!(here.call_with(Work::Name, |options| options.key = Some(key)).unwrap(), b"two");
}

fn the_other_bridge_stands_still() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _instance = there.instance("one");
    let bridge = here.bridge(&broker, "", ALL);
    let other = there.bridge(&broker, ALL, "");
    assert_eq!(here.answered_by(), "one");
    other.process.stop();
    let error = early_end(here.caller().start_with(Work::Name, &never()));
    assert!(matches!(error, CallError::Unknown { .. } | CallError::NotBegun { .. }), "{error}");
    bridge.until_event("silent");
    until("the route is gone", || matches!(here.call(Work::Name), Err(CallError::NoRoute { .. })));
    other.process.signal(Signal::CONT);
    here.until_answered_by("one");
}

fn ten_thousand_calls_are_under_way() {
    const CALLERS: usize = 3;
    const EACH: usize = 3_334;
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut instance = there.instance("one");
    let limits = "calls_per_peer = 20000\nbytes_per_peer = 1073741824\n";
    let _bridge = here.bridge_with("here", &broker, "", ALL, limits);
    let mut other = there.bridge_with("there", &broker, ALL, "", limits);
    assert_eq!(here.answered_by(), "one");
    let domains: Vec<_> = (0..CALLERS).map(|_| here.open()).collect();
    let callers = domains.iter().map(|domain| domain.caller::<Work, Vec<u8>>(ROUTE).unwrap()).collect::<Vec<_>>();
    let first = callers[0].start_with(Work::Name, &never()).wait();
    let mut calls = Vec::new();
    for (number, caller) in callers.iter().enumerate() {
        let of = |each: usize| if number == 0 && each % 100 == 99 { Work::Wait } else { Work::Name };
        calls.extend((0..EACH).map(|each| caller.start_with(of(each), &never())));
    }
    assert_eq!(instance.line(), "waiting");
    other.process.kill();
    let mut ends = std::collections::BTreeMap::<&str, usize>::new();
    for end in std::iter::once(first).chain(calls.into_iter().map(Call::wait)) {
        *ends.entry(end.as_ref().map_or_else(CallError::kind, |_| "reply")).or_default() += 1;
    }
    println!("{ends:?}");
    assert_eq!(ends.values().sum::<usize>(), CALLERS * EACH + 1);
    assert!(ends.keys().all(|kind| ["no_route", "not_begun", "reply", "unknown"].contains(kind)), "{ends:?}");
    assert!(ends.contains_key("unknown"), "{ends:?}");
}
