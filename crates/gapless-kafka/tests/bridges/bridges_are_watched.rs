use crate::machines::{ALL, ROUTE, TestMachine, Work};
use gapless_kafka::peers::PeerState;
use gapless_kafka::status::{BridgeStatus, STATUS_ROUTE};
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Json};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{until, until_some};
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!()).scenario("the_status_follows_the_bridge", the_status_follows_the_bridge)
}

fn ask(machine: &TestMachine, timeout: Duration) -> Result<BridgeStatus, CallError> {
    let call = CallOptions { timeout: Some(timeout), ..CallOptions::default() };
    let caller: Caller<Json, Json> =
        machine.domain.caller_with(STATUS_ROUTE, CallerOptions { call, ..CallerOptions::default() }).unwrap();
    let reply = caller.call(Json::new("null").unwrap())?;
    Ok(serde_json::from_slice(reply.text()).unwrap())
}

fn status(machine: &TestMachine) -> BridgeStatus {
    ask(machine, Duration::from_secs(60)).unwrap()
}

fn the_status_follows_the_bridge() {
    let Some(mut broker) = KafkaBroker::start(&[]) else { return };
    let (here, there) = (TestMachine::new("here"), TestMachine::new("there"));
    let mut instance = there.instance("one");
    let bridge = here.bridge(&broker, "", ALL);
    let _other = there.bridge(&broker, ALL, "");
    assert_eq!(here.answered_by(), "one");
    let patient = CallOptions { timeout: Some(Duration::from_secs(600)), ..CallOptions::default() };
    let call = here.caller().start_with(Work::Wait, &patient);
    assert_eq!(instance.line(), "waiting");
    let (near, far) = (status(&here), status(&there));
    assert!(near.broker.is_connected && near.broker.brokers == [broker.address()], "{near:?}");
    assert_eq!(
        (&*near.name, &*near.prefix, near.process_id),
        ("here", "test", bridge.process.pid().as_raw_nonzero().get() as u32)
    );
    let [peer] = &near.peers[..] else { panic!("{near:?}") };
    assert_eq!((&*peer.name, peer.state, peer.incarnation), ("there", PeerState::Alive, far.incarnation));
    assert_eq!((peer.calls_to.calls, peer.calls_from.calls, far.peers[0].calls_from.calls), (1, 0, 1));
    let [taken] = &near.taken[..] else { panic!("{near:?}") };
    assert!(taken.route == ROUTE && taken.bridges == ["there"] && taken.is_served, "{taken:?}");
    assert_eq!((&*far.offered[0].route, far.offered[0].instances, far.offered[0].calls), (ROUTE, 1, 1));
    drop(call);
    assert_eq!(instance.line(), "cancelled");
    until("the call is counted no more", || status(&here).peers[0].calls_to.calls == 0);

    bridge.process.stop();
    let begun = Instant::now();
    let silent = ask(&here, Duration::from_secs(1)).unwrap_err();
    assert!(matches!(silent, CallError::TimedOut { .. }) && begun.elapsed() < Duration::from_secs(30), "{silent}");
    bridge.process.signal(rustix::process::Signal::CONT);

    broker.kill();
    let lost = until_some("the loss is shown", || Some(status(&here)).filter(|status| !status.broker.is_connected));
    assert!(lost.broker.since_ms.is_some() && lost.broker.reason.is_some(), "{:?}", lost.broker);
}
