//! By policy the host stops with an error that names the command, or refuses and records it; nothing of the command is
//! sent.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::attacked::*;
use gapless_client::polled::ClientOptions;
use gapless_client::{ClientError, PolledClient};
use gapless_engine::interruption::{
    InterruptedFrame, InterruptedQuery, InterruptedSpeculation, interrupted_at, interrupted_query_at,
    interrupted_speculation_at,
};
use gapless_engine::store::{Counter, Store};
use gapless_engine::{
    Handlers, OnPanic, OnUnhandled, Policy, Service, ServiceHost, ServiceHostOptions, StateHandlers, StateService,
};
use gapless_message::{Message, NoRefusal, contract};
use gapless_wire::control::RefusalCode;
use std::collections::BTreeSet;
use std::path::Path;

const DIRECTORY: &str = "GAPLESS_TEST_DIRECTORY";
const SKIP: &str = "GAPLESS_TEST_SKIP";

fn with(directory: &Path, policy: Policy) -> ServiceHostOptions {
    ServiceHostOptions { policy, ..options(directory) }
}

fn policy(on_panic: OnPanic, on_unhandled: OnUnhandled, skip: &[u64]) -> Policy {
    let skip_sequences = BTreeSet::from_iter(skip.iter().copied());
    Policy { on_panic, on_unhandled, skip_sequences, ..Policy::default() }
}

/// Returns the error. Sequence 1 is the mark of the non-default fault rules.
fn stops_at(schema: u32) -> String {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let stopping = |skip: &[u64]| with(place, policy(OnPanic::Stop, OnUnhandled::Stop, skip));
    let host = start(stopping(&[]));
    let mut client = connect(place);
    let key = client.open_session(5, 8).unwrap();
    assert_eq!(add(&mut client, key, 10), 10);
    send(&mut client, key, schema, b"?");
    let behind = send(&mut client, key, ADD, &[7]);
    let said = failure(&host);
    assert!(said.contains("sequence 4"), "the command is named: {said}");
    assert!(host.stop().is_err());

    let again =
        ServiceHost::start(Adder::default(), stopping(&[])).err().expect("the command is still there").to_string();
    assert!(again.contains("sequence 4"), "{again}");

    let host = start(stopping(&[4]));
    let letters = std::fs::read_to_string(place.join("dead-letters.jsonl")).unwrap();
    assert!(letters.contains("\"sequence\":4") && letters.contains("skipped"), "{letters}");
    let mut refusals = Vec::new();
    let mut sums = Vec::new();
    client.reconnect().unwrap();
    while client.in_flight(key) > 0 {
        client
            .poll(8, |incoming| {
                if let gapless_client::Incoming::Reply { reply, .. } = incoming {
                    match reply.refusal {
                        Some(refusal) => refusals.push(refusal.text.to_owned()),
                        None => sums.push((reply.session_seq, reply.payload.to_vec())),
                    }
                }
            })
            .unwrap();
        client.wait(std::time::Duration::from_millis(10)).unwrap();
    }
    assert_eq!(refusals, ["skipped by an operator"]);
    assert_eq!(sums, [(behind, 17u64.to_le_bytes().to_vec())]);
    assert_eq!(add(&mut client, key, 1), 18);
    host.stop().unwrap();
    said
}

#[test]
fn panic_stops_until_skipped() {
    let said = stops_at(PANIC);
    assert!(said.contains("a handler with a bug") && said.contains("schema 1 template 3"), "{said}");
}

#[test]
fn local_clients_get_the_reason() {
    let host = start(ServiceHostOptions::in_memory());
    let (mut caller, mut other) =
        (host.connect(ClientOptions::default()).unwrap(), host.connect(ClientOptions::default()).unwrap());
    let key = caller.open_session(5, 8).unwrap();
    for said in [
        call(&mut caller, key, PANIC, b"?").unwrap_err().to_string(),
        other.open_session(6, 8).unwrap_err().to_string(),
        other.reconnect().unwrap_err().to_string(),
    ] {
        assert!(said.contains("has stopped: ") && said.contains("a handler with a bug"), "{said}");
    }
    host.stop().unwrap_err();
}

fn reason(mut look: impl FnMut() -> Result<(), ClientError>) -> String {
    loop {
        match look() {
            Ok(()) => {}
            Err(ClientError::Disconnected { reason, .. }) => return reason.unwrap_or_default(),
            Err(error) => panic!("expected a disconnect, found {error}"),
        }
    }
}

#[test]
fn shared_memory_gets_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let host = start(options(place));
    let (mut caller, mut sleeper, mut late) = (connect(place), connect(place), connect(place));
    let key = caller.open_session(5, 8).unwrap();
    let late_key = late.open_session(6, 8).unwrap();
    let sleeper = std::thread::spawn(move || reason(|| sleeper.wait(PATIENCE)));
    send(&mut caller, key, PANIC, b"?");
    let expected = failure(&host).split_once("agent ").unwrap().1.to_owned();
    for said in [reason(|| caller.poll(8, |_| {}).map(drop)), sleeper.join().unwrap()] {
        assert!(said.contains(&expected) && said.contains("a handler with a bug"), "{said}; {expected}");
    }
    // The process may continue: new clients are refused.
    let options = ClientOptions { timeout: std::time::Duration::from_millis(20), ..ClientOptions::default() };
    let socket = place.join("node.socket");
    let said = PolledClient::connect(&socket, options.clone()).err().unwrap().to_string();
    assert!(said.contains("it has failed: agent ") && said.contains("a handler with a bug"), "{said}");
    host.stop().unwrap_err();
    let said = late.call(late_key, message(ADD), &[1], options.timeout).unwrap_err().to_string();
    assert!(said.contains(" has failed: agent ") && said.contains("; then: connecting to "), "{said}");
}

#[test]
fn unhandled_stops_until_skipped() {
    let said = stops_at(UNKNOWN);
    assert!(said.contains("no handler") && said.contains("schema 1 template 9"), "{said}");
}

#[test]
fn faults_become_dead_letters() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let lenient = || with(place, policy(OnPanic::DeadLetter, OnUnhandled::DeadLetter, &[]));
    let host = start(lenient());
    let mut client = connect(place);
    let key = client.open_session(5, 8).unwrap();
    let refusal = |client: &mut gapless_client::PolledClient, schema| match call(client, key, schema, b"?") {
        Err(ClientError::Refused { code, reason, .. }) => (code, reason),
        other => panic!("a refusal is expected, not {other:?}"),
    };
    let (code, reason) = refusal(&mut client, PANIC);
    assert_eq!(code, RefusalCode::HandlerPanicked);
    assert!(reason.contains("a handler with a bug"), "{reason}");
    let (code, reason) = refusal(&mut client, UNKNOWN);
    assert_eq!(code, RefusalCode::Unhandled);
    assert!(reason.contains("schema 1 template 9"), "{reason}");
    assert_eq!(add(&mut client, key, 4), 4);
    assert_eq!(host.dead_letter_count(), 2);
    host.stop().unwrap();

    let record = || std::fs::read_to_string(place.join("dead-letters.jsonl")).unwrap();
    let recorded = record();
    let lines: Vec<&str> = recorded.lines().collect();
    assert_eq!(lines.len(), 2, "{recorded}");
    assert!(lines[0].contains("\"sequence\":3") && lines[0].contains("a handler with a bug"), "{recorded}");
    assert!(lines[1].contains("\"sequence\":4") && lines[1].contains("template 9"), "{recorded}");

    let host = start(lenient());
    client.reconnect().unwrap();
    assert_eq!(add(&mut client, key, 1), 5);
    host.stop().unwrap();
    assert_eq!(record(), recorded);
}

#[test]
#[ignore = "a part of the next test"]
fn process_with_aborting_handler() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let skip = std::env::var(SKIP).ok().and_then(|text| text.parse().ok());
    let skip = Vec::from_iter(skip);
    let host = start(with(Path::new(&directory), policy(OnPanic::Stop, OnUnhandled::Stop, &skip)));
    let mut client = connect(Path::new(&directory));
    let key = client.open_session(5, 8).unwrap();
    assert_eq!(add(&mut client, key, 3), if skip.is_empty() { 3 } else { 6 });
    if skip.is_empty() {
        let _ = call(&mut client, key, ABORT, b"?");
    }
    host.stop().unwrap();
}

#[test]
fn repeated_abort_names_frame() {
    let directory = tempfile::tempdir().unwrap();
    let run = |skip: &[u64]| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "handler_faults_are_reported::process_with_aborting_handler";
        command.args(["--exact", "--ignored", name]).env(DIRECTORY, directory.path());
        command.envs(skip.iter().map(|sequence| (SKIP, sequence.to_string())));
        command.output().unwrap().status.success()
    };
    assert!(!run(&[]), "the handler aborts");
    assert_eq!(interrupted_at(directory.path()), Some(InterruptedFrame { sequence: 4, is_repeated: false }));
    for _ in 0..2 {
        assert!(!run(&[]), "and again, while the command is replayed");
        assert_eq!(interrupted_at(directory.path()), Some(InterruptedFrame { sequence: 4, is_repeated: true }));
    }
    assert!(run(&[4]));
    assert_eq!(interrupted_at(directory.path()), None);
}

struct Counting(Counter);

const TIMER: u32 = 1 << 16 | 10;

impl StateService for Counting {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on_bytes(ADD, |it: &Self, store, _, context| {
            let count = store.add(it.0, 1)?;
            context.reply_with(message(ADD), &count.to_le_bytes())
        });
        handlers.on_bytes(ABORT, |_: &Self, _, _, _| std::process::abort());
        handlers.query(|_: &Self, _, _: Abort, _| -> Result<(), NoRefusal> { std::process::abort() });
        handlers.on_bytes(TIMER, |_: &Self, _, _, context| {
            context.set_numbered_timer(77, context.time_ns());
            Ok(())
        });
    }

    fn on_timer(
        &self,
        _: u64,
        _: &mut gapless_engine::store::Transaction<'_>,
        _: &mut gapless_engine::Context<'_>,
    ) -> Result<(), gapless_engine::Reject> {
        std::process::abort()
    }
}

#[test]
#[ignore = "a part of the next test"]
fn process_aborting_state_handler() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let make = |store: &mut Store| Counting(store.counter(1, "count"));
    let host = ServiceHost::start_state(make, options(Path::new(&directory))).unwrap();
    let mut client = connect(Path::new(&directory));
    let key = client.open_session(5, 8).unwrap();
    match std::env::var(SKIP).unwrap().parse().unwrap() {
        0 => _ = call(&mut client, key, ABORT, b"?"),
        1 => _ = add(&mut client, key, 1),
        _ => {
            call(&mut client, key, TIMER, b"?").ok();
            while host.failure().is_none() {
                std::thread::yield_now();
            }
        }
    }
    host.stop().unwrap();
}

#[test]
fn repeated_abort_names_command() {
    let directory = tempfile::tempdir().unwrap();
    let run = |what: u32| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "handler_faults_are_reported::process_aborting_state_handler";
        command.args(["--exact", "--ignored", name]).env(DIRECTORY, directory.path()).env(SKIP, what.to_string());
        command.output().unwrap().status.success()
    };
    let at = || interrupted_speculation_at(directory.path()).map(|it| (it.session > 0, it.number, it.is_repeated));
    assert!(run(1), "nothing is wrong yet");
    assert_eq!(interrupted_speculation_at(directory.path()), None);
    assert!(!run(0), "the handler aborts");
    let first = interrupted_speculation_at(directory.path()).unwrap();
    assert!(first.session > 0 && first.to_string().starts_with("command 2 of session "), "{first}");
    for _ in 0..2 {
        assert!(!run(0), "and again: the command is in no stream, and is sent again");
        let again = interrupted_speculation_at(directory.path()).unwrap();
        let InterruptedSpeculation { session, number, .. } = first;
        assert_eq!((again.session, again.number, again.is_repeated), (session, number, true));
    }
    assert!(run(1), "another command");
    assert_eq!(at(), None);
    assert!(!run(2), "the timer aborts");
    assert_eq!(at(), Some((false, 77, false)));
    assert!(!run(2), "and is due again");
    assert_eq!(at(), Some((false, 77, true)));
}

#[derive(serde::Serialize, serde::Deserialize, Message)]
#[message(request)]
struct Abort;

struct Idle;

impl Service for Idle {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.query(|_: &Self, _: Abort, _| -> Result<(), NoRefusal> { std::process::abort() });
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

#[test]
#[ignore = "a part of the next test"]
fn process_aborting_query() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let options = options(Path::new(&directory));
    let host = match std::env::var(SKIP).unwrap().as_str() {
        "0" => ServiceHost::start(Idle, options),
        _ => ServiceHost::start_state(|store: &mut Store| Counting(store.counter(1, "count")), options),
    };
    let mut client = connect(Path::new(&directory));
    let answer = client.query_request(&Abort, PATIENCE);
    unreachable!("{answer:?} of {:?}", host.unwrap().failure());
}

#[test]
fn repeated_abort_names_query() {
    for of_state in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(interrupted_query_at(directory.path()), None);
        for is_repeated in [false, true, true] {
            let mut command = std::process::Command::new(std::env::current_exe().unwrap());
            let name = "handler_faults_are_reported::process_aborting_query";
            command.args(["--exact", "--ignored", name]).env(DIRECTORY, directory.path());
            let ended = command.env(SKIP, u8::from(of_state).to_string()).output().unwrap();
            assert_eq!(ended.status.code(), None, "it aborts: {ended:?}");
            let query = InterruptedQuery { schema: contract::name_key("Abort"), is_repeated };
            assert_eq!(interrupted_query_at(directory.path()), Some(query));
        }
    }
}
