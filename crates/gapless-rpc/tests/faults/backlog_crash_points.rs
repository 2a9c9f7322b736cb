//! A caller with thousands of queued requests is killed at each crash point of its backlog: nothing is left, and
//! nothing is executed twice. Needs debug assertions.

use crate::counted::{Outcome, ROUTE, Traffic, caller, check, descriptors, executions, files, open, reply_to, serve};
use gapless_agent::fault::BACKLOG_CRASH_POINTS;
use gapless_rpc::overflow::ElasticQueueOptions;
use gapless_rpc::{CallOptions, CallerOptions, Retry};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

const CALLER: &str = "be-a-caller-with-a-backlog";
const KILLS_PER_POINT: u64 = 3;
const REQUESTS: u64 = 2_000;
const CALLS_AFTERWARDS: u64 = 200;

pub fn module() -> Module {
    Module::new(module_path!()).with_choices("killed_caller_leaves_nothing", killed_caller_leaves_nothing)
}

fn overflow(directory: &Path) -> ElasticQueueOptions {
    ElasticQueueOptions { memory_bytes_max: 4096, ..ElasticQueueOptions::new("backlog", directory) }
}

pub fn be_the_caller_if_asked() {
    let Some(arguments) = started_as(CALLER) else { return };
    let domain = open(Path::new(&arguments[0]));
    let call = CallOptions { timeout: None, wait_for_route: Some(PATIENCE), ..CallOptions::default() };
    let overflow = overflow(Path::new(&arguments[1]));
    let mut numbers = arguments[2].parse::<u64>().unwrap() << 40..;
    loop {
        let options =
            CallerOptions { call: call.clone(), overflow: Some(overflow.clone()), ..CallerOptions::default() };
        let caller = domain.caller_with::<u64, u64>(ROUTE, options).unwrap();
        let mut calls = Vec::new();
        for (number, turn) in numbers.by_ref().zip(0..REQUESTS) {
            match turn % 4 {
                0 => calls.push((number, caller.start(number))),
                _ => caller.send(number).unwrap(),
            }
        }
        for (turn, (number, call)) in calls.into_iter().enumerate() {
            if turn % 3 == 0 {
                drop(call);
            } else {
                assert_eq!(call.wait(), Ok(reply_to(number)));
            }
        }
    }
}

fn start_caller(domain: &Path, overflow: &Path, number: u64, armed: &str) -> Process {
    let mut command = this_program();
    command.arg(CALLER).arg(domain).arg(overflow).arg(number.to_string());
    Process::start(command.env("GAPLESS_CRASH_POINT", armed))
}

fn armed(point: &str, random: &mut Random) -> String {
    let most = match point {
        "backlog_entered" | "backlog_taken" | "backlog_offered" | "backlog_slot_freed" => REQUESTS,
        "overflow_block_written" | "overflow_block_read" => 200,
        _ => 3,
    };
    format!("{point}:{}", 1 + random.below(most))
}

fn regions() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("gapless-region")).count()
}

fn killed_caller_leaves_nothing(random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let (path, record, disk) = (folder.path().join("domain"), folder.path().join("record"), folder.path().join("disk"));
    std::fs::create_dir(&disk).unwrap();
    let (server, client) = (open(&path), open(&path));
    let route = serve(&server, &record);
    let witness = caller(&client, Retry::Never);
    assert!(witness.call(u64::MAX).is_ok());
    until("it is served", || route.callers() == 1);
    let mut before = None;
    let mut kills = 0;
    for _ in 0..KILLS_PER_POINT {
        for point in BACKLOG_CRASH_POINTS {
            let armed = armed(point, random);
            kills += 1;
            let traffic = Traffic::begin(&witness, kills << 40 | 1 << 60);
            let mut dying = start_caller(&path, &disk, kills, &armed);
            let status = dying.wait_end(&format!("death at {armed}"));
            assert_eq!(status.signal(), Some(9), "{armed}: it ended with {status}");
            traffic.wait_for(CALLS_AFTERWARDS);
            let ended = traffic.end();
            assert!(
                ended.iter().all(|(_, outcome)| matches!(outcome, Outcome::Answered | Outcome::Cancelled)),
                "after {armed} another caller notices"
            );
            check(&ended, &executions(&record), Retry::Never);
            until("its table is gone, and no handler is at work", || {
                route.callers() == 1 && route.statistics().in_flight == 0
            });
            assert_eq!(std::fs::read_dir(&disk).unwrap().count(), 0, "no file has a name");
            until("only the files of this process are there", || files(&path) == 2);
            let at_first = *before.get_or_insert_with(|| (descriptors(), regions()));
            until("descriptors and memory of the dead are given back", || {
                descriptors() <= at_first.0 && regions() <= at_first.1
            });
        }
    }
    let executions = executions(&record);
    let doubled = executions.values().filter(|times| **times > 1).count();
    assert_eq!(doubled, 0, "no request is executed twice");
    let of_the_dead = executions.keys().filter(|number| **number >> 40 != 0 && **number >> 60 == 0).count();
    println!("{kills} kills, {of_the_dead} executions for callers that were killed");
}
