use gapless_rpc::caller::together;
use gapless_rpc::{CallContext, CallOptions, Caller, Domain, DomainOptions, InstanceQuery, Priority};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

const SLOTS: u64 = 4;

fn options(priority: Priority) -> CallOptions {
    CallOptions { priority, timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

/// Time without a look after which a caller loses its place in the line.
const FORGOTTEN: Duration = Duration::from_millis(100);

#[test]
fn urgent_call_overtakes_low_ones() {
    let begun = Instant::now();
    // A suspended thread's calls rightly lose their places: inconclusive.
    while begun.elapsed() < PATIENCE {
        let (order, took) = order_of_calls();
        if took < FORGOTTEN {
            return check(&order);
        }
        eprintln!("begins again: the calls took {took:?}");
    }
    panic!("no {FORGOTTEN:?} in a row in {PATIENCE:?}");
}

/// Numbers below are low calls; this is the urgent one.
const LOW: u64 = SLOTS * 8;

#[derive(Default)]
struct Begun {
    numbers: Mutex<Vec<u64>>,
    changed: Condvar,
}

impl Begun {
    /// Holds low calls, except the first, until the urgent one is here or they have all the slots.
    fn begin(&self, number: u64) {
        let mut numbers = self.numbers.lock().unwrap();
        numbers.push(number);
        self.changed.notify_all();
        let is_held = |numbers: &mut Vec<u64>| !numbers.contains(&LOW) && numbers.len() < 2 * SLOTS as usize;
        while number >= SLOTS && is_held(&mut numbers) {
            numbers = self.changed.wait(numbers).unwrap();
        }
    }
}

fn order_of_calls() -> (Vec<u64>, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let domain_options = DomainOptions { slots: SLOTS as u32, ..DomainOptions::default() };
    let open = || Domain::open_directory(folder.path().join("domain"), domain_options.clone()).unwrap();
    let (server, client) = (open(), open());
    let (opened, gate) = mpsc::channel::<()>();
    let (gate, seen) = (Mutex::new(gate), Arc::new(Begun::default()));
    let begun = Arc::clone(&seen);
    let handle = move |number: u64, _: &CallContext| {
        begun.begin(number);
        let _ = gate.lock().unwrap().recv();
        Ok(number)
    };
    let _served = server.serve("gate").workers(SLOTS as usize).handle(handle).unwrap();
    let caller: Caller<u64, u64> = client.caller("gate").unwrap();
    until("the instance is heard of", || caller.query_instances(InstanceQuery::Ping).is_ok());
    let begun = Instant::now();
    let mut calls: Vec<_> = (0..LOW).map(|number| caller.start_with(number, &options(Priority::Low))).collect();
    calls.push(caller.start_with(LOW, &options(Priority::Urgent)));
    for call in &mut calls {
        assert_eq!(call.wait_for(Duration::ZERO), None);
    }
    assert_eq!(caller.statistics().offered, SLOTS);
    drop(opened);
    assert_eq!(together::all(calls), (0..=LOW).map(Ok).collect::<Vec<_>>());
    let took = begun.elapsed();
    let order = seen.numbers.lock().unwrap().clone();
    (order, took)
}

fn check(order: &[u64]) {
    let place = order.iter().position(|number| *number == LOW).unwrap();
    assert!(place < 2 * SLOTS as usize, "{order:?}");
}
