//! The first calls of a caller wait for copies to be heard of, and no thread does: neither the one that begins a call nor one that
//! polls it.

use super::copy_process::{Ask, Told, start};
use gapless_rpc::{CallError, CallOptions, Caller, Domain, DomainOptions};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::PATIENCE;
use rustix::process::Signal;
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(2)
        .scenario("a_copy_that_stands_still_holds_up_no_thread", a_copy_that_stands_still)
        .scenario("a_call_begins_without_being_looked_at", a_call_begins_without_being_looked_at)
}

fn patient() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

fn a_copy_that_stands_still() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let copy = start(&path, 1, &["route"]);
    copy.signal(Signal::STOP);
    let client = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let began = Instant::now();
    let begin = |route: &str| {
        let caller: Caller<Ask, Told> = client.caller(route).unwrap();
        let mut call = caller.start_with(Ask::Increment(1), &patient());
        assert_eq!(call.wait_for(Duration::ZERO), None);
        (caller, call)
    };
    // Each would be held up for a second.
    let others: Vec<_> = (0..60).map(|number| begin(&format!("route/{number}"))).collect();
    let (caller, call) = begin("route");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    // What is given up, or has no time, is counted.
    let hurried = CallOptions { timeout: Some(Duration::from_nanos(1)), ..patient() };
    let late = CallError::TimedOut { route: "route".to_owned(), after: Duration::from_nanos(1), begun: false };
    assert_eq!(caller.call_with(Ask::Increment(1), &hurried), Err(late));
    drop(caller.start_with(Ask::Increment(1), &patient()));
    copy.signal(Signal::CONT);
    assert_eq!(call.wait(), Ok(Told::Number(2)));
    let counted = caller.statistics();
    assert_eq!((counted.replied, counted.cancelled, counted.timed_out, counted.in_flight), (1, 1, 1, 0));
    drop(others);
}

fn a_call_begins_without_being_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let (server, client) = (open(), open());
    let (begun, begins) = mpsc::channel();
    let handle = move |number: u64, _: &_| {
        begun.send(number).unwrap();
        Ok(number)
    };
    let _served = server.serve("route").handle(handle).unwrap();
    let caller: Caller<u64, u64> = client.caller("route").unwrap();
    let calls: Vec<_> = (0..3).map(|number| caller.start_with(number, &patient())).collect();
    for number in 0..3 {
        assert_eq!(begins.recv_timeout(PATIENCE), Ok(number), "in their order");
    }
    assert!(calls.into_iter().map(gapless_rpc::Call::wait).eq((0..3).map(Ok)));
}
