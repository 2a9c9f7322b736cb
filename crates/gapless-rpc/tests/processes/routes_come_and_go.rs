//! Routes are withdrawn and served again, and calls that find no copy end in their time.

use gapless_rpc::{CallError, CallOptions, Caller, Domain, DomainOptions};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::PATIENCE;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(2)
        .scenario("a_route_is_withdrawn_and_served_again_as_often_as_one_likes", served_again_as_often_as_one_likes)
        .scenario("a_task_that_waits_for_a_route_waits_no_longer_than_it_may", a_task_waits_no_longer_than_it_may)
        .scenario("a_call_that_no_copy_takes_ends_with_the_last_copy", a_call_ends_with_the_last_copy)
}

/// Two domains, as two processes have them.
fn pair() -> (tempfile::TempDir, Domain, Domain) {
    let folder = tempfile::tempdir().unwrap();
    let open = || Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let (server, client) = (open(), open());
    (folder, server, client)
}

fn patient() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

fn served_again_as_often_as_one_likes() {
    let (_folder, server, client) = pair();
    let caller: Caller<u64, u64> = client.caller("route").unwrap();
    // More often than there may be tables on a connection.
    for cycle in 0..1500_u64 {
        let route = server.serve("route").handle(move |number: u64, _| Ok(number + cycle)).unwrap();
        // Every third is gone perhaps before the table has come.
        if cycle % 3 != 0 {
            assert_eq!(caller.call_with(1, &patient()), Ok(1 + cycle), "cycle {cycle}");
        }
        drop(route);
    }
}

fn a_task_waits_no_longer_than_it_may() {
    let (_folder, _server, client) = pair();
    let caller: Caller<u64, u64> = client.caller("nowhere").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let options = CallOptions { wait_for_route: Some(Duration::from_millis(30)), ..patient() };
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, caller.start_with(1, &options)).await });
    assert_eq!(ended.expect("it ends"), Err(CallError::NoRoute { route: "nowhere".to_owned() }));
    let options = CallOptions { timeout: Some(Duration::from_millis(30)), ..patient() };
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, caller.start_with(1, &options)).await });
    assert!(matches!(ended.expect("it ends"), Err(CallError::TimedOut { begun: false, .. })));
}

fn a_call_ends_with_the_last_copy() {
    let (_folder, server, client) = pair();
    let serve = || server.serve("route").handle(|number: u64, _| Ok(number + 1)).unwrap();
    let caller: Caller<u64, u64> = client.caller("route").unwrap();
    let route = serve();
    assert_eq!(caller.call_with(1, &patient()), Ok(2));
    route.suspend().unwrap();
    let at_once = CallOptions { timeout: None, ..CallOptions::default() };
    let ends = caller.start_with(1, &at_once);
    let goes_on = caller.start_with(2, &patient());
    let of_key = caller.start_with(3, &CallOptions { key: Some(7), ..patient() });
    drop(route);
    assert_eq!(ends.wait(), Err(CallError::NoRoute { route: "route".to_owned() }));
    let route = serve();
    assert_eq!((goes_on.wait(), of_key.wait()), (Ok(3), Ok(4)));
    route.suspend().unwrap();
    let unended = caller.start_with(1, &at_once);
    drop((caller, client));
    assert_eq!(unended.wait(), Err(CallError::Closed));
}
