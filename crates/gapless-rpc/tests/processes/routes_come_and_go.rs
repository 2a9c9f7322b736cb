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
