use gapless_rpc::{Call, CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, Reach};
use std::sync::mpsc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

fn caller(domain: &Domain, reach: Reach, timeout: Option<Duration>, wait_for_route: Duration) -> Caller<u64, u64> {
    let call = CallOptions { timeout, wait_for_route: Some(wait_for_route), ..CallOptions::default() };
    domain.caller_with("late", CallerOptions { call, reach, ..CallerOptions::default() }).unwrap()
}

fn waiting(call: Call<u64>) -> Call<u64> {
    assert!(format!("{call:?}").contains("waiting for its route"), "{call:?}");
    assert_eq!(call.attempts(), 0);
    call
}

#[test]
fn every_kind_of_wait() {
    let (_folder, _elsewhere, machine) = super::tasks_serve_processes::pair();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (domain, reach) in
        [(Domain::in_process("test"), Reach::Nearest), (machine.clone(), Reach::ThisProcess), (machine, Reach::Nearest)]
    {
        let (caller, (tell, told)) = (caller(&domain, reach, Some(LONG), LONG), mpsc::channel());
        let (blocking, awaited, mut polled) =
            (waiting(caller.start(1)), waiting(caller.start(2)), waiting(caller.start(3)));
        let blocking = std::thread::spawn(move || blocking.wait());
        let (sender, tell_sent) = (caller.clone(), tell.clone());
        let sending = std::thread::spawn(move || sender.send(5));
        waiting(caller.start(4)).on_end(move |outcome| tell.send(outcome).unwrap());
        assert_eq!(polled.try_take(), None);
        assert_eq!(polled.wait_for(Duration::from_millis(1)), None);
        let other = domain.serve("later").handle(|number: u64, _context| Ok(number)).unwrap();
        assert_eq!(polled.try_take(), None, "another route");
        drop(other);
        let _served = domain.serve("late").handle(move |number: u64, _context| {
            if number == 5 {
                tell_sent.send(Ok(50)).unwrap();
            }
            Ok(number * 10)
        });
        assert_eq!(blocking.join().unwrap(), Ok(10), "{reach:?}");
        assert_eq!(runtime.block_on(awaited), Ok(20));
        assert_eq!(polled.wait_for(LONG), Some(Ok(30)));
        assert_eq!(sending.join().unwrap(), Ok(()));
        let mut told = [told.recv_timeout(LONG).unwrap(), told.recv_timeout(LONG).unwrap()];
        told.sort_by_key(|outcome| outcome.clone().ok());
        assert_eq!(told, [Ok(40), Ok(50)]);
    }
}

#[test]
fn wait_timeout_is_no_route() {
    for reach in [Reach::OtherProcesses, Reach::Nearest] {
        for time in [0, 1, 1_000, 1_000_000].map(Duration::from_nanos) {
            let folder = tempfile::tempdir().unwrap();
            let domain = Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap();
            // Discovery is complete when this call has ended.
            let first = caller(&domain, reach, Some(LONG), Duration::ZERO).call(0);
            assert!(matches!(first, Err(CallError::NoRoute { .. })), "{first:?}");
            let caller = caller(&domain, reach, Some(time), time);
            for _ in 0..3 {
                let end = caller.call(1);
                assert!(matches!(end, Err(CallError::NoRoute { .. })), "{reach:?}, {time:?}: {end:?}");
            }
        }
    }
}

#[test]
fn first_server_gets_the_call() {
    let (_folder, elsewhere, domain) = super::tasks_serve_processes::pair();
    let caller = caller(&domain, Reach::Nearest, Some(LONG), LONG);
    let call = waiting(caller.start(1));
    let there = elsewhere.serve("late").handle(|number: u64, _context| Ok(number + 100)).unwrap();
    assert_eq!(call.wait(), Ok(101));
    drop(there);
    let mut call = caller.start(2);
    while !format!("{call:?}").contains("waiting for its route") {
        assert!(call.try_take().is_none_or(|outcome| outcome.is_err()));
        call = caller.start(2);
    }
    let _here = domain.serve("late").handle(|number: u64, _context| Ok(number + 10)).unwrap();
    assert_eq!(call.wait(), Ok(12));
}

#[test]
fn wait_ends_with_the_timeout() {
    let (_folder, _elsewhere, machine) = super::tasks_serve_processes::pair();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let short = Duration::from_millis(20);
    for (domain, reach) in [(Domain::in_process("test"), Reach::Nearest), (machine, Reach::ThisProcess)] {
        let (no_patience, no_time) = (caller(&domain, reach, None, short), caller(&domain, reach, Some(short), LONG));
        let no_route = CallError::no_route("late");
        for (caller, error) in [(no_patience, no_route.clone()), (no_time, no_route)] {
            assert_eq!(waiting(caller.start(1)).wait(), Err(error.clone()));
            assert_eq!(runtime.block_on(waiting(caller.start(1))), Err(error.clone()));
            assert_eq!(caller.send(1), Err(error.clone()));
            let mut polled = waiting(caller.start(1));
            let ended = std::iter::from_fn(|| Some(polled.try_take())).flatten().next();
            assert_eq!(ended, Some(Err(error.clone())));
            assert_eq!(polled.try_take(), None, "taken already");
            let (tell, told) = mpsc::channel();
            waiting(caller.start(1)).on_end(move |outcome| tell.send(outcome).unwrap());
            assert_eq!(told.recv_timeout(LONG), Ok(Err(error)));
        }
    }
}

#[test]
fn dropped_waiting_call_never_begins() {
    let domain = Domain::in_process("test");
    let caller = caller(&domain, Reach::Nearest, Some(LONG), LONG);
    drop(waiting(caller.start(1)));
    let call = CallOptions { wait_for_route: Some(LONG), ..CallOptions::default() };
    let wrong = domain.caller_with::<String, u64>("late", CallerOptions { call, ..CallerOptions::default() }).unwrap();
    let wrong = wrong.start(String::new());
    let _served = domain.serve("late").handle(|number: u64, _context| {
        assert_ne!(number, 1, "it was dropped");
        Ok(number)
    });
    assert!(matches!(wrong.wait(), Err(CallError::Mismatch { .. })));
    assert_eq!(caller.call(2), Ok(2));
}

/// Wherever the call is polled later.
#[test]
fn nested_wait_has_the_deadline() {
    let domain = Domain::in_process("test");
    let inner = caller(&domain, Reach::Nearest, Some(LONG), LONG);
    let (give, given) = mpsc::channel();
    let _outer = domain.serve("outer").handle(move |number: u64, _context| {
        give.send(waiting(inner.start(number))).unwrap();
        Ok(number)
    });
    let time = Duration::from_millis(1_500);
    let outer = domain.caller::<u64, u64>("outer").unwrap();
    assert_eq!(outer.call_with(7, &CallOptions { timeout: Some(time), ..CallOptions::default() }), Ok(7));
    let outcome = given.recv().unwrap().wait();
    assert!(matches!(outcome, Err(CallError::NoRoute { .. })), "long before its own time: {outcome:?}");
}
