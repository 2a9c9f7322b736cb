//! No start happens twice, no child is lost, each end is known or unseen. Needs a build with debug assertions.

use super::kills_start_nothing_twice::{INSTANCES, check_ends, up, wait_until_all_run};
use super::minimal_supervisor::{CHORES, armed_file};
use super::test_place::{TestPlace, kill_if_there, lines, name, no_zombies};
use gapless_agent::fault::{GUARDIAN_CRASH_POINTS, LAUNCH_CRASH_POINTS, SUPERVISOR_CRASH_POINTS};
use gapless_supervisor::state_directory::{Holder, RoleLock};
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const PASSES: [u64; 2] = [1, 2];

pub fn module() -> Module {
    Module::new(module_path!())
        .with_choices("guardian_dies_at_every_point", |random| die_at(random, "guardian", &GUARDIAN_CRASH_POINTS))
        .with_choices("launcher_dies_at_every_point", |random| die_at(random, "launch", &LAUNCH_CRASH_POINTS))
        .with_choices("supervisor_dies_at_every_point", |random| die_at(random, "supervisor", &SUPERVISOR_CRASH_POINTS))
}

fn die_at(random: &mut Random, role: &str, points: &[&str]) {
    let (mut starts, mut ends) = (0, (0, 0));
    for point in points {
        for pass in PASSES {
            let once = ["guardian_locked", "guardian_listening", "guardian_ending", "supervisor_locked"];
            if pass > 1 && (once.contains(point) || role == "launch") {
                continue;
            }
            let place = TestPlace::new();
            let mut killed: BTreeMap<u32, Vec<Signal>> = BTreeMap::new();
            let arm = || std::fs::write(place.folder().join(armed_file(role)), format!("{point}:{pass}")).unwrap();
            // Passed only by a superseded launcher.
            let is_chore = *point == "launch_refused";
            if is_chore {
                up(&place);
                wait_until_all_run(&place, "at first");
                arm();
                std::fs::write(place.folder().join(CHORES), "").unwrap();
            } else {
                arm();
                up(&place);
            }
            let begun = Instant::now();
            while !has_died_at_its_point(&place) {
                assert!(begun.elapsed() < PATIENCE, "{point}:{pass} is not passed");
                if !is_chore {
                    disturb(&place, random, point, &mut killed);
                }
            }
            let _was_none = std::fs::remove_file(place.folder().join(CHORES));
            let when = format!("after {point}:{pass}");
            wait_until_all_run(&place, &when);
            for instance in INSTANCES.into_iter().chain(INSTANCES) {
                // A dying instance can look like a running one: retry.
                let pid = loop {
                    match kill_instance(&place, instance, &mut killed) {
                        Some(pid) => break pid,
                        None => wait_until_all_run(&place, &when),
                    }
                };
                until(&format!("{instance} is another {when}"), || running(&place, instance) != Some(pid));
                wait_until_all_run(&place, &when);
            }
            place.check_starts();
            let (known, unknown) = check_ends(&place, &killed);
            no_zombies(place.wait_for_role(RoleLock::Guardian));
            starts += place.starts().len();
            ends = (ends.0 + known, ends.1 + unknown);
            assert!(known >= INSTANCES.len(), "{when}: the live guardian must know the ends of its children");
        }
    }
    println!("{} points; {starts} starts; ends: {} known, {} unknown", points.len(), ends.0, ends.1);
}

fn has_died_at_its_point(place: &TestPlace) -> bool {
    let claimed = lines(&place.folder().join("claimed"));
    claimed.first().is_some_and(|pid| {
        let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
        !stat.is_ok_and(|stat| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z")))
    })
}

fn disturb(place: &TestPlace, random: &mut Random, point: &str, killed: &mut BTreeMap<u32, Vec<Signal>>) {
    std::thread::sleep(Duration::from_millis(1 + random.below(30)));
    match random.below(4) {
        0 if point.starts_with("supervisor") => {
            place.running_as(RoleLock::Guardian).into_iter().for_each(|pid| kill_if_there(pid, Signal::KILL));
        }
        0 if point == "guardian_ending" => {}
        0 => place.running_as(RoleLock::Supervisor).into_iter().for_each(|pid| kill_if_there(pid, Signal::KILL)),
        1 if point == "guardian_ending" => {
            place.running_as(RoleLock::Guardian).into_iter().for_each(|pid| kill_if_there(pid, Signal::TERM));
        }
        which => {
            let _pid_if_it_runs = kill_instance(place, INSTANCES[which as usize % INSTANCES.len()], killed);
        }
    }
    if [RoleLock::Guardian, RoleLock::Supervisor].into_iter().all(|role_lock| place.running_as(role_lock).is_none()) {
        place.start_guardian();
    }
}

/// `None` for a launcher.
fn running(place: &TestPlace, instance: &str) -> Option<u32> {
    let holder = place.directory.instance(&name(instance)).holder().unwrap();
    let Holder::Recorded { record, .. } = holder else { return None };
    place.starts().values().any(|pid| *pid == record.process.process_id).then_some(record.process.process_id)
}

fn kill_instance(place: &TestPlace, instance: &str, killed: &mut BTreeMap<u32, Vec<Signal>>) -> Option<u32> {
    let Holder::Recorded { record, pidfd } = place.directory.instance(&name(instance)).holder().unwrap() else {
        return None;
    };
    let pid = record.process.process_id;
    let is_started = place.starts().values().any(|started| *started == pid);
    if !is_started || pidfd_send_signal(&pidfd, Signal::TERM).is_err() {
        return None;
    }
    killed.entry(pid).or_default().push(Signal::TERM);
    Some(pid)
}
