use gapless_rpc::{CallContext, CallError, CallOptions, Caller, Domain, DomainOptions};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

fn pair() -> (tempfile::TempDir, Domain, Domain) {
    let folder = tempfile::tempdir().unwrap();
    let open = || Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let (server, client) = (open(), open());
    (folder, server, client)
}

fn patient() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

#[track_caller]
fn states(changed: Result<Vec<gapless_rpc::domain::KnownRoute>, gapless_rpc::RpcError>) -> Vec<&'static str> {
    let changed = changed.unwrap();
    assert!(changed.iter().all(|instance| instance.process_id == std::process::id()));
    changed.iter().map(|instance| instance.state.as_str()).collect()
}

#[test]
fn suspended_route_takes_nothing() {
    let (_folder, server, client) = pair();
    let served = server.serve("route").handle(|number: u64, _: &CallContext| Ok(number + 1)).unwrap();
    let (near, far): (Caller<u64, u64>, Caller<u64, u64>) =
        (server.caller("route").unwrap(), client.caller("route").unwrap());
    assert_eq!((near.call(1), far.call_with(1, &patient())), (Ok(2), Ok(2)));
    for _ in 0..2 {
        assert_eq!(states(client.suspend_route("route", None, PATIENCE)), ["suspended"], "a second time is no harm");
    }
    let mut waiting = [near.start_with(2, &patient()), far.start_with(2, &patient())];
    assert!(waiting.iter_mut().all(|call| call.wait_for(Duration::from_millis(30)).is_none()));
    assert!(served.is_served());
    assert_eq!(states(client.resume_route("route", Some(std::process::id()), PATIENCE)), ["open"]);
    assert_eq!(waiting.map(gapless_rpc::Call::wait), [Ok(3), Ok(3)]);
}

#[test]
fn drained_name_is_reusable() {
    let (_folder, server, client) = pair();
    let (open, gate) = mpsc::channel::<()>();
    let (gate, (begin, has_begun)) = (Mutex::new(gate), mpsc::channel());
    let handle = move |number: u64, _: &CallContext| {
        let _ = begin.send(());
        let _ = gate.lock().unwrap().recv();
        Ok(number + 1)
    };
    let served = server.serve("route").handle(handle).unwrap();
    // Dropped before its route if this fails, because the handler waits for it.
    let open = open;
    let caller: Caller<u64, u64> = client.caller("route").unwrap();
    let (at_work, waits) = (caller.start_with(1, &patient()), caller.start_with(2, &patient()));
    has_begun.recv_timeout(PATIENCE).unwrap();
    let soon = Duration::from_millis(30);
    until("it drains", || states(client.drain_route("route", None, soon)) == ["draining"]);
    assert!(!served.is_served());
    assert_eq!(states(client.resume_route("route", None, soon)), ["draining"], "there is no way back");
    drop(open);
    assert_eq!(at_work.wait(), Ok(2));
    until("it is gone", || client.drain_route("route", None, PATIENCE).unwrap().is_empty());
    assert!(matches!(caller.call(1), Err(CallError::NoRoute { .. })));

    let again = server.serve("route").handle(|number: u64, _: &CallContext| Ok(number + 2)).unwrap();
    assert_eq!(waits.wait(), Ok(4));
    served.suspend().unwrap();
    drop(served);
    assert_eq!((server.caller("route").unwrap().call(1_u64), caller.call(1)), (Ok(3_u64), Ok(3)));
    assert!(again.is_served());
    assert_eq!(states(client.drain_route("route", None, PATIENCE)), ["gone"]);
}

#[test]
fn unknown_route_cannot_be_changed() {
    let (_folder, server, client) = pair();
    let _served = server.serve("route").handle(|number: u64, _: &CallContext| Ok(number)).unwrap();
    assert!(client.drain_route("other", None, PATIENCE).unwrap().is_empty());
    assert!(client.drain_route("route", Some(1), PATIENCE).unwrap().is_empty());
    let _notices = server.notices(|_: u64, _: &CallContext| {}).unwrap();
    let hidden = client.routes(PATIENCE).unwrap().routes.into_iter().find(gapless_rpc::domain::KnownRoute::is_hidden);
    let hidden = hidden.map_or_else(|| ".notices".to_owned(), |route| route.route);
    for name in [&*hidden, "../route"] {
        assert!(client.drain_route(name, None, PATIENCE).is_err(), "{name}");
    }
    assert!(Domain::in_process("alone").suspend_route("route", None, PATIENCE).unwrap().is_empty());
    assert_eq!(client.caller::<u64, u64>("route").unwrap().call_with(1, &patient()), Ok(1));
}
