//! Callers that wait for a slot are let in by the classes of their calls, whether threads or tasks wait.

use gapless_rpc::caller::together;
use gapless_rpc::{Asked, CallContext, CallOptions, Caller, Domain, DomainOptions, Priority};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const SLOTS: u64 = 4;

fn options(priority: Priority) -> CallOptions {
    CallOptions { priority, timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

#[test]
fn an_urgent_call_does_not_wait_behind_low_ones() {
    let folder = tempfile::tempdir().unwrap();
    let domain_options = DomainOptions { slots: SLOTS as u32, ..DomainOptions::default() };
    let open = || Domain::open_directory(folder.path().join("domain"), domain_options.clone()).unwrap();
    let (server, client) = (open(), open());
    let (opened, gate) = mpsc::channel::<()>();
    let (gate, order) = (Mutex::new(gate), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&order);
    let handle = move |number: u64, _: &CallContext| {
        seen.lock().unwrap().push(number);
        // Nothing is handled to its end before the gate is open.
        let _ = gate.lock().unwrap().recv();
        Ok(number)
    };
    let _served = server.serve("gate").handle(handle).unwrap();
    let caller: Caller<u64, u64> = client.caller("gate").unwrap();
    until("the copy is heard of", || caller.ask_copies(Asked::Ping).is_ok());
    // The first have the slots, the others wait.
    let (low, urgent) = (SLOTS * 8, SLOTS * 8);
    let mut calls: Vec<_> = (0..low).map(|number| caller.start_with(number, &options(Priority::Low))).collect();
    calls.push(caller.start_with(urgent, &options(Priority::Urgent)));
    for call in &mut calls {
        assert_eq!(call.wait_for(Duration::ZERO), None);
    }
    assert_eq!(caller.statistics().offered, SLOTS);
    drop(opened);
    assert_eq!(together::all(calls), (0..=low).map(Ok).collect::<Vec<_>>());
    let order = order.lock().unwrap();
    let place = order.iter().position(|number| *number == urgent).unwrap();
    // Those that had slots may come before it, and some that were called with it or while its thread had no turn.
    assert!(place < 4 * SLOTS as usize, "{order:?}");
    assert!(order.iter().filter(|number| **number < SLOTS).is_sorted(), "{order:?}");
}
