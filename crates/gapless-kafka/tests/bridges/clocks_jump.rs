//! Deadlines count in the broker's append times: calls work while clocks are set.

use crate::machines::{ALL, BridgePlan, TestMachine, Work, next_line};
use crate::other_clock::OtherClock;
use gapless_rpc::CallOptions;
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::process::Process;
use gapless_testkit::scenarios::Module;
use std::sync::mpsc::Receiver;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(crate::AT_A_TIME)
        .scenario("clocks_of_bridges_differ", clocks_of_bridges_differ)
        .scenario("the_clock_of_the_broker_is_set", the_clock_of_the_broker_is_set)
}

const LONG: Duration = Duration::from_secs(600);

#[track_caller]
fn check_calls(here: &TestMachine, lines: &Receiver<String>) {
    here.until_answered_by("one");
    here.let_begun_call_time_out(lines, Duration::from_millis(500));
}

fn check_jumps(here: &TestMachine, lines: &Receiver<String>, clocks: &[(&OtherClock, i64)]) {
    check_calls(here, lines);
    let call = here.caller().start_with(Work::Wait, &CallOptions { timeout: Some(LONG), ..CallOptions::default() });
    assert_eq!(next_line(lines), "waiting");
    for times in [1, -1, 0] {
        for (clock, seconds) in clocks {
            clock.set(seconds * times);
        }
        check_calls(here, lines);
    }
    drop(call);
    assert_eq!(next_line(lines), "cancelled");
}

#[track_caller]
fn check_preloaded(process: &Process, clock: &OtherClock) {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.pid().as_raw_nonzero())).unwrap();
    assert!(maps.contains(&clock.library().display().to_string()), "{maps}");
}

fn clocks_of_bridges_differ() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (ahead, behind) = (OtherClock::new(), OtherClock::new());
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut one = there.instance("one");
    ahead.set(420);
    behind.set(-420);
    let start = |machine: &TestMachine, offer, take, clock: &OtherClock| {
        machine.start(&BridgePlan { environment: clock.environment(), ..machine.plan(broker.address(), offer, take) })
    };
    let (bridge, other) = (start(&here, "", ALL, &ahead), start(&there, ALL, "", &behind));
    here.until_answered_by("one");
    check_preloaded(&bridge.process, &ahead);
    check_preloaded(&other.process, &behind);
    check_jumps(&here, &one.lines_in_background(), &[(&ahead, -900), (&behind, 900)]);
}

fn the_clock_of_the_broker_is_set() {
    let clock = OtherClock::new();
    let Some(mut broker) = KafkaBroker::start_in(&clock.environment()) else { return };
    check_preloaded(broker.process(), &clock);
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut one = there.instance("one");
    let _bridges = (here.bridge(&broker, "", ALL), there.bridge(&broker, ALL, ""));
    here.until_answered_by("one");
    check_jumps(&here, &one.lines_in_background(), &[(&clock, 900)]);
}
