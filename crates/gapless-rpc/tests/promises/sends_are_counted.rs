use gapless_rpc::overflow::ElasticQueueOptions;
use gapless_rpc::{CallContext, CallOptions, Caller, CallerOptions, Domain, DomainOptions, Rejection};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::{Arc, Mutex};

#[test]
fn sends_count_as_offered() {
    const MANY: u64 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let server = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let at_gate = Arc::clone(&gate);
    let take = move |_: u64, _context: &CallContext| {
        drop(at_gate.lock());
        Ok(())
    };
    let route = server.serve("take").handle(take).unwrap();
    let client = Domain::open_directory(&path, DomainOptions { slots: 4, ..DomainOptions::default() }).unwrap();
    let overflow = Some(ElasticQueueOptions::new("sends", folder.path()));
    let options = CallerOptions { overflow, ..CallerOptions::default() };
    let caller = client.caller_with::<u64, ()>("take", options).unwrap();
    let patient = CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() };
    (0..MANY).for_each(|number| caller.send_with(number, &patient).unwrap());
    drop(closed);
    until("all are taken", || route.statistics().replied == MANY);
    until("all have ended", || caller.statistics().in_flight == 0);
    let counted = caller.statistics();
    assert!(counted.overflowed > 0, "four slots are not enough: {counted:?}");
    assert_eq!((counted.offered, counted.sent, counted.withdrawn), (MANY, MANY, 0), "{counted:?}");
}

#[test]
fn forwarded_send_counts_as_send() {
    const MANY: u64 = 20;
    let folder = tempfile::tempdir().unwrap();
    let open = || Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let (server, client) = (open(), open());
    let forward = |_: u64, context: &CallContext| -> Result<u64, Rejection> { Err(context.forward("back")) };
    let _front = server.serve("front").handle(forward).unwrap();
    let back = server.serve("back").handle(|number: u64, _: &CallContext| Ok(number)).unwrap();
    let caller: Caller<u64, u64> = client.caller("front").unwrap();
    let patient = CallOptions { wait_for_route: Some(PATIENCE), timeout: Some(PATIENCE), ..CallOptions::default() };
    // A route's counts exist as long as it has a caller.
    let _kept: Caller<u64, u64> = client.caller("back").unwrap();
    (0..MANY).for_each(|number| caller.send_with(number, &patient).unwrap());
    until("all have arrived", || back.statistics().replied == MANY);
    let counted = |route: &str| {
        client.caller_statistics().unwrap().into_iter().find(|row| row.route == route).unwrap().statistics
    };
    until("all have ended", || counted("back").in_flight == 0);
    let (front, back) = (counted("front"), counted("back"));
    assert_eq!((front.offered, front.sent, front.forwarded, front.in_flight), (MANY, MANY, MANY, 0), "{front:?}");
    assert_eq!((back.offered, back.sent, back.replied), (MANY, MANY, MANY), "{back:?}");
}
