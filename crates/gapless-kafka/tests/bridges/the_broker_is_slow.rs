use crate::machines::{ALL, TestMachine};
use crate::traffic::{NotedCalls, Traffic};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;
use rustix::process::Signal;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(crate::AT_A_TIME)
        .scenario("it_stands_still_for_moments", it_stands_still_for_moments)
}

const MOMENT: Duration = Duration::from_secs(3);

fn it_stands_still_for_moments() {
    let Some(mut broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut one = there.instance("one");
    let mut notes = NotedCalls::of(&mut [&mut one]);
    let _bridges = (here.bridge(&broker, "", ALL), there.bridge(&broker, ALL, ""));
    here.until_answered_by("one");
    let traffic = Traffic::start(&here);
    for _ in 0..3 {
        traffic.wait_for_calls(50);
        broker.process().stop();
        std::thread::sleep(MOMENT);
        broker.process().signal(Signal::CONT);
        here.until_answered_by("one");
    }
    traffic.wait_for_calls(50);
    let kinds = traffic.end(&mut notes);
    assert!(kinds["reply"] >= 60, "{kinds:?}");
}
