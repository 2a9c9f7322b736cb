//! A full disk ends the broker.

use crate::machines::{ALL, TestMachine, Work};
use gapless_rpc::{CallError, Retry};
use gapless_testkit::folder::SmallDisk;
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::ports::own_loopback;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until_some;
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(crate::AT_A_TIME)
        .scenario("calls_end_and_come_back", calls_end_and_come_back)
}

const LONG: Duration = Duration::from_secs(600);

fn calls_end_and_come_back() {
    let Some(disk) = SmallDisk::new(8 << 10) else { return };
    let arguments = ["--set", "log.index.size.max.bytes=65536"];
    let Some(mut broker) = KafkaBroker::start_at(own_loopback(), Some(&disk.path), &arguments) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let _one = there.instance("one");
    let bridge = here.bridge(&broker, "", ALL);
    let other = there.bridge(&broker, ALL, "");
    here.until_answered_by("one");
    let payload = vec![7; 500_000];
    let mut calls = 0;
    let error = until_some("the disk is full", || {
        let begun = Instant::now();
        let ended = here.call_with(Work::Echo(payload.clone()), |options| {
            (options.timeout, options.retry) = (Some(LONG), Retry::Never);
        });
        assert!(begun.elapsed() < LONG / 2, "{ended:?}");
        calls += 1;
        ended.err()
    });
    println!("full after {calls} calls: {error}");
    assert!((4..17).contains(&calls), "{calls} calls of 500 KB each way on 8 MiB");
    // The request, or its reply, may be on the disk.
    assert!(matches!(error, CallError::Unknown { .. }), "{error}");
    broker.process().wait_end("the broker ends");
    for bridge in [&bridge, &other] {
        bridge.until_event("broker_lost: ");
    }
    let error = here.call(Work::Name).unwrap_err();
    assert!(matches!(&error, CallError::NoRoute { reason, .. } if reason.contains("broker")), "{error}");
    assert_eq!(there.call(Work::Name).unwrap(), b"one");
    disk.remount("size=64m");
    broker.restart();
    here.until_answered_by("one");
    bridge.until_event("broker_back: ");
    assert_eq!(here.call(Work::Echo(payload.clone())).unwrap(), payload);
}
