//! The application's functions panic, in whatever thread runs them: what they were called for ends, and everything else goes on.

use super::tasks_serve_other_processes::pair;
use gapless_rpc::message::{Encoding, MessageError};
use gapless_rpc::{CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, Interceptor, Message};
use gapless_testkit::wait::{PATIENCE, until};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// A message that panics: 13 when it is written, 14 when it is read.
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
        Ok(Self(number))
    }
}

#[test]
fn a_message_that_panics_ends_its_call_only() {
    let (_folder, server, client) = pair();
    let route = server.serve("unlucky").handle(|request: Unlucky, _context| Ok(Unlucky(request.0 + 2))).unwrap();
    let caller: Caller<Unlucky, Unlucky> = client.caller("unlucky").unwrap();
    // The request cannot be read; the reply cannot be written; the reply cannot be read.
    for (number, expected) in [(14, "unlucky to read"), (11, "unlucky to write"), (12, "unlucky to read")] {
        let outcome = caller.call(Unlucky(number));
        assert!(
            matches!(&outcome, Err(CallError::BadMessage { reason, .. }) if reason.contains(expected)),
            "{outcome:?}"
        );
    }
    assert_eq!(caller.call(Unlucky(1)), Ok(Unlucky(3)));
    until("nothing is under way", || route.statistics().in_flight == 0);
}

#[test]
fn a_route_without_workers_is_withdrawn() {
    let (_folder, server, client) = pair();
    let double = |number: u64, _context: &gapless_rpc::CallContext| Ok(number * 2);
    let _panicking = server.serve("panics").workers(2).init(|_| panic!("as init does here")).handle(double).unwrap();
    let _dropped = server.serve("dropped").workers(2).tasks(drop).handle(double).unwrap();
    for route in ["panics", "dropped"] {
        let caller: Caller<u64, u64> = client.caller(route).unwrap();
        until("its callers are told", || matches!(caller.call(1), Err(CallError::NoRoute { .. })));
    }
}

struct Panicking;

impl Interceptor for Panicking {
    fn after(&self, _route: &str, _error: Option<&CallError>, _took: Duration) {
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
fn a_function_that_is_told_may_panic() {
    let (_folder, server, client) = pair();
    tells_on_though_one_panics(&server, &client);
    let domain = Domain::in_process("test");
    tells_on_though_one_panics(&domain, &domain);
}

/// The end of each call frees the only slot for the next, whose time is over, too.
#[test]
fn any_number_of_calls_may_end_at_once() {
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
    let forever = CallOptions { timeout: None, ..CallOptions::default() };
    caller.start_with(0, &forever).on_end(move |outcome| {
        first.send(outcome).unwrap();
        // It keeps the thread until the time of all others is over.
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
