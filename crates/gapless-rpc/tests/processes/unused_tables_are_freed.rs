use super::AT_A_TIME;
use gapless_rpc::caller::together;
use gapless_rpc::{CallContext, CallError, CallOptions, Caller, Domain, DomainOptions, Rejection, ServedRoute};
use gapless_testkit::random::rounds;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

pub fn module() -> Module {
    // One at a time: they count the descriptors of the process.
    Module::new(module_path!())
        .scenario("forwards_leak_no_descriptor", forwards_leak_no_descriptor)
        .scenario("dropped_callers_leak_nothing", dropped_callers_leak_nothing)
        .scenario("rejoining_process_leaks_nothing", rejoining_process_leaks_nothing)
        .scenario("undeliverable_notice_keeps_no_table", undeliverable_notice_keeps_no_table)
}

pub fn shared_module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("sends_outlive_their_caller", sends_outlive_their_caller)
        .scenario("counters_live_with_the_table", counters_live_with_the_table)
        .scenario("table_limit_is_reported", table_limit_is_reported)
        .scenario("more_calls_than_slots_can_be_joined", more_calls_than_slots_can_be_joined)
}

fn pair(options: &DomainOptions) -> (tempfile::TempDir, Domain, Domain) {
    let folder = tempfile::tempdir().unwrap();
    let open = || Domain::open_directory(folder.path().join("domain"), options.clone()).unwrap();
    let (server, client) = (open(), open());
    (folder, server, client)
}

fn patient() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn regions() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("gapless-region")).count()
}

fn forwards_leak_no_descriptor() {
    let (_folder, server, client) = pair(&DomainOptions::default());
    let forward = |number: u64, context: &CallContext| -> Result<u64, Rejection> {
        Err(context.forward(format!("nowhere/{number}")))
    };
    let _served = server.serve("front").handle(forward).unwrap();
    let caller: Caller<u64, u64> = client.caller("front").unwrap();
    let to_nowhere = |number: u64| {
        let options = CallOptions { wait_for_route: None, ..patient() };
        let outcome = caller.call_with(number, &options).unwrap_err();
        let is_meant = |route: &str| route.strip_prefix("nowhere/").is_some_and(|end| end == number.to_string());
        assert!(matches!(&outcome, CallError::Unknown { route, .. } if is_meant(route)), "{outcome}");
    };
    to_nowhere(0);
    let before = (descriptors(), regions());
    (1..=rounds(10_000, 2_000)).for_each(to_nowhere);
    assert_eq!((descriptors(), regions()), before);
}

fn dropped_callers_leak_nothing() {
    let (_folder, server, client) = pair(&DomainOptions { slots: 4, ..DomainOptions::default() });
    let serve =
        |number: usize| server.serve(&format!("route/{number}")).handle(|number: u64, _| Ok(number + 1)).unwrap();
    let served: Vec<ServedRoute> = (0..20).map(serve).collect();
    let first: Caller<u64, u64> = client.caller("route/0").unwrap();
    assert_eq!(first.call_with(1, &patient()), Ok(2));
    let before = (descriptors(), regions());
    for number in 0..rounds(1000, 200) {
        let caller: Caller<u64, u64> = client.caller(&format!("route/{}", number % 20)).unwrap();
        assert_eq!(caller.call_with(number, &patient()), Ok(number + 1));
        let call = caller.start_with(number, &patient());
        drop(caller);
        assert_eq!(call.wait(), Ok(number + 1));
    }
    until("the tables are gone", || served.iter().map(ServedRoute::callers).sum::<usize>() == 1);
    until("their memory is gone", || descriptors() <= before.0 && regions() <= before.1);
    assert_eq!(first.call_with(1, &patient()), Ok(2));
}

fn rejoining_process_leaks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let client = open();
    let caller: Caller<u64, u64> = client.caller("route").unwrap();
    let come_and_go = |number: u64| {
        let server = open();
        let _served = server.serve("route").handle(|number: u64, _| Ok(number + 1)).unwrap();
        assert_eq!(caller.call_with(number, &patient()), Ok(number + 1));
    };
    come_and_go(0);
    until("it is gone", || client.routes(PATIENCE).unwrap().routes.is_empty());
    // The connection may stay open a moment longer, so this is an upper bound.
    let before = (descriptors(), regions());
    (1..=rounds(100, 30)).for_each(come_and_go);
    until("nothing is left of it", || descriptors() <= before.0 && regions() <= before.1);
}

fn sends_outlive_their_caller() {
    let (_folder, server, client) = pair(&DomainOptions { slots: 4, ..DomainOptions::default() });
    let gate = Arc::new((Mutex::new((false, 0)), Condvar::new()));
    let opened = Arc::clone(&gate);
    let handle = move |number: u64, _: &CallContext| {
        let state = opened.1.wait_while(opened.0.lock().unwrap(), |(is_open, _)| !*is_open);
        state.unwrap().1 += number;
        Ok(number)
    };
    let served = server.serve("slow").handle(handle).unwrap();
    let caller: Caller<u64, u64> = client.caller("slow").unwrap();
    (0..4).for_each(|_| caller.send_with(1, &patient()).unwrap());
    drop(caller);
    gate.0.lock().unwrap().0 = true;
    gate.1.notify_all();
    until("all have arrived", || gate.0.lock().unwrap().1 == 4);
    until("the table is gone", || served.callers() == 0);
}

/// It is not known yet that the process has gone; no later event reports the notice.
fn undeliverable_notice_keeps_no_table() {
    for _ in 0..100 {
        let (_folder, server, client) = pair(&DomainOptions::default());
        let (tell, addresses) = mpsc::channel();
        let desk = move |number: u64, context: &CallContext| {
            tell.send(context.caller_address()).unwrap();
            Ok(number)
        };
        let served = server.serve("desk").handle(desk).unwrap();
        let notices = client.notices(|_: u64, _: &CallContext| {}).unwrap();
        let caller: Caller<u64, u64> = client.caller("desk").unwrap();
        assert_eq!(caller.call_with(1, &patient()), Ok(1));
        let address = addresses.recv().unwrap();
        drop((caller, notices, client));
        until("its table is gone", || served.callers() == 0);
        let before = regions();
        if server.notify(&address, 7_u64).is_ok() {
            // The client's own resources may also be released only now.
            return until("the table of what waits in vain is gone", || regions() <= before);
        }
    }
    panic!("it was known each time that the receiver is gone");
}

fn counters_live_with_the_table() {
    let (folder, server, client) = pair(&DomainOptions::default());
    let forward = |_: u64, context: &CallContext| -> Result<u64, Rejection> { Err(context.forward("back")) };
    let _front = server.serve("front").handle(forward).unwrap();
    let back = server.serve("back").handle(|number: u64, _| Ok(number + 1)).unwrap();
    let caller: Caller<u64, u64> = client.caller("front").unwrap();
    // The only user of the table of the route that it is forwarded to.
    for number in 0..3 {
        assert_eq!(caller.call_with(number, &patient()), Ok(number + 1));
    }
    let counted = |route: &str| client.caller_statistics().unwrap().into_iter().find(|row| row.route == route);
    assert_eq!(counted("back").unwrap().statistics.replied, 3);
    until("the table is gone", || back.callers() == 0);
    until("its counts are gone", || counted("back").is_none());
    let statistics = caller.statistics();
    assert_eq!((statistics.offered, statistics.forwarded), (3, 3), "the caller's counts stay");

    // A call without an instance is counted, though there is no table; its counts go with its caller.
    let early: Caller<u64, u64> = client.caller("late").unwrap();
    assert!(matches!(early.call(1), Err(CallError::NoRoute { .. })));
    assert!(matches!(early.send(1), Err(CallError::NoRoute { .. })));
    assert_eq!((early.statistics().no_route, counted("late").unwrap().statistics.no_route), (2, 2));
    let _late = server.serve("late").handle(|number: u64, _| Ok(number + 1)).unwrap();
    assert_eq!(early.call_with(1, &patient()), Ok(2));
    for statistics in [early.statistics(), counted("late").unwrap().statistics] {
        assert_eq!((statistics.no_route, statistics.replied, statistics.in_flight), (2, 1, 0));
    }
    drop((early, caller));
    let is_of_calls = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("calls-");
    let files = || std::fs::read_dir(folder.path().join("domain")).unwrap();
    until("no file is left", || !files().any(|entry| is_of_calls(entry.unwrap())));
    let again: Caller<u64, u64> = client.caller("late").unwrap();
    assert_eq!(again.call_with(1, &patient()), Ok(2));
    assert_eq!(again.statistics().offered, 1, "it begins anew");
}

fn table_limit_is_reported() {
    let (_folder, _server, client) =
        pair(&DomainOptions { slots: 1, payload_length_max: 64, ..DomainOptions::default() });
    let options = CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() };
    let mut waiting = Vec::new();
    let refused = loop {
        let caller: Caller<u64, u64> = client.caller(&format!("route/{}", waiting.len())).unwrap();
        let mut call = caller.start_with(1, &options);
        match call.wait_for(Duration::ZERO) {
            Some(outcome) => break outcome,
            None => waiting.push(call),
        }
        assert!(waiting.len() <= 2000, "there is no limit");
    };
    let Err(CallError::Busy { reason, .. }) = refused else { panic!("{refused:?} after {}", waiting.len()) };
    assert!(waiting.len() >= 1024 && reason.contains("1024 routes"), "{reason} after {}", waiting.len());
}

fn more_calls_than_slots_can_be_joined() {
    let (_folder, server, client) = pair(&DomainOptions { slots: 2, ..DomainOptions::default() });
    let meeting = Arc::new((Mutex::new(0_u64), Condvar::new()));
    let handle = move |number: u64, _: &CallContext| {
        let mut come = meeting.0.lock().unwrap();
        *come += 1;
        let pair = come.div_ceil(2);
        meeting.1.notify_all();
        let waited = meeting.1.wait_timeout_while(come, PATIENCE / 4, |come| *come < pair * 2).unwrap();
        Ok(if waited.1.timed_out() { u64::MAX } else { number })
    };
    let _served = server.serve("pairs").workers(2).handle(handle).unwrap();
    let caller: Caller<u64, u64> = client.caller("pairs").unwrap();
    assert_eq!(together::all([0, 1].map(|number| caller.start_with(number, &patient()))), [Ok(0), Ok(1)]);
    let calls = || (0..6).map(|number| caller.start_with(number, &patient())).collect::<Vec<_>>();
    let expected: Vec<_> = (0..6).map(Ok).collect();
    assert_eq!(together::all(calls()), expected);
    let within = together::within(calls(), Duration::MAX);
    assert_eq!(within.into_iter().flatten().collect::<Vec<_>>(), expected);
    let mut calls = calls();
    let mut taken = calls.swap_remove(0);
    assert!(matches!(taken.wait_for(PATIENCE), Some(Ok(_))));
    assert_eq!(taken.attempts(), 1, "readable after the outcome was taken");
}
