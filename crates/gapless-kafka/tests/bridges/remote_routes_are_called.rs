use crate::machines::{ALL, ROUTE, TestMachine, Work, next_line};
use gapless_rpc::{CallError, CallOptions, Headers, Json};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("calls_have_their_outcomes", calls_have_their_outcomes)
        .scenario("local_instances_come_first", local_instances_come_first)
        .scenario("keys_hold_over_machines", keys_hold_over_machines)
        .scenario("long_payloads_go_in_segments", long_payloads_go_in_segments)
        .scenario("nothing_goes_unasked", nothing_goes_unasked)
}

fn calls_have_their_outcomes() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut instance = there.instance("one");
    let lines = instance.lines_in_background();
    let _bridges = (here.bridge(&broker, "", ALL), there.bridge(&broker, ALL, ""));
    assert_eq!(here.answered_by(), "one");
    assert_eq!(here.call(Work::Echo(vec![1; 300])).unwrap(), [1; 300]);
    let calls: Vec<_> = (0..100_u8).map(|number| here.caller().start(Work::Echo(vec![number]))).collect();
    for (number, call) in (0..).zip(calls) {
        assert_eq!(call.wait().unwrap(), [number]);
    }
    here.caller().send(Work::Echo(vec![2])).unwrap();
    let all = here.caller().broadcast(&Work::Name).unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].1.as_deref().unwrap(), b"one");
    let refused = here.call(Work::Refuse).unwrap_err();
    assert!(
        matches!(&refused, CallError::Refused { refusal, .. } if refusal.code == 7 && refusal.payload == [1, 2]),
        "{refused}"
    );
    let panicked = here.call(Work::Panic).unwrap_err();
    assert!(matches!(&panicked, CallError::Panicked { reason, .. } if reason.contains("asked for")), "{panicked}");
    let lost = here.call(Work::Forward("work/nobody".to_owned())).unwrap_err();
    assert!(matches!(lost, CallError::Unknown { .. }), "{lost}");
    let mismatch = here.domain.caller::<String, Vec<u8>>(ROUTE).unwrap().call("x".to_owned()).unwrap_err();
    assert!(matches!(mismatch, CallError::Mismatch { .. }), "{mismatch}");
    let json = here.domain.caller::<Json, Json>(ROUTE).unwrap();
    assert_eq!(json.call(Json::new("\"Name\"").unwrap()).unwrap().text(), br#""one""#);
    let call = here.caller().start(Work::Wait);
    assert_eq!(next_line(&lines), "waiting");
    drop(call);
    assert_eq!(next_line(&lines), "cancelled");
    here.let_begun_call_time_out(&lines, Duration::from_millis(300));
    instance.kill();
    until("the route is gone", || matches!(here.call(Work::Name), Err(CallError::NoRoute { .. })));
}

fn local_instances_come_first() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _distant = there.instance("distant");
    let _bridges = (here.bridge(&broker, ALL, ALL), there.bridge(&broker, ALL, ALL));
    here.until_answered_by("distant");
    let mut near = here.instance("near");
    here.until_answered_by("near");
    for _ in 0..200 {
        assert_eq!(here.call(Work::Name).unwrap(), b"near");
    }
    near.kill();
    here.until_answered_by("distant");
}

fn keys_hold_over_machines() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _instances = (here.instance("one"), here.instance("two"), there.instance("three"));
    let _bridges = (here.bridge(&broker, ALL, ALL), there.bridge(&broker, ALL, ALL));
    let all = |machine: &TestMachine| machine.caller().broadcast(&Work::Name).is_ok_and(|outcomes| outcomes.len() == 3);
    until("both know all three", || all(&here) && all(&there));
    let name_of = |machine: &TestMachine, key| {
        let options =
            CallOptions { key: Some(key), headers: Headers::default().with("a", "b"), ..CallOptions::default() };
        String::from_utf8(machine.caller().call_with(Work::Name, &options).unwrap()).unwrap()
    };
    let mut names: Vec<_> = (1..60)
        .map(|key| {
            let name = name_of(&here, key);
            assert_eq!(name_of(&there, key), name, "of key {key}");
            name
        })
        .collect();
    names.sort();
    names.dedup();
    assert_eq!(names, ["one", "three", "two"]);
}

fn long_payloads_go_in_segments() {
    let Some(broker) = KafkaBroker::start(&["--message-max-bytes", "1000000"]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _instance = there.instance("one");
    let _bridges = (here.bridge(&broker, "", ALL), there.bridge(&broker, ALL, ""));
    assert_eq!(here.answered_by(), "one");
    for length in [899_000, 901_000, 3_000_000, (16 << 20) - 16] {
        let bytes: Vec<u8> = (0..length).map(|at: u32| (at % 251) as u8).collect();
        let echoed =
            here.call_with(Work::Echo(bytes.clone()), |options| options.timeout = Some(Duration::from_secs(60)));
        assert!(echoed.unwrap() == bytes, "{length} bytes");
    }
}

fn nothing_goes_unasked() {
    let Some(broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _instance = there.instance("one");
    let here_bridge = here.bridge(&broker, "", "\"other/**\"");
    here_bridge.until_event("serving");
    let there_bridge = there.bridge(&broker, ALL, "");
    here_bridge.until_event("bridge there");
    assert!(matches!(here.call(Work::Name), Err(CallError::NoRoute { .. })));
    there_bridge.stop();
    here_bridge.until_event("stopped");
    here_bridge.stop();
}
