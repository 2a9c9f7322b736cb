use super::AT_A_TIME;
use super::instance_process::{Ask, Told, start};
use gapless_rpc::domain::KnownRouteState;
use gapless_rpc::{
    CallContext, CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, Headers, InstanceQuery, Json,
    Message, caller::together,
};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::PATIENCE;
use serde::{Deserialize, Serialize};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("replies_refusals_and_panics", replies_refusals_and_panics)
        .scenario("handler_sees_process_and_user", handler_sees_process_and_user)
        .scenario("missing_route_fails_at_once", missing_route_fails_at_once)
        .scenario("deadline_ends_call_and_handler", deadline_ends_call_and_handler)
        .scenario("nested_call_inherits_the_deadline", nested_call_inherits_the_deadline)
        .scenario("forwards_are_limited_to_sixteen", forwards_are_limited_to_sixteen)
        .scenario("json_calls_need_no_types", json_calls_need_no_types)
        .scenario("broadcast_and_affinity", broadcast_and_affinity)
        .scenario("calls_can_be_awaited_and_joined", calls_can_be_awaited_and_joined)
        .scenario("handler_learns_of_its_callers_death", handler_learns_of_its_callers_death)
        .scenario("type_mismatch_is_named", type_mismatch_is_named)
}

fn caller(domain: &Domain, route: &str) -> Caller<Ask, Told> {
    let call = CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() };
    domain.caller_with(route, CallerOptions { call, ..CallerOptions::default() }).unwrap()
}

fn open(folder: &tempfile::TempDir) -> Domain {
    Domain::open_directory(folder.path().join("domain"), DomainOptions::default()).unwrap()
}

fn replies_refusals_and_panics() {
    let folder = tempfile::tempdir().unwrap();
    let domain = open(&folder);
    let _instance = start(&folder.path().join("domain"), 2, &["route"]);
    let caller = caller(&domain, "route");
    for number in 0..1000 {
        assert_eq!(caller.call(Ask::Increment(number)), Ok(Told::Number(number + 1)));
    }
    for length in [0, 1, 4000, 4096, 500_000, (16 << 20) - 5] {
        let Told::Bytes(bytes) = caller.call(Ask::Bytes(length)).unwrap() else { panic!("bytes were asked for") };
        assert!(bytes.len() == length as usize && bytes.iter().enumerate().all(|(index, byte)| *byte == index as u8));
    }
    let CallError::Refused { refusal, .. } = caller.call(Ask::Refuse(7)).unwrap_err() else { panic!("it was refused") };
    assert_eq!((refusal.code, refusal.text.as_str(), refusal.payload), (7, "no", vec![1, 2]));
    let panicked = caller.call(Ask::Panic).unwrap_err();
    assert_eq!(panicked, CallError::Panicked { route: "route".to_owned(), reason: "as it was asked to".to_owned() });
    let headers = Headers::default().with("tenant", "blue");
    let options = CallOptions { headers, ..CallOptions::default() };
    assert_eq!(caller.call_with(Ask::Header("tenant".to_owned()), &options), Ok(Told::Text("blue".to_owned())));
    let too_long = caller.call(Ask::Bytes((16 << 20) - 4)).unwrap_err();
    assert!(matches!(&too_long, CallError::BadMessage { .. }), "{too_long}");
    assert_eq!(caller.call(Ask::Increment(1)), Ok(Told::Number(2)), "it goes on");
}

fn handler_sees_process_and_user() {
    let folder = tempfile::tempdir().unwrap();
    let _instance = start(&folder.path().join("domain"), 1, &["route"]);
    let options = DomainOptions { process_name: Some("a till".to_owned()), ..DomainOptions::default() };
    let domain = Domain::open_directory(folder.path().join("domain"), options).unwrap();
    // SAFETY: only reads the user id.
    let (process_id, user_id) = (std::process::id(), unsafe { libc::getuid() });
    let expected = Ok(Told::Text(format!("a till {process_id} {user_id}")));
    assert_eq!(caller(&domain, "route").call(Ask::Caller), expected);
    let here = domain.serve("here").handle(|(): (), context| {
        let caller = context.caller();
        Ok(format!("{} {} {}", caller.name, caller.process_id, caller.user_id))
    });
    let _here = here.unwrap();
    let seen = domain.caller::<(), String>("here").unwrap().call(()).map(Told::Text);
    assert_eq!(seen, expected, "inside a process, too");
}

fn missing_route_fails_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let domain = open(&folder);
    let caller = caller(&domain, "route");
    let begun = Instant::now();
    let patient = CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() };
    let outcome = caller.call_with(Ask::Increment(1), &patient);
    assert_eq!(outcome, Err(CallError::no_route("route")));
    assert!(begun.elapsed() < PATIENCE, "at once, not after the timeout");
    let waiting = std::thread::spawn(move || {
        let options =
            CallOptions { wait_for_route: Some(Duration::from_secs(60)), timeout: None, ..CallOptions::default() };
        caller.call_with(Ask::Increment(1), &options)
    });
    let _instance = start(&folder.path().join("domain"), 1, &["other", "route"]);
    assert_eq!(waiting.join().unwrap(), Ok(Told::Number(2)));
}

fn deadline_ends_call_and_handler() {
    let folder = tempfile::tempdir().unwrap();
    let domain = open(&folder);
    let mut instance = start(&folder.path().join("domain"), 1, &["route"]);
    let caller = caller(&domain, "route");
    // Long enough for a handler to begin on a busy machine.
    let timeout = Duration::from_secs(2);
    let options = CallOptions { timeout: Some(timeout), ..CallOptions::default() };
    // The handler may answer before the caller times out.
    let late = caller.call_with(Ask::SleepUntilCancelled, &options);
    let timed_out =
        CallError::TimedOut { route: "route".to_owned(), after: timeout, begun: true, not_taken_by: vec![] };
    assert!(late == Err(timed_out) || late == Ok(Told::Cancelled(true)), "{late:?}");
    assert_eq!(instance.line(), "cancelled");
    let dropped = caller.start_with(Ask::SleepUntilCancelled, &CallOptions { timeout: None, ..CallOptions::default() });
    std::thread::sleep(Duration::from_millis(20));
    drop(dropped);
    let busy = caller.start_with(Ask::SleepUntilCancelled, &CallOptions { timeout: None, ..CallOptions::default() });
    // Waits longer than its timeout, so it never begins.
    let hurried = CallOptions { timeout: Some(timeout / 10), ..CallOptions::default() };
    let late = caller.call_with(Ask::Increment(1), &hurried);
    assert!(matches!(late, Err(CallError::TimedOut { begun: false, .. })), "{late:?}");
    drop(busy);
    assert_eq!(caller.call(Ask::Increment(1)), Ok(Told::Number(2)));
}

fn nested_call_inherits_the_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let domain = open(&folder);
    let path = folder.path().join("domain");
    let _instances = [start(&path, 1, &["outer"]), start(&path, 1, &["inner"])];
    let options = CallOptions { timeout: Some(Duration::from_secs(4)), ..CallOptions::default() };
    let told = caller(&domain, "outer").call_with(Ask::Nested("inner".to_owned()), &options);
    let Ok(Told::Left(milliseconds)) = told else { panic!("{told:?}") };
    assert!((1..=4_000).contains(&milliseconds), "{milliseconds} ms, where five seconds are the default");
}

fn forwards_are_limited_to_sixteen() {
    let folder = tempfile::tempdir().unwrap();
    let domain = open(&folder);
    let path = folder.path().join("domain");
    let _instances = [start(&path, 1, &["first"]), start(&path, 1, &["loop"])];
    let first = caller(&domain, "first");
    let endless = first.call(Ask::Forward("loop".to_owned())).unwrap_err();
    assert!(matches!(&endless, CallError::Refused { refusal, .. } if refusal.text.contains("16 times")), "{endless}");
    let nowhere = first.call(Ask::Forward("nowhere".to_owned())).unwrap_err();
    assert!(matches!(&nowhere, CallError::Unknown { route, .. } if route == "nowhere"), "{nowhere}");
    let no_name = first.call(Ask::Forward("no name".to_owned())).unwrap_err();
    assert!(matches!(no_name, CallError::Refused { .. }), "{no_name}");
}

fn json_calls_need_no_types() {
    let folder = tempfile::tempdir().unwrap();
    let domain = open(&folder);
    let path = folder.path().join("domain");
    let _instances = [start(&path, 1, &["route"]), start(&path, 1, &["other"])];
    let ask = |text: &str| Json::new(text).unwrap();
    let caller = domain.caller::<Json, Json>("route").unwrap();
    assert_eq!(caller.call(ask(r#"{"Increment": 4}"#)).unwrap().text(), br#"{"Number":5}"#);
    assert_eq!(caller.call(ask(r#"{"Bytes": 2}"#)).unwrap().text(), br#"{"Bytes":[0,1]}"#);
    let wrong = caller.call(ask(r#"{"Decrement": 4}"#)).unwrap_err();
    assert!(matches!(&wrong, CallError::BadMessage { reason, .. } if reason.contains("Decrement")), "{wrong}");
    let refused = caller.call(ask(r#"{"Refuse": 7}"#)).unwrap_err();
    assert!(matches!(&refused, CallError::Refused { refusal, .. } if refusal.code == 7), "{refused}");
    let forwarded = caller.call(ask(r#"{"Forward": "other"}"#)).unwrap_err();
    assert!(
        matches!(&forwarded, CallError::Refused { refusal, .. } if refusal.text.contains("16 times")),
        "{forwarded}"
    );
    let half = domain.caller::<Json, Told>("route").unwrap();
    assert_eq!(half.call(ask(r#"{"Increment": 4}"#)), Ok(Told::Number(5)));
    let other_half = domain.caller::<Ask, Json>("route").unwrap();
    let mismatch = other_half.call(Ask::Increment(4)).unwrap_err();
    assert!(matches!(mismatch, CallError::Mismatch { .. }), "{mismatch}");
}

fn broadcast_and_affinity() {
    let folder = tempfile::tempdir().unwrap();
    let domain = open(&folder);
    let path = folder.path().join("domain");
    let instances: Vec<_> = (0..3).map(|_| start(&path, 1, &["route"])).collect();
    let caller = caller(&domain, "route");
    gapless_testkit::wait::until("all are known", || {
        caller.broadcast(&Ask::Increment(4)).is_ok_and(|outcomes| outcomes.len() == instances.len())
    });
    let outcomes = caller.broadcast(&Ask::Increment(4)).unwrap();
    let mut processes: Vec<_> = outcomes.iter().map(|(address, _)| address.clone()).collect();
    processes.sort_unstable();
    processes.dedup();
    assert_eq!(processes.len(), 3, "{outcomes:?}");
    assert!(outcomes.into_iter().all(|(_, outcome)| outcome == Ok(Told::Number(5))));
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut awaited = executor.block_on(caller.broadcast_async(Ask::Increment(4))).unwrap();
    awaited.sort_by_key(|(address, _)| address.clone());
    assert_eq!(awaited, processes.into_iter().map(|address| (address, Ok(Told::Number(5)))).collect::<Vec<_>>());
    let known = domain.routes(Duration::from_secs(10)).unwrap().routes;
    assert_eq!(known.iter().filter(|route| route.route == "route" && route.state == KnownRouteState::Open).count(), 3);
    let pings = caller.query_instances(InstanceQuery::Ping).unwrap();
    assert_eq!(pings, vec![Ok(String::new()); 3]);
    for (asked, word) in [(InstanceQuery::Info, "process_id"), (InstanceQuery::Statistics, "replied")] {
        let said = caller.query_instances(asked).unwrap();
        assert!(said.iter().all(|said| said.as_ref().is_ok_and(|said| said.contains(word))), "{said:?}");
    }
    let keyed = CallOptions { key: Some(9), ..CallOptions::default() };
    let slow = caller.start_with(Ask::Sleep(200), &keyed);
    let mut behind = caller.start_with(Ask::Increment(1), &keyed);
    assert_eq!(caller.call(Ask::Increment(2)), Ok(Told::Number(3)), "another key's instance is free");
    let is_early = behind.try_take().is_some();
    assert!(slow.wait().is_ok());
    assert!(!is_early || behind.wait().is_ok(), "only if the machine stood still meanwhile");
}

fn calls_can_be_awaited_and_joined() {
    let folder = tempfile::tempdir().unwrap();
    let domain = open(&folder);
    let _instance = start(&folder.path().join("domain"), 4, &["route"]);
    let caller = caller(&domain, "route");
    let numbers = |count: u64| (0..count).map(|number| caller.start(Ask::Increment(number))).collect::<Vec<_>>();
    let expected: Vec<_> = (1..=500).map(|number| Ok(Told::Number(number))).collect();
    assert_eq!(together::all(numbers(500)), expected);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    assert_eq!(runtime.block_on(together::all_async(numbers(500))), expected);
    let (index, told) =
        together::first([caller.start(Ask::Sleep(4_000)), caller.start(Ask::Increment(1))]).unwrap().unwrap();
    assert_eq!((index, told), (1, Told::Number(2)));
    let in_time =
        together::within([caller.start(Ask::Sleep(10_000)), caller.start(Ask::Increment(1))], Duration::from_secs(3));
    assert_eq!(in_time, [None, Some(Ok(Told::Number(2)))]);
    let (sender, receiver) = mpsc::channel();
    for number in 0..200 {
        let sender = sender.clone();
        caller.start(Ask::Increment(number)).on_end(move |outcome| sender.send((number, outcome)).unwrap());
    }
    for _ in 0..200 {
        let (number, outcome) = receiver.recv_timeout(gapless_testkit::wait::PATIENCE).unwrap();
        assert_eq!(outcome, Ok(Told::Number(number + 1)));
    }
    for _ in 0..1000 {
        caller.send(Ask::Increment(1)).unwrap();
    }
    assert_eq!(caller.call(Ask::Increment(1)), Ok(Told::Number(2)));
}

#[derive(Debug, Serialize, Deserialize, Message)]
struct Other {
    field: u8,
}

mod near {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
    pub enum Told {
        Number(u64),
        Bytes(Vec<u8>),
        Left(u32),
        Cancelled(bool),
        Text(String),
    }

    #[derive(Debug, Serialize, Deserialize, Message)]
    pub struct Other {
        pub field: u8,
    }
}

fn type_mismatch_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let domain = open(&folder);
    let instance_process = start(&folder.path().join("domain"), 1, &["route"]);
    let caller = domain.caller_with::<Other, Told>("route", CallerOptions::default()).unwrap();
    let refused = caller.call(Other { field: 1 }).unwrap_err();
    let CallError::Mismatch { route, caller: ours, instance, difference } = &refused else { panic!("{refused}") };
    assert_eq!((route.as_str(), ours.as_str()), ("route", "Other v1 → Told v1"));
    assert_eq!(*instance, format!("Ask v1 → Told v1 (process {})", instance_process.pid().as_raw_pid()));
    assert_eq!(difference, "in the request, the type is Other v1 at the caller and Ask v1 at the instance");
    let near = domain.caller::<Ask, near::Told>("route").unwrap();
    let refused = near.call(Ask::Increment(1)).unwrap_err().to_string();
    let expected = "in the reply, a part of Told is `Left(u32)` at the caller and `Left(u64)` at the instance";
    assert!(refused.ends_with(expected) && refused.contains("the route route is called with"), "{refused}");
    let _here = domain.serve("here").handle(|ask: Other, _| Ok(u32::from(ask.field))).unwrap();
    let refused = domain.caller::<Other, u64>("here").unwrap().call(Other { field: 1 }).unwrap_err();
    let CallError::Mismatch { instance, difference, .. } = &refused else { panic!("{refused}") };
    assert_eq!(instance, "Other v1 → u32 (in this process)");
    assert_eq!(difference, "in the reply, the type is u64 at the caller and u32 at the instance");
    let refused = domain.caller::<near::Other, u32>("here").unwrap().call(near::Other { field: 1 }).unwrap_err();
    let CallError::Mismatch { difference, .. } = &refused else { panic!("{refused}") };
    assert_eq!(difference, "both are alike, but they are different types of the program");
}

fn handler_learns_of_its_callers_death() {
    let folder = tempfile::tempdir().unwrap();
    let (domain, server) = (open(&folder), open(&folder));
    let mut calling = start(&folder.path().join("domain"), 1, &["outer"]);
    let (tell, told) = mpsc::channel();
    let handle = move |_: Ask, context: CallContext| {
        let tell = tell.clone();
        async move {
            tell.send(None).unwrap();
            context.cancelled().await;
            tell.send(context.remaining()).unwrap();
            Ok(Told::Cancelled(true))
        }
    };
    let _served = server.serve("inner").handle_async(handle).unwrap();
    let options = CallOptions { timeout: Some(PATIENCE), ..CallOptions::default() };
    let outer = domain.caller_with::<Ask, Told>("outer", CallerOptions { call: options, ..CallerOptions::default() });
    let call = outer.unwrap().start(Ask::Nested("inner".to_owned()));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(None));
    calling.kill();
    let left = told.recv_timeout(PATIENCE).unwrap();
    assert!(left.is_some_and(|left| !left.is_zero()), "it is told by the death, and not by the end of its time");
    assert!(matches!(call.wait(), Err(CallError::Unknown { .. })));
}
