use super::tasks_serve_processes::pair;
use gapless_rpc::message::{Encoding, MessageError};
use gapless_rpc::overflow::ElasticQueueOptions;
use gapless_rpc::{
    CallContext, CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, Interceptor, Message, Refusal,
    Rejection,
};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Barrier, Mutex, Once, mpsc};
use std::time::{Duration, Instant};

/// 13 panics when it is encoded, 14 when it is decoded; 15 is decoded as 13.
#[derive(Debug, PartialEq, Eq)]
struct Unlucky(u64);

impl Message for Unlucky {
    const TYPE_NAME: &'static str = "Unlucky";
    const ENCODING: Encoding = Encoding::Bytes;
    fn fingerprint() -> u64 {
        13
    }
    fn encode(&self, into: &mut Vec<u8>) -> Result<(), MessageError> {
        assert_ne!(self.0, 13, "unlucky to write");
        into.extend_from_slice(&self.0.to_le_bytes());
        Ok(())
    }
    fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let number = u64::from_le_bytes(bytes.try_into().unwrap());
        assert_ne!(number, 14, "unlucky to read");
        Ok(Self(if number == 15 { 13 } else { number }))
    }
}

#[test]
fn panicking_message_ends_its_call() {
    let (_folder, server, client) = pair();
    let route = server.serve("unlucky").handle(|request: Unlucky, _context| Ok(Unlucky(request.0 + 2))).unwrap();
    let caller: Caller<Unlucky, Unlucky> = client.caller("unlucky").unwrap();
    for (number, which, expected) in [
        (13, "the request cannot be written at the caller: ", "unlucky to write"),
        (14, "the request cannot be read where it is served: ", "unlucky to read"),
        (11, "the reply cannot be written where it is served: ", "unlucky to write"),
        (12, "the reply cannot be read at the caller: ", "unlucky to read"),
    ] {
        let outcome = caller.call(Unlucky(number));
        assert!(
            matches!(&outcome, Err(CallError::BadMessage { reason, .. }) if reason.starts_with(which) && reason.contains(expected)),
            "{outcome:?}"
        );
    }
    assert_eq!(caller.call(Unlucky(1)), Ok(Unlucky(3)));
    until("nothing is under way", || route.statistics().in_flight == 0);
}

#[test]
fn panic_after_spill_ends_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let mut overflow = ElasticQueueOptions::new("unlucky", folder.path());
    overflow.memory_bytes_max = 4096;
    let domain = Domain::in_process("test");
    let handle = |request: Unlucky, _: &CallContext| Ok(Unlucky(request.0 + 2));
    let route = domain.serve("unlucky").workers(2).queue_max(4).overflow(overflow).handle(handle).unwrap();
    let options = CallerOptions { call: forever(), ..CallerOptions::default() };
    let caller: Caller<Unlucky, Unlucky> = domain.caller_with("unlucky", options).unwrap();
    assert_eq!(caller.call(Unlucky(1)), Ok(Unlucky(3)));
    route.suspend().unwrap();
    let number = |index: u64| if index % 100 == 50 { 14 } else { 1_000 + index };
    let calls: Vec<_> = (0..2_000).map(|index| caller.start(Unlucky(number(index)))).collect();
    until("most of them lie on disk", || route.overflow_counters().unwrap().spilled_records > 1_000);
    route.resume().unwrap();
    for (index, mut call) in (0..).zip(calls) {
        let outcome = call.wait_for(PATIENCE).expect("each has an outcome");
        if number(index) == 14 {
            let not_begun =
                matches!(&outcome, Err(CallError::NotBegun { reason, .. }) if reason.contains("unlucky to read"));
            assert!(not_begun, "{outcome:?}");
        } else {
            assert_eq!(outcome, Ok(Unlucky(number(index) + 2)));
        }
    }
    route.drain();
}

#[test]
fn panic_in_forward_ends_its_call() {
    let (_folder, server, client) = pair();
    let handle = |request: Unlucky, _: &CallContext| Ok(Unlucky(request.0 + 2));
    let _back = server.serve("back").handle(handle).unwrap();
    let forward = |_: Unlucky, context: &CallContext| -> Result<Unlucky, Rejection> { Err(context.forward("back")) };
    let _front = client.serve("front").forwards().handle(forward).unwrap();
    let options = CallerOptions { call: forever(), ..CallerOptions::default() };
    let caller: Caller<Unlucky, Unlucky> = client.caller_with("front", options).unwrap();
    let outcome = |number: u64| caller.start(Unlucky(number)).wait_for(PATIENCE).expect("it has an outcome");
    for number in [13, 14] {
        let unkept = outcome(number).unwrap_err();
        assert!(
            matches!(&unkept, CallError::CannotForward { reason, .. } if reason.contains("could not be kept")),
            "{unkept:?}"
        );
    }
    let unsent = outcome(15).unwrap_err();
    assert!(
        matches!(&unsent, CallError::BadMessage { reason, .. } if reason.contains("unlucky to write")),
        "{unsent:?}"
    );
    caller.send(Unlucky(15)).unwrap();
    assert_eq!(outcome(1), Ok(Unlucky(3)), "its worker lives");
}

fn forever() -> CallOptions {
    CallOptions { timeout: None, ..CallOptions::default() }
}

#[test]
fn last_worker_withdraws_route() {
    let (_folder, server, client) = pair();
    let double = |number: u64, _context: &CallContext| Ok(number * 2);
    let (gate, tasks) = (Arc::new(Barrier::new(3)), Arc::new(Mutex::new(Vec::new())));
    let (at_gate, kept) = (Arc::clone(&gate), Arc::clone(&tasks));
    let init = move |_| {
        at_gate.wait();
        panic!("as init does here");
    };
    let _panicking = server.serve("panics").workers(2).init(init).handle(double).unwrap();
    let keep = move |task| kept.lock().unwrap().push(task);
    let _dropped = server.serve("dropped").workers(2).tasks(keep).handle(double).unwrap();
    let brief = CallOptions { timeout: Some(Duration::from_millis(1)), ..CallOptions::default() };
    let callers = ["panics", "dropped"].map(|route| client.caller::<u64, u64>(route).unwrap());
    for caller in &callers {
        until("it is known", || {
            let outcome = caller.call_with(1, &brief);
            matches!(outcome, Err(CallError::TimedOut { begun: false, .. })) && caller.statistics().offered > 0
        });
    }
    gate.wait();
    tasks.lock().unwrap().clear();
    for caller in &callers {
        until("its callers are told", || matches!(caller.call(1), Err(CallError::NoRoute { .. })));
    }
}

fn be_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_meant = ["unlucky to", "no runtime"].iter().any(|text| panic.to_string().contains(text));
            if !is_meant {
                before(panic);
            }
        }));
    });
}

/// A leak in each would soon exhaust something.
const MANY: u64 = 10_000;

struct PanickingBefore;

impl Interceptor for PanickingBefore {
    fn before(&self, _route: &str, options: &mut CallOptions) -> Result<(), Refusal> {
        assert_eq!(options.key.unwrap_or_default() % 2, 0, "unlucky to ask");
        Ok(())
    }
}

#[derive(Default)]
struct Counting(AtomicI64);

impl Interceptor for Counting {
    fn before(&self, _route: &str, _options: &mut CallOptions) -> Result<(), Refusal> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn after(&self, _route: &str, _options: &CallOptions, _error: Option<&CallError>, _took: Duration) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One slot and one worker: a single leak shows at once.
fn as_often_as_one_likes(server: &Domain, client: &Domain, overflow: Option<ElasticQueueOptions>) {
    be_quiet();
    let route = server.serve("unlucky").handle(|request: Unlucky, _context| Ok(request)).unwrap();
    let counting = Arc::<Counting>::default();
    let interceptors: Vec<Arc<dyn Interceptor>> = vec![counting.clone(), Arc::new(PanickingBefore)];
    let options = CallerOptions { interceptors, overflow, ..CallerOptions::default() };
    let caller: Caller<Unlucky, Unlucky> = client.caller_with("unlucky", options).unwrap();
    let odd = CallOptions { key: Some(1), ..CallOptions::default() };
    for _ in 0..MANY / 4 {
        let refused = caller.call_with(Unlucky(1), &odd);
        let is_meant = |refusal: &Refusal| {
            refusal.text.contains("an interceptor panicked") && refusal.failed_call() == Some("panicked")
        };
        assert!(matches!(&refused, Err(CallError::Refused { refusal, .. }) if is_meant(refusal)), "{refused:?}");
        assert!(matches!(caller.send_with(Unlucky(1), &odd), Err(CallError::Refused { .. })));
    }
    assert_eq!(counting.0.load(Ordering::Relaxed), (MANY / 4) as i64, "sends have no end, calls have");
    let is_encoded = !std::ptr::eq(server, client);
    for _ in 0..if is_encoded { MANY / 4 } else { 0 } {
        let bad = [caller.call(Unlucky(13)).map(drop), caller.send(Unlucky(13))];
        for bad in bad {
            assert!(
                matches!(&bad, Err(CallError::BadMessage { reason, .. }) if reason.contains("to write")),
                "{bad:?}"
            );
        }
    }
    assert_eq!(caller.call(Unlucky(1)), Ok(Unlucky(1)));
    caller.send(Unlucky(1)).unwrap();
    assert_eq!(caller.call(Unlucky(2)), Ok(Unlucky(2)));
    until("nothing is under way", || route.statistics().in_flight + caller.statistics().in_flight == 0);
}

#[test]
fn caller_panics_leak_nothing() {
    let (folder, server, _client) = pair();
    let one_slot = DomainOptions { slots: 1, ..DomainOptions::default() };
    let client = Domain::open_directory(folder.path().join("domain"), one_slot).unwrap();
    as_often_as_one_likes(&server, &client, None);
    as_often_as_one_likes(&server, &client, Some(ElasticQueueOptions::new("unlucky", folder.path())));
    let domain = Domain::in_process("test");
    as_often_as_one_likes(&domain, &domain, None);
}

/// The first calls of callers are made by the thread that discovers instances.
#[test]
fn first_call_panic_leaks_nothing() {
    be_quiet();
    let (_folder, server, client) = pair();
    let _route = server.serve("unlucky").handle(|request: Unlucky, _context| Ok(request)).unwrap();
    for _ in 0..100 {
        let caller: Caller<Unlucky, Unlucky> = client.caller("unlucky").unwrap();
        assert!(matches!(caller.call(Unlucky(13)), Err(CallError::BadMessage { .. })));
        assert_eq!(caller.statistics().in_flight, 0);
        assert_eq!(caller.call(Unlucky(1)), Ok(Unlucky(1)));
    }
}

#[test]
fn worker_survives_message_panics() {
    be_quiet();
    let domain = Domain::in_process("test");
    let echo = |request: Unlucky, _: &gapless_rpc::CallContext| Ok(request);
    let _route = domain.serve("keeps").forwards().handle(echo).unwrap();
    let caller: Caller<Unlucky, Unlucky> = domain.caller("keeps").unwrap();
    for _ in 0..100 {
        assert_eq!(
            [13, 14, 1].map(|number| caller.call(Unlucky(number))),
            [13, 14, 1].map(|number| Ok(Unlucky(number)))
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let overflow = ElasticQueueOptions::new("overflows", folder.path());
    let route = domain.serve("overflows").queue_max(1).overflow(overflow).handle(echo).unwrap();
    let caller: Caller<Unlucky, Unlucky> = domain.caller("overflows").unwrap();
    for _ in 0..100 {
        route.suspend().unwrap();
        let first = caller.start(Unlucky(1));
        let (written, read, last) = (caller.start(Unlucky(13)), caller.start(Unlucky(14)), caller.start(Unlucky(2)));
        let written = written.wait();
        assert!(matches!(&written, Err(CallError::Busy { reason, .. }) if reason.contains("to write")), "{written:?}");
        route.resume().unwrap();
        assert_eq!((first.wait(), last.wait()), (Ok(Unlucky(1)), Ok(Unlucky(2))));
        let read = read.wait();
        assert!(matches!(&read, Err(CallError::NotBegun { reason, .. }) if reason.contains("to read")), "{read:?}");
    }
    until("nothing is under way", || route.statistics().in_flight == 0);
}

#[test]
fn spawn_panic_ends_the_route() {
    be_quiet();
    let (_folder, server, client) = pair();
    let double = |number: u64, _context: &gapless_rpc::CallContext| Ok(number * 2);
    for _ in 0..100 {
        let error = server.serve("double").workers(2).tasks(|_| panic!("no runtime")).handle(double).unwrap_err();
        assert_eq!(error.to_string(), "tasks: it panicked: no runtime");
    }
    let _served = server.serve("double").handle(double).unwrap();
    let caller: Caller<u64, u64> = client.caller("double").unwrap();
    let patient = CallOptions { wait_for_route: Some(PATIENCE), timeout: Some(PATIENCE), ..CallOptions::default() };
    assert_eq!(caller.call_with(2, &patient), Ok(4));
    // Within a process the first caller spawns them, and must not be affected.
    let domain = Domain::in_process("test");
    let served = domain.serve("double").workers(2).tasks(|_| panic!("no runtime")).handle(double).unwrap();
    let caller: Caller<u64, u64> = domain.caller("double").unwrap();
    let first = caller.call(2);
    assert!(matches!(&first, Err(CallError::Busy { reason, .. }) if reason.contains("no runtime")), "{first:?}");
    for _ in 0..MANY {
        assert_eq!(caller.call(2), Err(CallError::no_route("double")));
    }
    drop(served);
    let _served = domain.serve("double").handle(double).unwrap();
    assert_eq!(caller.call(2), Ok(4));
}

struct Panicking;

impl Interceptor for Panicking {
    fn after(&self, _route: &str, _options: &CallOptions, _error: Option<&CallError>, _took: Duration) {
        panic!("as an interceptor does here");
    }
}

fn tells_on_though_one_panics(server: &Domain, client: &Domain) {
    let _route = server.serve("double").handle(|number: u64, _context| Ok(number * 2)).unwrap();
    let interceptors = vec![Arc::new(Panicking) as Arc<dyn Interceptor>];
    let options = CallerOptions { interceptors, ..CallerOptions::default() };
    let caller: Caller<u64, u64> = client.caller_with("double", options).unwrap();
    for number in 0..10 {
        caller.start(number).on_end(|_| panic!("as a function does here"));
        let (told, is_told) = mpsc::channel();
        caller.start(number).on_end(move |outcome| told.send(outcome).unwrap());
        assert_eq!(is_told.recv_timeout(PATIENCE).expect("its thread lives"), Ok(number * 2));
    }
}

#[test]
fn panicking_callback_is_caught() {
    let (_folder, server, client) = pair();
    tells_on_though_one_panics(&server, &client);
    let domain = Domain::in_process("test");
    tells_on_though_one_panics(&domain, &domain);
}

/// Each end frees the only slot for the next call, which has timed out, too.
#[test]
fn many_calls_may_end_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("domain");
    let server = Domain::open_directory(&path, DomainOptions::default()).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let _route = server
        .serve("double")
        .handle(move |number: u64, _context| {
            if number == 0 {
                released.lock().unwrap().recv().unwrap();
            }
            Ok(number * 2)
        })
        .unwrap();
    let client = Domain::open_directory(&path, DomainOptions { slots: 1, ..DomainOptions::default() }).unwrap();
    let caller: Caller<u64, u64> = client.caller("double").unwrap();
    let (told, is_told) = mpsc::channel();
    let (last, is_last) = mpsc::channel::<Instant>();
    let first = told.clone();
    caller.start_with(0, &forever()).on_end(move |outcome| {
        first.send(outcome).unwrap();
        let end = is_last.recv().unwrap();
        until("their time is over", || Instant::now() > end);
    });
    let brief = CallOptions { timeout: Some(Duration::from_millis(500)), ..CallOptions::default() };
    for number in 1..=2_000 {
        let told = told.clone();
        caller.start_with(number, &brief).on_end(move |outcome| told.send(outcome).unwrap());
    }
    release.send(()).unwrap();
    last.send(Instant::now() + Duration::from_millis(500)).unwrap();
    for _ in 0..=2_000 {
        let outcome = is_told.recv_timeout(PATIENCE).expect("each is told");
        assert!(matches!(outcome, Ok(_) | Err(CallError::TimedOut { .. })), "{outcome:?}");
    }
}
