//! A process that serves, for the tests to start and to kill.

use gapless_rpc::{CallContext, Domain, DomainOptions, Message, Refusal, Rejection, ServedRoute};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::random::Random;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufRead;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const ROLE: &str = "be-a-copy";

/// What the tests ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub enum Ask {
    /// The number and one.
    Increment(u64),
    /// As many bytes.
    Bytes(u32),
    /// A refusal with that code.
    Refuse(u32),
    Panic,
    /// An answer after so many milliseconds; what is left of the call's time before it sleeps.
    Sleep(u64),
    /// Whether the caller's patience has ended while it slept.
    SleepUntilCancelled,
    /// The request goes on to that route.
    Forward(String),
    /// The value of that header.
    Header(String),
    /// A call from inside the handler: what is left of its time there.
    Nested(String),
}

/// And what they get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub enum Told {
    Number(u64),
    Bytes(Vec<u8>),
    Left(u64),
    Cancelled(bool),
    Text(String),
}

fn answer(domain: &Domain, ask: Ask, context: &CallContext) -> Result<Told, Rejection> {
    Ok(match ask {
        Ask::Increment(number) => Told::Number(number + 1),
        Ask::Bytes(count) => Told::Bytes((0..count).map(|index| index as u8).collect()),
        Ask::Refuse(code) => return Err(Refusal { code, text: "no".to_owned(), payload: vec![1, 2] }.into()),
        Ask::Panic => panic!("as it was asked to"),
        Ask::Sleep(milliseconds) => {
            let left = context.remaining().unwrap_or_default();
            std::thread::sleep(Duration::from_millis(milliseconds));
            Told::Left(left.as_millis() as u64)
        }
        Ask::SleepUntilCancelled => {
            while !context.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            println!("cancelled");
            Told::Cancelled(true)
        }
        Ask::Forward(route) => return Err(context.forward(route)),
        Ask::Header(name) => {
            Told::Text(String::from_utf8_lossy(context.headers().get(&name).unwrap_or(b"")).into_owned())
        }
        Ask::Nested(route) => {
            let caller = domain.caller::<Ask, Told>(&route).map_err(|error| error.to_string())?;
            caller.call(Ask::Sleep(0)).map_err(|error| error.to_string())?
        }
    })
}

/// Serves until its standard input ends. Lines there: `scribble SEED` writes over everything that it shares and may write.
pub fn be_one_if_asked() {
    let Some(arguments) = started_as(ROLE) else { return };
    let domain = Domain::open_directory(&arguments[0], DomainOptions::default()).unwrap();
    let workers = arguments[1].parse().unwrap();
    let _served: Vec<ServedRoute> = arguments[2..]
        .iter()
        .map(|route| {
            let inner = domain.clone();
            let answer = move |ask: Ask, context: &CallContext| answer(&inner, ask, context);
            domain.serve(route).workers(workers).handle(answer).unwrap()
        })
        .collect();
    println!("serves");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if let Some(seed) = line.strip_prefix("scribble ") {
            scribble(&mut Random::new(seed.parse().unwrap()));
            println!("scribbled");
        }
    }
    std::process::exit(0);
}

/// Writes random words over the pages of every region that this process may write.
pub fn scribble(random: &mut Random) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let memory = File::options().write(true).open("/proc/self/mem").unwrap();
    for line in maps.lines().filter(|line| line.contains("gapless-region") && line.contains(" rw-s ")) {
        let (first, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let address = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let length = (address(end) - address(first)).min(1 << 20);
        for _ in 0..20 {
            let offset = random.below(length / 8) * 8;
            // Now what could be a claim, now anything.
            let word = if random.below(2) == 0 { random.below(16) } else { random.below(u64::MAX) };
            memory.write_all_at(&word.to_le_bytes(), address(first) + offset).unwrap();
        }
    }
}

/// Starts one in a domain, and waits until it serves.
pub fn start(domain: &Path, workers: usize, routes: &[&str]) -> Process {
    let mut command = this_program();
    command.arg(ROLE).arg(domain).arg(workers.to_string()).args(routes).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut process = Process::start(&mut command);
    assert_eq!(process.line(), "serves");
    process
}
