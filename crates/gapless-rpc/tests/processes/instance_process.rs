use gapless_rpc::{CallContext, Domain, DomainOptions, Message, Refusal, Rejection, ServedRoute};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::random::Random;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufRead;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const ROLE: &str = "be-an-instance";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
pub enum Ask {
    Increment(u64),
    Bytes(u32),
    Refuse(u32),
    Panic,
    /// Milliseconds; returns the remaining time of the call at the start.
    Sleep(u64),
    WaitForFile(String),
    SleepUntilCancelled,
    Forward(String),
    Header(String),
    Nested(String),
    Who,
    Say(u64),
    Caller,
}

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
        Ask::WaitForFile(path) => {
            while !Path::new(&path).exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Told::Number(std::process::id().into())
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
        Ask::Who => Told::Number(std::process::id().into()),
        Ask::Say(number) => {
            println!("{number}");
            Told::Number(number)
        }
        Ask::Caller => {
            let caller = context.caller();
            Told::Text(format!("{} {} {}", caller.name, caller.process_id, caller.user_id))
        }
    })
}

/// Serves until its standard input ends. Input lines `SEED SLICE SLICES` overwrite shared memory.
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
        println!("{}", scribble_as_told(&line));
    }
    std::process::exit(0);
}

pub fn scribble_as_told(order: &str) -> String {
    let numbers: Vec<u64> = order.split(' ').map(|number| number.parse().unwrap()).collect();
    scribble(&mut Random::new(numbers[0]), (numbers[1], numbers[2]))
}

const PAGE: u64 = 4096;

/// Overwrites every region, even read-only ones, by a descriptor opened again below `/proc`: random words in the first
/// pages (claims, bells, rings) and the first MiB, and one word in every page of slice `slice` of `slices`. Returns
/// `FIRST..END/PAGES` for each region, the shortest first.
fn scribble(random: &mut Random, (slice, slices): (u64, u64)) -> String {
    let mut regions = Vec::new();
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    // Opening a region adds a descriptor.
    for path in descriptors.collect::<Vec<_>>() {
        let is_region = |to: PathBuf| to.to_string_lossy().starts_with("/memfd:gapless-region");
        if std::fs::read_link(&path).is_ok_and(is_region) {
            let region = File::options().write(true).open(&path).unwrap();
            let metadata = region.metadata().unwrap();
            regions.push((metadata.len() / PAGE, metadata.ino(), region));
        }
    }
    regions.sort_unstable_by_key(|(pages, inode, _)| (*pages, *inode));
    regions.dedup_by_key(|(_, inode, _)| *inode);
    let mut written = Vec::new();
    for (pages, _, region) in regions {
        let slice = pages * slice / slices..(pages * (slice + 1)).div_ceil(slices);
        let anywhere = [4; 4].into_iter().chain([256; 16]).map(|most| (0, pages.min(most) * PAGE)).collect::<Vec<_>>();
        for (begin, length) in anywhere.into_iter().chain(slice.clone().map(|page| (page * PAGE, PAGE))) {
            let offset = begin + random.below(length / 8) * 8;
            let word = if random.below(2) == 0 { random.below(16) } else { random.below(u64::MAX) };
            region.write_all_at(&word.to_le_bytes(), offset).unwrap();
        }
        written.push(format!("{}..{}/{pages}", slice.start, slice.end));
    }
    written.join(" ")
}

pub fn start(domain: &Path, workers: usize, routes: &[&str]) -> Process {
    start_as(this_program(), domain, workers, routes)
}

/// The command executes [`this_program`] with the arguments that follow its own.
pub fn start_as(mut command: Command, domain: &Path, workers: usize, routes: &[&str]) -> Process {
    command.arg(ROLE).arg(domain).arg(workers.to_string()).args(routes).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut process = Process::start(&mut command);
    assert_eq!(process.line(), "serves");
    process
}
