use crate::machines::{ALL, TestMachine, Work};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;

pub fn module() -> Module {
    Module::new(module_path!()).scenario("the_first_one_ends", the_first_one_ends)
}

fn the_first_one_ends() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there, third) = (TestMachine::new("here"), TestMachine::new("there"), TestMachine::new("third"));
    let _instances = (there.instance("one"), third.instance("two"));
    let _bridge = here.bridge(&broker, "", ALL);
    let mut first = there.bridge_named("other", &broker, ALL, "");
    here.until_answered_by("one");
    let _second = third.bridge_named("other", &broker, ALL, "");
    let told = first.until_event("ended: ");
    assert!(told.contains("began a second time"), "{told}");
    assert!(!first.process.wait_end("the first bridge ends").success());
    here.until_answered_by("two");
    assert!(there.call(Work::Name).is_ok());
}
