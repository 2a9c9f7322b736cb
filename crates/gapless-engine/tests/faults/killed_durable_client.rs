//! A durable client and its service are killed at any moment: each kept command takes effect once, and its outcome is
//! heard. Notices take numbers of the session, too, and long commands several at a time.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]
#![allow(clippy::print_stdout, reason = "it says that it runs")]

use gapless_agent::block_on::block_on;
use gapless_client::{CallError, Client, ClientError, DurableClient};
use gapless_engine::{Context, Handlers, Service, ServiceHost, ServiceHostOptions};
use gapless_message::{Message, NoRefusal};
use gapless_schema::Encoding;
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until_some};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::Duration;

const SERVICE: &str = "killed_durable_client::service";
const CLIENT: &str = "killed_durable_client::client";
const NAMES_OF_LIFE: u64 = 1_000_000;
/// Several frames.
const LONG: usize = 200_000;

/// Replied to with its place; names that end with 3 are refused.
#[derive(Serialize, Deserialize, Message)]
#[message(reply = u64, refusal = String)]
struct Take {
    name: u64,
    filling: Vec<u8>,
}

#[derive(Serialize, Deserialize, Message)]
#[message(reply = Page)]
struct List {
    from: u64,
}

#[derive(Serialize, Deserialize, Message)]
struct Page {
    names: Vec<u64>,
}

#[derive(Default)]
struct Taken(Vec<u64>);

impl Service for Taken {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers
            .command(|taken: &mut Self, Take { name, .. }: Take, context: &mut Context<'_>| {
                if name % 10 == 3 {
                    return Err(format!("{name} is refused"));
                }
                taken.0.push(name);
                let session = context.session();
                // A client that is dead takes none.
                let _ = context.notify_bytes(session, 7, Encoding::Opaque, 0, |_| Ok::<_, String>(0));
                Ok(taken.0.len() as u64)
            })
            .command(|taken: &mut Self, List { from }: List, _: &mut Context<'_>| {
                Ok::<_, NoRefusal>(Page { names: taken.0.iter().skip(from as usize).take(1_000).copied().collect() })
            });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend(self.0.iter().flat_map(|name| name.to_le_bytes()));
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = state.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        Ok(())
    }
}

pub fn run_as_process_if_requested() {
    if let Some(arguments) = started_as(SERVICE) {
        let host = ServiceHost::start(Taken::default(), ServiceHostOptions::in_directory(&arguments[0])).unwrap();
        println!("running");
        while host.failure().is_none() {
            std::thread::sleep(Duration::from_millis(100));
        }
        std::process::exit(1);
    }
    let Some(arguments) = started_as(CLIENT) else { return };
    let [bank, home, life, seed] = arguments.as_slice() else { panic!("{arguments:?}") };
    let client = open(Path::new(bank), Path::new(home));
    hear(&client, usize::MAX);
    let (life, mut random) = (life.parse::<u64>().unwrap(), Random::of(seed.parse().unwrap(), CLIENT));
    if life == 0 {
        println!("end .");
        std::process::exit(0);
    }
    let mut names = life * NAMES_OF_LIFE..;
    loop {
        for name in names.by_ref().take(1 + random.below(150) as usize) {
            let length = if random.happens(20) { random.below(LONG as u64) } else { random.below(100) };
            drop(client.keep(Take { name, filling: vec![7; length as usize] }).unwrap());
            println!("kept {name} .");
        }
        hear(&client, random.below(200) as usize);
    }
}

/// The service may be dead at the moment.
fn open(bank: &Path, home: &Path) -> DurableClient {
    let connect = || Client::connect(bank.to_str().unwrap()).within(PATIENCE).durable(home);
    until_some("an open client", || match connect() {
        Ok(client) => Some(client),
        Err(error @ (ClientError::Outbox { .. } | ClientError::Option { .. })) => panic!("{error}"),
        Err(_) => None,
    })
}

/// The last word of a line tells that it is whole.
fn hear(client: &DurableClient, most: usize) {
    for kept in client.kept::<Take>().into_iter().take(most) {
        let name = kept.request().unwrap().name;
        match kept.wait() {
            Ok(place) => println!("done {name} {place} ."),
            Err(CallError::Refused(reason)) => println!("refused {name} {reason} ."),
            Err(other) => panic!("{name}: {other:?}"),
        }
        kept.forget().unwrap();
    }
}

pub fn module() -> Module {
    Module::new(module_path!()).with_choices("each_command_once", each_command_once)
}

#[derive(Default)]
struct Heard {
    kept: BTreeSet<u64>,
    /// Place by name; 0 for a refused one.
    outcomes: BTreeMap<u64, u64>,
    again: usize,
    has_ended: bool,
}

impl Heard {
    fn hear(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let (name, place) = match words.as_slice() {
            ["kept", _, "."] => return assert!(self.kept.insert(number(1)), "{line}"),
            ["done", _, _, "."] => (number(1), number(2)),
            ["refused", name, reason, "is", "refused", "."] => {
                assert_eq!(name, reason);
                (number(1), 0)
            }
            ["end", "."] => return self.has_ended = true,
            // Killed in the middle of it.
            words => return assert_ne!(words.last(), Some(&"."), "{line}"),
        };
        let earlier = self.outcomes.insert(name, place);
        assert!(earlier.is_none_or(|earlier| earlier == place), "{line}: it was {earlier:?}");
        self.again += usize::from(earlier.is_some());
    }

    fn hear_all(&mut self, lines: &Receiver<String>) {
        lines.iter().for_each(|line| self.hear(&line));
    }
}

fn each_command_once(random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let (bank, home) = (folder.path().join("bank"), folder.path().join("home"));
    let start_service = || {
        let mut service = Process::start(this_program().arg(SERVICE).arg(&bank));
        assert_eq!(service.line(), "running");
        service
    };
    let mut service = start_service();
    let mut heard = Heard::default();
    let start_client = |life: u64, seed: u64| {
        let mut command = this_program();
        command.args([CLIENT.as_ref(), bank.as_os_str(), home.as_os_str()]).args([life.to_string(), seed.to_string()]);
        let mut client = Process::start(&mut command);
        let lines = client.lines_in_background();
        (client, lines)
    };
    for life in 1..=rounds(200, 40) {
        let (mut client, lines) = start_client(life, random.below(u64::MAX));
        for _ in 0..random.below(4) {
            for _ in 0..random.below(150) {
                heard.hear(&lines.recv_timeout(PATIENCE).expect("the client goes on"));
            }
            if random.happens(300) {
                service.kill();
                std::thread::sleep(Duration::from_micros(random.below(20_000)));
                service = start_service();
            }
        }
        std::thread::sleep(Duration::from_micros(random.below(15_000)));
        // Both, in either order, or the client alone.
        let kills_service = random.below(4);
        if kills_service == 0 {
            service.kill();
        }
        client.kill();
        if kills_service == 1 {
            service.kill();
        }
        heard.hear_all(&lines);
        if kills_service < 2 {
            service = start_service();
        }
    }
    let (mut last, lines) = start_client(0, 0);
    heard.hear_all(&lines);
    assert!(last.wait().success() && heard.has_ended);
    check(&heard, &bank);
}

fn check(heard: &Heard, bank: &Path) {
    let client = block_on(Client::connect(bank.to_str().unwrap()).into_future()).unwrap();
    let mut taken: Vec<u64> = Vec::new();
    loop {
        let page = block_on(client.call(List { from: taken.len() as u64 })).unwrap();
        if page.names.is_empty() {
            break;
        }
        taken.extend(page.names);
    }
    let mut places = BTreeMap::new();
    for (name, place) in taken.iter().zip(1..) {
        assert_eq!(places.insert(*name, place), None, "{name} was taken twice");
        assert_eq!(heard.outcomes.get(name), Some(&place), "{name} was taken, and that is heard");
    }
    for (name, place) in heard.outcomes.iter().filter(|(_, place)| **place > 0) {
        assert_eq!(places.get(name), Some(place), "{name} was said to be taken");
    }
    let unheard = heard.kept.iter().filter(|name| !heard.outcomes.contains_key(name)).collect::<Vec<_>>();
    assert!(unheard.is_empty(), "kept and not heard of: {unheard:?}");
    let refused = heard.outcomes.values().filter(|place| **place == 0).count();
    let again = heard.again;
    println!("{} were kept, {} taken, {refused} refused, {again} heard of again", heard.kept.len(), taken.len());
    assert!(taken.is_sorted(), "kept commands take effect in their order");
    assert!(taken.len() > 500 && refused > 50);
}
