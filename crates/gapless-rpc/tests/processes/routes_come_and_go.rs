//! Routes are withdrawn and served again, and calls that find no copy end in their time.

use gapless_rpc::{CallError, CallOptions, Caller, Domain, DomainOptions, Message};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::PATIENCE;
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(2)
        .scenario("a_route_is_withdrawn_and_served_again_as_often_as_one_likes", served_again_as_often_as_one_likes)
        .scenario("a_task_that_waits_for_a_route_waits_no_longer_than_it_may", a_task_waits_no_longer_than_it_may)
        .scenario("old_and_new_copies_of_a_route_both_read_its_requests", old_and_new_copies_read_its_requests)
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

mod first {
    use super::*;
    #[derive(Clone, Serialize, Deserialize, Message)]
    pub struct Order {
        pub id: u64,
    }
}

mod second {
    use super::*;
    #[derive(Clone, Serialize, Deserialize, Message)]
    #[message(version = 2)]
    pub struct Order {
        pub id: u64,
        #[serde(default)]
        #[message(since = 2)]
        pub copies: u32,
    }
}

mod third {
    use super::*;
    #[derive(Clone, Serialize, Deserialize, Message)]
    #[message(version = 3)]
    pub struct Order {
        pub id: u64,
        #[serde(default)]
        #[message(since = 2)]
        pub copies: u32,
        #[serde(default)]
        #[message(since = 3)]
        pub marker: u64,
    }
}

fn old_and_new_copies_read_its_requests() {
    let (folder, old, client) = pair();
    let new = Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
    let caller: Caller<third::Order, u64> = client.caller("route").unwrap();
    let order = third::Order { id: 1, copies: 5, marker: 9 };
    let of_old = old.serve("route").handle(|order: first::Order, _| Ok(order.id)).unwrap();
    // One that begins before the copy is known has the form of its own program.
    gapless_testkit::wait::until("the old copy answers", || caller.call(order.clone()) == Ok(1));
    let of_new = new.serve("route").handle(|order: second::Order, _| Ok(order.id + u64::from(order.copies))).unwrap();
    // Both have the table, and nothing of the second version reaches a copy that would not read it.
    gapless_testkit::wait::until("both copies answer", || caller.broadcast(&order).unwrap().len() == 2);
    for (_, outcome) in caller.broadcast(&order).unwrap() {
        assert_eq!(outcome, Ok(1));
    }
    drop(of_old);
    gapless_testkit::wait::until("the newer form is spoken again", || {
        caller.call_with(order.clone(), &patient()).unwrap() == 6
    });
    drop(of_new);
}
