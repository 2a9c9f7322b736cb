//! A process is killed at each crash point of a call, as instance and as caller; slots, descriptors and files are
//! released. Needs debug assertions.

use crate::counted::{
    Traffic, caller, check, descriptors, every_slot_is_free, executions, files, open, serve, start_caller,
    start_instance,
};
use gapless_agent::fault::{CALLER_CRASH_POINTS, INSTANCE_CRASH_POINTS};
use gapless_rpc::Retry;
use gapless_testkit::process::Process;
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until;
use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

const KILLS_PER_POINT: u64 = 3;
const CALLS_AFTERWARDS: u64 = 200;

pub fn module() -> Module {
    Module::new(module_path!())
        .with_choices("killed_instance_at_each_point", killed_instance_at_each_point)
        .with_choices("killed_caller_at_each_point", killed_caller_at_each_point)
}

fn armed(point: &str, random: &mut Random) -> String {
    let most = match point {
        "sweep_between_files" => 3,
        "call_withdrawn" | "call_waiting_for_slot" => 10,
        _ if point.starts_with("call_") && point != "call_revoked_before_wake" => 500,
        _ if point.starts_with("instance_") => 500,
        _ => 1,
    };
    format!("{point}:{}", 1 + random.below(most))
}

#[track_caller]
fn wait_for_death(process: &mut Process, armed: &str) {
    let status = process.wait_end(&format!("death at {armed}"));
    assert_eq!(status.signal(), Some(9), "{armed}: it ended with {status}");
}

/// Files of a process killed before its socket appeared: the next starting process removes them.
fn leave_files(domain: &Path, random: &mut Random) {
    let id = format!("copy-{:016x}{:016x}", random.number(), random.number());
    for ending in ["lock", "new"] {
        std::fs::write(domain.join(format!("{id}.{ending}")), "").unwrap();
    }
}

fn killed_instance_at_each_point(random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let (path, record) = (folder.path().join("domain"), folder.path().join("record"));
    let domain = open(&path);
    let mut before = None;
    let mut outcomes = HashMap::new();
    for round in 0..KILLS_PER_POINT {
        for (index, point) in INSTANCE_CRASH_POINTS.into_iter().enumerate() {
            let armed = armed(point, random);
            let retry = random.pick(&[Retry::Never, Retry::NotBegun, Retry::Always]);
            let caller = caller(&domain, retry);
            if point.starts_with("sweep") {
                leave_files(&path, random);
            }
            let number = (1 + round) << 48 | (index as u64) << 40;
            let traffic = Traffic::begin(&caller, number);
            let mut instance = start_instance(&path, &record, Some(&armed));
            wait_for_death(&mut instance, &armed);
            let mut successor = start_instance(&path, &record, None);
            assert_eq!(successor.line(), "serves", "after {armed}");
            traffic.wait_for(CALLS_AFTERWARDS);
            let ended = traffic.end();
            check(&ended, &executions(&record), retry);
            ended.iter().for_each(|(_, outcome)| *outcomes.entry(*outcome).or_insert(0) += 1);
            until("only the successor's files are there", || files(&path) == 2);
            every_slot_is_free(&caller, &successor, number + (1 << 39));
            successor.kill();
            until("the files of the dead are removed", || files(&path) == 0);
            let at_first = *before.get_or_insert_with(descriptors);
            until("the descriptors of the dead are closed", || descriptors() <= at_first);
        }
    }
    println!("{} kills; calls: {outcomes:?}", KILLS_PER_POINT * INSTANCE_CRASH_POINTS.len() as u64);
}

fn killed_caller_at_each_point(random: &mut Random) {
    let folder = tempfile::tempdir().unwrap();
    let (path, record) = (folder.path().join("domain"), folder.path().join("record"));
    let domain = open(&path);
    let route = serve(&domain, &record);
    let mut before = None;
    let mut callers = 0;
    for _ in 0..KILLS_PER_POINT {
        for point in CALLER_CRASH_POINTS {
            let armed = armed(point, random);
            callers += 1;
            let mut second = (point == "call_revoked_before_wake").then(|| start_instance(&path, &record, None));
            if let Some(second) = &mut second {
                assert_eq!(second.line(), "serves");
            }
            let mut caller = start_caller(&path, callers, None, Some(&armed));
            if let Some(second) = &mut second {
                // A caller that has not found an instance does not lose it.
                assert_eq!(second.line(), "has a caller");
                second.kill();
            }
            wait_for_death(&mut caller, &armed);
            drop(second);
            until("its table is gone, and no handler is at work", || {
                route.callers() == 0 && route.statistics().in_flight == 0
            });
            callers += 1;
            let mut next = start_caller(&path, callers, Some(CALLS_AFTERWARDS), None);
            assert_eq!(next.line(), "calls");
            assert!(next.line().starts_with("ended "), "after {armed}");
            assert!(next.wait_end("the next caller ends").success());
            until("it is gone, too", || route.callers() == 0);
            until("only the files of this process are there", || files(&path) == 2);
            let at_first = *before.get_or_insert_with(descriptors);
            until("the descriptors of the dead are closed", || descriptors() <= at_first);
        }
    }
    let executions = executions(&record);
    let doubled = executions.values().filter(|times| **times > 1).count();
    assert_eq!(doubled, 0, "nothing that had begun is begun again");
    println!("{} kills, {} executions", KILLS_PER_POINT * CALLER_CRASH_POINTS.len() as u64, executions.len());
    drop(route);
}
