use gapless_rpc::overflow::ElasticQueueOptions;
use gapless_rpc::{CallError, CallOptions, CallerOptions, Domain, caller::together};
use gapless_testkit::wait::PATIENCE;
use std::sync::{Arc, Mutex};

#[test]
fn full_route_spills_to_disk() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::in_process("test");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let order = Arc::clone(&seen);
    let mut overflow = ElasticQueueOptions::new("numbers", folder.path());
    overflow.memory_bytes_max = 4096;
    let route = domain
        .serve("numbers")
        .queue_max(16)
        .overflow(overflow)
        .handle(move |number: u64, _context| {
            order.lock().unwrap().push(number);
            Ok(number + 1)
        })
        .unwrap();
    let caller = domain.caller::<u64, u64>("numbers").unwrap();
    assert_eq!(caller.call(0), Ok(1));
    route.suspend().unwrap();
    let patient = CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() };
    let calls: Vec<_> = (1..50_000).map(|number| caller.start_with(number, &patient)).collect();
    route.resume().unwrap();
    let outcomes = together::all(calls);
    let wrong = outcomes.iter().zip(2..).find(|(outcome, expected)| **outcome != Ok(*expected));
    assert_eq!(wrong, None, "each has its own answer");
    assert!(seen.lock().unwrap().is_sorted(), "in the order in which they were made");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no name ever stands there");
    route.drain();
    assert_eq!(caller.call(1), Err(CallError::no_route("numbers")));
}

#[test]
fn no_overflow_is_busy() {
    let domain = Domain::in_process("test");
    let route = domain.serve("numbers").queue_max(16).handle(|number: u64, _context| Ok(number)).unwrap();
    let caller = domain.caller_with::<u64, u64>("numbers", CallerOptions::default()).unwrap();
    assert_eq!(caller.call(0), Ok(0));
    route.suspend().unwrap();
    let calls: Vec<_> = (0..20).map(|number| caller.start(number)).collect();
    route.resume().unwrap();
    let busy =
        together::all(calls).into_iter().filter(|outcome| matches!(outcome, Err(CallError::Busy { .. }))).count();
    assert_eq!(busy, 4);
}

#[test]
fn disk_limit_is_busy() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::in_process("test");
    let mut overflow = ElasticQueueOptions::new("numbers", folder.path());
    (overflow.memory_bytes_max, overflow.disk_bytes_max) = (4096, 16 << 10);
    (overflow.record_bytes_max, overflow.burst_bytes_max) = (1_000, 4096);
    let route =
        domain.serve("numbers").queue_max(16).overflow(overflow).handle(|number: u64, _context| Ok(number)).unwrap();
    let caller = domain.caller::<u64, u64>("numbers").unwrap();
    assert_eq!(caller.call(0), Ok(0));
    route.suspend().unwrap();
    let mut taken = Vec::new();
    let reason = loop {
        let mut call = caller.start(7);
        match call.try_take() {
            None => taken.push(call),
            Some(Err(CallError::Busy { reason, .. })) if reason.contains("slower than they come") => {}
            Some(Err(CallError::Busy { reason, .. })) => break reason,
            Some(other) => panic!("{other:?}"),
        }
    };
    assert!(reason.contains("limit of 16384 bytes on disk is reached"), "{reason}");
    route.resume().unwrap();
    assert!(together::all(taken).into_iter().all(|outcome| outcome == Ok(7)));
    assert_eq!(caller.call(7), Ok(7), "there is room again");
}
