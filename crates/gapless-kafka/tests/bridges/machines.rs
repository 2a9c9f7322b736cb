//! Each machine is a domain in a folder of its own, with a bridge and instances as processes.

use gapless_kafka::bridge::{Bridge, BridgeEvent};
use gapless_kafka::config::BridgeConfig;
use gapless_rpc::{CallError, CallOptions, Caller, Domain, DomainOptions, Message, Refusal, Rejection};
use gapless_testkit::kafka_broker::KafkaBroker;
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::wait::{PATIENCE, until, until_some};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const ROUTE: &str = "work/do";
pub const ALL: &str = "\"work/**\"";

pub const NOTED: &str = "noted ";

/// Time after a call's timeout in which an instance that has begun the call prints that.
const PRINTED_WITHIN: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Message)]
pub enum Work {
    Name,
    Echo(Vec<u8>),
    Refuse,
    Panic,
    /// Ends only when its caller gives it up.
    Wait,
    Forward(String),
    /// Prints a line with this number, so that a test sees each begin of a handler.
    Note(u32),
}

pub struct BridgePlan<'a> {
    pub name: &'a str,
    pub brokers: Vec<String>,
    pub offer: &'a str,
    pub take: &'a str,
    pub lease_time: &'a str,
    pub more: String,
    pub environment: Vec<(String, String)>,
}

pub struct TestMachine {
    pub name: &'static str,
    folder: TempDir,
    pub domain: Domain,
    caller: Caller<Work, Vec<u8>>,
}

impl TestMachine {
    pub fn new(name: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let domain = open(folder.path(), name);
        let caller = domain.caller(ROUTE).unwrap();
        Self { name, folder, domain, caller }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn open(&self) -> Domain {
        open(self.folder(), self.name)
    }

    pub fn bridge(&self, broker: &KafkaBroker, offer: &str, take: &str) -> BridgeProcess {
        self.bridge_named(self.name, broker, offer, take)
    }

    pub fn bridge_named(&self, name: &str, broker: &KafkaBroker, offer: &str, take: &str) -> BridgeProcess {
        self.bridge_with(name, broker, offer, take, "")
    }

    pub fn bridge_with(
        &self,
        name: &str,
        broker: &KafkaBroker,
        offer: &str,
        take: &str,
        limits: &str,
    ) -> BridgeProcess {
        let plan = self.plan(broker.address(), offer, take);
        self.start(&BridgePlan { name, more: limits.to_owned(), ..plan })
    }

    pub fn plan<'a>(&self, broker: String, offer: &'a str, take: &'a str) -> BridgePlan<'a> {
        let (name, brokers) = (self.name, vec![broker]);
        BridgePlan { name, brokers, offer, take, lease_time: "3s", more: String::new(), environment: Vec::new() }
    }

    pub fn start(&self, plan: &BridgePlan<'_>) -> BridgeProcess {
        let BridgePlan { name, brokers, offer, take, lease_time, more, environment } = plan;
        let file = self.folder().join(format!("{name}.toml"));
        let text = format!(
            "offer = [{offer}]\ntake = [{take}]\n[kafka]\nbrokers = {brokers:?}\nprefix = \"test\"\nname = \"{name}\"\n[domain]\ndirectory = \
             \"domain\"\n[limits]\nlease_interval = \"300ms\"\nlease_time = \"{lease_time}\"\n{more}"
        );
        std::fs::write(&file, text).unwrap();
        let mut command = this_program();
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut process = Process::start(command.arg("bridge").arg(&file).stdin(Stdio::piped()));
        let events = process.lines_in_background();
        BridgeProcess { process, events }
    }

    pub fn instance(&self, name: &str) -> Process {
        let mut command = this_program();
        command.arg("instance").arg(self.folder().join("domain")).arg(name).stdin(Stdio::piped());
        let mut process = Process::start(&mut command);
        assert_eq!(process.line(), "serving");
        process
    }

    pub fn call(&self, work: Work) -> Result<Vec<u8>, CallError> {
        self.caller.call(work)
    }

    pub fn call_with(&self, work: Work, change: impl FnOnce(&mut CallOptions)) -> Result<Vec<u8>, CallError> {
        let mut options = self.caller.call_options();
        change(&mut options);
        self.caller.call_with(work, &options)
    }

    /// Calls with a timeout that ends after an instance, which prints `lines`, has begun; it is doubled until one has.
    #[track_caller]
    pub fn let_begun_call_time_out(&self, lines: &Receiver<String>, first_timeout: Duration) {
        let mut timeout = first_timeout;
        loop {
            let begun = Instant::now();
            let error = self.call_with(Work::Wait, |options| options.timeout = Some(timeout)).unwrap_err();
            let took = begun.elapsed();
            assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
            assert!((timeout..PATIENCE).contains(&took), "{took:?} with a timeout of {timeout:?}");
            if let Ok(line) = lines.recv_timeout(PRINTED_WITHIN) {
                assert_eq!(line, "waiting");
                break;
            }
            assert!(timeout < PATIENCE / 4, "no instance has begun the call within {timeout:?}");
            timeout *= 2;
        }
        assert_eq!(next_line(lines), "cancelled");
    }

    pub const fn caller(&self) -> &Caller<Work, Vec<u8>> {
        &self.caller
    }

    #[track_caller]
    pub fn answered_by(&self) -> String {
        let mut last = None;
        let name = until_some("an instance answers", || {
            self.call(Work::Name)
                .inspect_err(|error| {
                    if last.as_ref() != Some(error) {
                        println!("{}: {error}", self.name);
                        last = Some(error.clone());
                    }
                })
                .ok()
        });
        String::from_utf8(name).unwrap()
    }

    #[track_caller]
    pub fn until_answered_by(&self, name: &str) {
        until(&format!("{name} answers"), || self.call(Work::Name).is_ok_and(|found| found == name.as_bytes()));
    }
}

#[track_caller]
pub fn next_line(lines: &Receiver<String>) -> String {
    lines.recv_timeout(PATIENCE).expect("the instance prints a line")
}

fn open(folder: &Path, name: &str) -> Domain {
    let process_name = Some(format!("caller of {name}"));
    Domain::open_directory(
        folder.join("domain"),
        DomainOptions { process_name, slots: 4096, ..DomainOptions::default() },
    )
    .unwrap()
}

pub struct BridgeProcess {
    pub process: Process,
    events: Receiver<String>,
}

impl BridgeProcess {
    #[track_caller]
    pub fn until_event(&self, words: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.events.recv_timeout(PATIENCE) {
                Ok(event) if event.contains(words) => return event,
                Ok(event) => before.push(event),
                Err(error) => panic!("no event with {words:?}: {error}; before: {before:?}"),
            }
        }
    }

    #[track_caller]
    pub fn stop(mut self) -> Vec<String> {
        drop(self.process.input());
        assert!(self.process.wait_end("the bridge stops").success());
        self.events.iter().collect()
    }

    #[track_caller]
    pub fn until_failed(&mut self) -> String {
        let words = self.until_event("ended: ");
        assert_eq!(self.process.wait_end("the bridge ends").code(), Some(1), "{words}");
        words
    }
}

/// Does not return if another process has asked for a part.
pub fn be_a_part_if_asked() {
    if let Some(arguments) = started_as("bridge") {
        be_a_bridge(&arguments[0]);
    }
    if let Some(arguments) = started_as("instance") {
        be_an_instance(&arguments[0], &arguments[1]);
    }
}

fn be_a_bridge(file: &str) -> ! {
    let config = BridgeConfig::load(file).unwrap();
    let on_event = |event: &BridgeEvent| println!("{}: {event}", event.kind());
    let bridge = Bridge::start(config, on_event).unwrap();
    let (ended, input_ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        until_input_ends();
        let _ = ended.send(());
    });
    while !bridge.has_ended() && input_ended.recv_timeout(Duration::from_millis(10)).is_err() {}
    match bridge.end() {
        Ok(()) => std::process::exit(0),
        Err(error) => {
            println!("ended: {error}");
            std::process::exit(1)
        }
    }
}

fn be_an_instance(directory: &str, name: &str) -> ! {
    let options = DomainOptions { process_name: Some(name.to_owned()), ..DomainOptions::default() };
    let domain = Domain::open_directory(directory, options).unwrap();
    let own = name.to_owned();
    let route = domain.serve(ROUTE).workers(8).handle(move |work: Work, context| match work {
        Work::Name => Ok(own.clone().into_bytes()),
        Work::Echo(bytes) => Ok(bytes),
        Work::Refuse => Err(Refusal { code: 7, text: "no".to_owned(), payload: vec![1, 2] }.into()),
        Work::Panic => panic!("asked for"),
        Work::Wait => {
            println!("waiting");
            while !context.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            println!("cancelled");
            Ok(Vec::new())
        }
        Work::Forward(route) => Err(Rejection::Forward { route }),
        Work::Note(number) => {
            println!("{NOTED}{number}");
            Ok(Vec::new())
        }
    });
    let _route = route.unwrap();
    println!("serving");
    until_input_ends();
    std::process::exit(0)
}

fn until_input_ends() {
    let _ended_or_broken = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}
