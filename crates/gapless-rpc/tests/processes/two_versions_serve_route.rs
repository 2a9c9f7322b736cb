use super::AT_A_TIME;
use gapless_rpc::{
    CallContext, CallError, CallOptions, Caller, CallerOptions, Domain, DomainOptions, Json, Message, Rejection, Retry,
    Waiting, caller::together, overflow::ElasticQueueOptions,
};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until, until_some};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

const ROLE: &str = "be-a-versioned-instance";

mod first {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    pub struct Ask {
        pub what: What,
        pub words: Vec<Word>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    pub enum What {
        Join,
        JoinAloud,
        /// Answered only by a second attempt.
        JoinLate,
        JoinThere(String),
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    pub struct Word {
        pub text: String,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    pub struct Told {
        pub version: u32,
        pub joined: String,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    pub enum Event {
        Opened,
        Closed { reason: String },
    }

    impl Ask {
        pub fn new(what: What) -> Self {
            let words = ["a", "b"].map(|text| Word { text: text.to_owned() }).to_vec();
            Self { what, words }
        }
    }

    pub fn told(joined: &str, version: u32) -> Told {
        Told { version, joined: joined.to_owned() }
    }
}

mod second {
    pub use super::first::{What, Word};
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(version = 2)]
    pub struct Ask {
        pub what: What,
        pub words: Vec<Word>,
        #[serde(default)]
        #[message(since = 2)]
        pub between: Option<String>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(version = 2)]
    pub struct Told {
        pub version: u32,
        pub joined: String,
        #[serde(default)]
        #[message(since = 2)]
        pub length: Option<u64>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(version = 2)]
    pub enum Event {
        Opened,
        Closed {
            reason: String,
        },
        #[message(since = 2)]
        Moved(Option<u32>),
    }

    impl Ask {
        pub fn new(what: What) -> Self {
            let first::Ask { what, words } = first::Ask::new(what);
            Self { what, words, between: Some("-".to_owned()) }
        }
    }

    pub fn told(joined: &str, version: u32) -> Told {
        let length = (version == 2).then_some(joined.len() as u64);
        Told { version, joined: joined.to_owned(), length }
    }
}

use first::What;

pub fn be_one_if_asked() {
    let Some(arguments) = started_as(ROLE) else { return };
    let domain = Domain::open_directory(&arguments[0], DomainOptions::default()).unwrap();
    let (version, route) = (&*arguments[1], &*arguments[2]);
    let event = format!("{route}/event");
    let _served = if version == "1" {
        let handler = |ask: first::Ask, context: &CallContext| {
            joined(ask.what, &ask.words, "", context).map(|joined| first::told(&joined, 1))
        };
        let echo = |event: first::Event, _: &CallContext| Ok(event);
        [domain.serve(route).handle(handler).unwrap(), domain.serve(&event).handle(echo).unwrap()]
    } else {
        let handler = |ask: second::Ask, context: &CallContext| {
            let between = ask.between.unwrap_or_default();
            joined(ask.what, &ask.words, &between, context).map(|joined| second::told(&joined, 2))
        };
        // The old program does not know what follows an opening.
        let echo = |event: second::Event, _: &CallContext| match event {
            second::Event::Opened => Ok(second::Event::Moved(Some(7))),
            event => Ok(event),
        };
        [domain.serve(route).handle(handler).unwrap(), domain.serve(&event).handle(echo).unwrap()]
    };
    println!("serves");
    for _ in std::io::stdin().lock().lines() {}
    std::process::exit(0);
}

fn joined(what: What, words: &[first::Word], between: &str, context: &CallContext) -> Result<String, Rejection> {
    match what {
        What::Join => {}
        What::JoinAloud => println!("joins"),
        What::JoinLate if context.attempt() > 1 => {}
        What::JoinLate => {
            println!("begun");
            std::thread::sleep(PATIENCE);
        }
        What::JoinThere(route) if route == context.route() => {}
        What::JoinThere(route) => return Err(context.forward(route)),
    }
    Ok(words.iter().map(|word| &*word.text).collect::<Vec<_>>().join(between))
}

fn come(domain: &Path, version: u32, route: &str) -> Process {
    let mut command = this_program();
    command.arg(ROLE).arg(domain).arg(version.to_string()).arg(route).stdin(Stdio::piped());
    Process::start(&mut command)
}

fn start(domain: &Path, version: u32, route: &str) -> Process {
    let mut process = come(domain, version, route);
    assert_eq!(process.line(), "serves");
    process
}

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(AT_A_TIME)
        .scenario("each_version_calls_each", each_version_calls_each)
        .scenario("both_versions_serve_together", both_versions_serve_together)
        .scenario("versions_come_and_go_under_load", versions_come_and_go_under_load)
        .scenario("begun_request_is_retried_elsewhere", begun_request_is_retried_elsewhere)
        .scenario("slots_are_taken_by_another_version", slots_are_taken_by_another_version)
        .scenario("backlog_goes_to_another_version", backlog_goes_to_another_version)
        .scenario("forward_to_another_version", forward_to_another_version)
        .scenario("missing_variant_is_named", missing_variant_is_named)
}

struct Place {
    folder: tempfile::TempDir,
    directory: PathBuf,
    domain: Domain,
}

fn place(slots: u32) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("domain");
    let domain = Domain::open_directory(&directory, DomainOptions { slots, ..DomainOptions::default() }).unwrap();
    Place { folder, directory, domain }
}

fn long() -> CallOptions {
    CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() }
}

fn callers(domain: &Domain) -> (Caller<first::Ask, first::Told>, Caller<second::Ask, second::Told>) {
    let options = || CallerOptions { call: long(), ..CallerOptions::default() };
    (domain.caller_with("route", options()).unwrap(), domain.caller_with("route", options()).unwrap())
}

/// The separator is there only if both are new.
fn between(caller: u32, instance: u32) -> &'static str {
    if (caller, instance) == (2, 2) { "a-b" } else { "ab" }
}

fn each_version_calls_each() {
    for instance in [1, 2] {
        let place = place(64);
        let _instance = start(&place.directory, instance, "route");
        let (first, second) = callers(&place.domain);
        assert_eq!(first.call(first::Ask::new(What::Join)), Ok(first::told(between(1, instance), instance)));
        let expected = second::told(between(2, instance), instance);
        assert_eq!(second.call(second::Ask::new(What::Join)), Ok(expected.clone()));
        let mut call = second.start(second::Ask::new(What::Join));
        assert_eq!(until_some("it is polled", || call.try_take()), Ok(expected.clone()));
        assert_eq!(second.start(second::Ask::new(What::Join)).wait_for(PATIENCE), Some(Ok(expected.clone())));
        let (sender, told) = std::sync::mpsc::channel();
        second.start(second::Ask::new(What::Join)).on_end(move |outcome| sender.send(outcome).unwrap());
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), Ok(expected.clone()));
        let options = CallerOptions { call: long(), waiting: Waiting::Spin, ..CallerOptions::default() };
        let spinning = place.domain.caller_with::<second::Ask, second::Told>("route", options).unwrap();
        for _ in 0..100 {
            assert_eq!(spinning.call(second::Ask::new(What::Join)), Ok(expected.clone()));
        }
        let closed = || "late".to_owned();
        let old = place.domain.caller::<first::Event, first::Event>("route/event").unwrap();
        let event = first::Event::Closed { reason: closed() };
        assert_eq!(old.call(event.clone()), Ok(event));
        let new = place.domain.caller::<second::Event, second::Event>("route/event").unwrap();
        let event = second::Event::Closed { reason: closed() };
        assert_eq!(new.call(event.clone()), Ok(event));
        let json = place.domain.caller::<Json, Json>("route").unwrap();
        let ask = second::Ask::new(What::Join).to_json().unwrap();
        let told = json.call(Json::new(ask).unwrap()).unwrap();
        let (text, length) = if instance == 1 { ("ab", "") } else { ("a-b", r#","length":3"#) };
        let expected = format!(r#"{{"version":{instance},"joined":"{text}"{length}}}"#);
        assert_eq!(String::from_utf8_lossy(told.text()), expected);
    }
}

fn both_versions_serve_together() {
    let place = place(64);
    let _instances = [2, 1, 2, 1].map(|version| start(&place.directory, version, "route"));
    let known = place.domain.routes(PATIENCE).unwrap().routes;
    let types = known.iter().filter(|known| known.route == "route").filter_map(|known| known.types.as_ref());
    let requests: BTreeSet<_> = types.map(|(request, _)| request.to_string()).collect();
    assert_eq!(requests.into_iter().collect::<Vec<_>>(), ["Ask", "Ask v2"]);
    let (first, second) = callers(&place.domain);
    until("all are known", || first.broadcast(&first::Ask::new(What::Join)).is_ok_and(|told| told.len() == 4));
    until("all are known", || second.broadcast(&second::Ask::new(What::Join)).is_ok_and(|told| told.len() == 4));
    // While an old instance serves, requests have the old form; replies have the form of the instance.
    let mut versions: Vec<_> = first.broadcast(&first::Ask::new(What::Join)).unwrap();
    versions.sort_by_key(|(_, told)| told.as_ref().map(|told| told.version).ok());
    let versions: Vec<_> = versions.into_iter().map(|(_, told)| told.unwrap()).collect();
    assert_eq!(versions, [1, 1, 2, 2].map(|instance| first::told("ab", instance)));
    let mut versions: Vec<_> = second.broadcast(&second::Ask::new(What::Join)).unwrap();
    versions.sort_by_key(|(_, told)| told.as_ref().map(|told| told.version).ok());
    let versions: Vec<_> = versions.into_iter().map(|(_, told)| told.unwrap()).collect();
    assert_eq!(versions, [1, 1, 2, 2].map(|instance| second::told("ab", instance)));
    let mut answered = [0, 0, 0];
    until("an instance of each version has taken a call", || {
        let calls: Vec<_> = (0..16).map(|_| second.start(second::Ask::new(What::Join))).collect();
        for told in together::all(calls) {
            let told = told.unwrap();
            assert_eq!(told, second::told("ab", told.version));
            answered[told.version as usize] += 1;
        }
        answered[1] > 0 && answered[2] > 0
    });
}

fn begun_request_is_retried_elsewhere() {
    for (dies, takes_over) in [(2, 1), (1, 2)] {
        let place = place(64);
        let mut instance = start(&place.directory, dies, "route");
        let (first, second) = callers(&place.domain);
        let options = CallOptions { retry: Retry::Always, ..long() };
        let begun = second.start_with(second::Ask::new(What::JoinLate), &options);
        assert_eq!(instance.line(), "begun");
        let calls = (first.start(first::Ask::new(What::Join)), second.start(second::Ask::new(What::Join)));
        instance.kill();
        let _other = start(&place.directory, takes_over, "route");
        let expected = second::told("ab", takes_over);
        assert_eq!(begun.wait(), Ok(expected.clone()));
        assert_eq!(calls.0.wait(), Ok(first::told("ab", takes_over)));
        assert_eq!(calls.1.wait(), Ok(expected));
    }
}

fn versions_come_and_go_under_load() {
    let place = place(64);
    let _instance = start(&place.directory, 2, "route");
    let (first, second) = callers(&place.domain);
    let (clone, is_over) = (second.clone(), AtomicBool::new(false));
    let call = |caller: &Caller<second::Ask, second::Told>| {
        let options = CallOptions { retry: Retry::Always, ..long() };
        while !is_over.load(Ordering::Relaxed) {
            let ask = |_| caller.start_with(second::Ask::new(What::Join), &options);
            for told in together::all((0..8).map(ask)) {
                let told = told.unwrap();
                let whole = (told.joined == "a-b").then(|| second::told("a-b", 2));
                assert_eq!(told, whole.unwrap_or_else(|| second::told("ab", told.version)));
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = [&clone, &second].map(|caller| scope.spawn(|| call(caller)));
        for _ in 0..20 {
            let mut old = start(&place.directory, 1, "route");
            until("the old one has taken a call", || {
                first.call(first::Ask::new(What::Join)) == Ok(first::told("ab", 1))
            });
            old.kill();
        }
        is_over.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

fn slots_are_taken_by_another_version() {
    let place = place(64);
    let mut busy = start(&place.directory, 2, "route");
    let (_, second) = callers(&place.domain);
    let first_call = second.start(second::Ask::new(What::JoinLate));
    assert_eq!(busy.line(), "begun");
    let calls: Vec<_> = (0..10).map(|_| second.start(second::Ask::new(What::JoinAloud))).collect();
    for _ in 0..10 {
        second.send(second::Ask::new(What::JoinAloud)).unwrap();
    }
    let mut instance = come(&place.directory, 1, "route");
    assert_eq!(together::all(calls), vec![Ok(second::told("ab", 1)); 10]);
    // Ten were called and ten were sent.
    let mut lines: Vec<_> = (0..21).map(|_| instance.line()).collect();
    lines.sort();
    assert_eq!(lines, [&["joins"; 20][..], &["serves"]].concat());
    drop(first_call);
}

fn backlog_goes_to_another_version() {
    const CALLS: usize = 2_000;
    let place = place(8);
    let mut busy = start(&place.directory, 2, "route");
    let mut overflow = ElasticQueueOptions::new("versions", place.folder.path());
    overflow.memory_bytes_max = 4096;
    let options = CallerOptions { overflow: Some(overflow), call: long(), ..CallerOptions::default() };
    let second = place.domain.caller_with::<second::Ask, second::Told>("route", options).unwrap();
    let first_call = second.start(second::Ask::new(What::JoinLate));
    assert_eq!(busy.line(), "begun");
    let calls: Vec<_> = (0..CALLS).map(|_| second.start(second::Ask::new(What::JoinAloud))).collect();
    until("they wait on disk", || second.statistics().spilled > 0);
    let mut instance = come(&place.directory, 1, "route");
    let lines = instance.lines_in_background();
    assert_eq!(together::all(calls), vec![Ok(second::told("ab", 1)); CALLS]);
    instance.kill();
    assert_eq!(lines.iter().filter(|line| line == "joins").count(), CALLS);
    drop(first_call);
}

fn forward_to_another_version() {
    for (forwards, answers) in [(1, 2), (2, 1)] {
        let place = place(64);
        let _instances = [start(&place.directory, forwards, "route"), start(&place.directory, answers, "other")];
        let (first, second) = callers(&place.domain);
        let there = || What::JoinThere("other".to_owned());
        assert_eq!(first.call(first::Ask::new(there())), Ok(first::told("ab", answers)));
        // A request written for an old instance has lost its new fields for good.
        assert_eq!(second.call(second::Ask::new(there())), Ok(second::told("ab", answers)));
    }
}

fn missing_variant_is_named() {
    const REASON: &str = "Event: Moved is there since version 2, and the other side speaks version 1";
    let error =
        |which: &str| CallError::BadMessage { route: "route/event".to_owned(), reason: format!("{which}: {REASON}") };
    let place = place(64);
    let instance = start(&place.directory, 2, "route");
    let old = place.domain.caller::<first::Event, first::Event>("route/event").unwrap();
    assert_eq!(
        old.call(first::Event::Opened),
        Err(error("the reply cannot be written where it is served")),
        "it would be told of a move"
    );
    let new = place.domain.caller::<second::Event, second::Event>("route/event").unwrap();
    assert_eq!(new.call(second::Event::Opened), Ok(second::Event::Moved(Some(7))));
    assert_eq!(new.call(second::Event::Moved(None)), Ok(second::Event::Moved(None)));
    drop(instance);
    let _instance = start(&place.directory, 1, "route");
    until("the other one is there", || new.call(second::Event::Opened) == Ok(second::Event::Opened));
    assert_eq!(
        new.call(second::Event::Moved(None)),
        Err(error("the request cannot be written at the caller")),
        "it is not sent"
    );
}
