use crate::machines::{ALL, TestMachine};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;
use std::path::Path;
use std::process::Command;

pub fn module() -> Module {
    Module::new(module_path!()).scenario("a_java_program_calls", a_java_program_calls)
}

fn a_java_program_calls() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let there = TestMachine::new("there");
    let _instance = there.instance("one");
    let other = there.bridge(&broker, ALL, "");
    other.until_event("serving");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks/peers/kafka/broker");
    let call = |json: &str| {
        let output = Command::new(&script)
            .args(["--call", &broker.address(), "test.inbox.there", "test.reply.java"])
            .args([crate::machines::ROUTE, json])
            .output()
            .unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (reply, errors) = call("\"Name\"");
    assert_eq!(reply.trim(), "reply \"one\"", "{errors}");
    let (refused, errors) = call("\"Refuse\"");
    assert!(refused.starts_with("refused 7 no"), "{refused} {errors}");
    let (bad, errors) = call("\"Nonsense\"");
    assert!(bad.starts_with("ended ") && bad.contains("bad_message"), "{bad} {errors}");
}
