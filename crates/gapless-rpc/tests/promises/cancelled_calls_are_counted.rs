use gapless_rpc::{CallError, CallOptions, Caller, Domain, DomainOptions, InstanceQuery};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

#[test]
fn cancelled_waiting_calls_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let options = DomainOptions { slots: 1, ..DomainOptions::default() };
    let open = || Domain::open_directory(folder.path().join("domain"), options.clone()).unwrap();
    let (server, client) = (open(), open());
    let (opened, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let handle = move |number: u64, _: &_| {
        let _ = gate.lock().unwrap().recv();
        Ok(number)
    };
    let served = server.serve("gate").handle(handle).unwrap();
    let caller: Caller<u64, u64> = client.caller("gate").unwrap();
    let patient = CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() };
    let hurried = CallOptions { timeout: Some(Duration::from_nanos(1)), ..patient.clone() };
    let counted = || {
        let counted = caller.statistics();
        (counted.offered, counted.replied, counted.cancelled, counted.timed_out, counted.in_flight)
    };
    until("the instance is heard of", || caller.query_instances(InstanceQuery::Ping).is_ok());
    let mut first = caller.start_with(1, &patient);
    assert_eq!(first.wait_for(Duration::ZERO), None);
    drop(caller.start_with(2, &patient));
    let mut in_line = caller.start_with(3, &patient);
    assert_eq!(in_line.wait_for(Duration::ZERO), None);
    drop(in_line);
    drop(caller.start_with(4, &hurried));
    assert_eq!(counted(), (1, 0, 2, 1, 1));
    drop(opened);
    assert_eq!(first.wait(), Ok(1));
    assert_eq!(counted(), (1, 1, 2, 1, 0));
    drop((served, server));
    until("the instance has left", || client.routes(Duration::ZERO).unwrap().routes.is_empty());
    let mut waits = caller.start_with(5, &patient);
    assert_eq!(waits.try_take(), None);
    drop(waits);
    assert_eq!(counted(), (1, 1, 3, 1, 0));
    let mut waits = caller.start_with(6, &patient);
    assert_eq!(waits.try_take(), None);
    let _here = client.serve("gate").handle(|number: u64, _| Ok(number)).unwrap();
    assert_eq!(waits.wait(), Ok(6));
    assert_eq!(counted(), (1, 1, 3, 1, 0));
}

#[test]
fn route_counts_expired_requests() {
    let domain = Domain::in_process("test");
    let served = domain.serve("route").handle(|number: u64, _| Ok(number)).unwrap();
    served.suspend().unwrap();
    let caller: Caller<u64, u64> = domain.caller("route").unwrap();
    let hurried = CallOptions { timeout: Some(Duration::from_millis(1)), ..CallOptions::default() };
    assert!(matches!(caller.call_with(1, &hurried), Err(CallError::TimedOut { begun: false, .. })));
    caller.send_with(2, &hurried).unwrap();
    std::thread::sleep(Duration::from_millis(2));
    served.resume().unwrap();
    assert_eq!(caller.call(3), Ok(3));
    until("the end of the handler", || served.statistics().in_flight == 0);
    assert_eq!((served.statistics().too_late, served.statistics().begun), (2, 1));
}
