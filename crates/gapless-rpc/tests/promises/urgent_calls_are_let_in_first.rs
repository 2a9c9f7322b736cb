//! Callers that wait for a slot are let in by the classes of their calls, whether threads or tasks wait.

use gapless_rpc::caller::together;
use gapless_rpc::{CallContext, CallOptions, Caller, CopyQuery, Domain, DomainOptions, Priority};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

const SLOTS: u64 = 4;

fn options(priority: Priority) -> CallOptions {
    CallOptions { priority, timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

/// A caller that has not looked for so long has lost its place in the line.
const FORGOTTEN: Duration = Duration::from_millis(100);

#[test]
fn an_urgent_call_does_not_wait_behind_low_ones() {
    let begun = Instant::now();
    // Where the machine gave this thread no turn for so long, its calls have lost their places as they should: nothing is shown.
    while begun.elapsed() < PATIENCE {
        let (order, took) = order_of_calls();
        if took < FORGOTTEN {
            return check(&order);
        }
        eprintln!("begins again: the calls took {took:?}");
    }
    panic!("no {FORGOTTEN:?} in a row in {PATIENCE:?}");
}

/// Numbers of low calls from 0 on, and behind them that of the urgent one.
const LOW: u64 = SLOTS * 8;

/// In which order they are begun, and how long they wait at most.
fn order_of_calls() -> (Vec<u64>, Duration) {
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
    until("the copy is heard of", || caller.query_copies(CopyQuery::Ping).is_ok());
    let begun = Instant::now();
    // The first have the slots, the others wait.
    let mut calls: Vec<_> = (0..LOW).map(|number| caller.start_with(number, &options(Priority::Low))).collect();
    calls.push(caller.start_with(LOW, &options(Priority::Urgent)));
    for call in &mut calls {
        assert_eq!(call.wait_for(Duration::ZERO), None);
    }
    assert_eq!(caller.statistics().offered, SLOTS);
    drop(opened);
    assert_eq!(together::all(calls), (0..=LOW).map(Ok).collect::<Vec<_>>());
    let took = begun.elapsed();
    let order = order.lock().unwrap().clone();
    (order, took)
}

fn check(order: &[u64]) {
    let place = order.iter().position(|number| *number == LOW).unwrap();
    // Those that had slots may come before it, and some that were called with it or while its thread had no turn.
    assert!(place < 4 * SLOTS as usize, "{order:?}");
    assert!(order.iter().filter(|number| **number < SLOTS).is_sorted(), "{order:?}");
}
