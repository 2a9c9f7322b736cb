//! No start happens twice, no child is lost, each end is known or recorded as unknown.

use super::minimal_supervisor::{ENDS, WANTED};
use super::test_place::{TestPlace, descriptors, kill_if_there, lines, name, no_zombies};
use gapless_supervisor::state_directory::{Holder, RoleLock};
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::time::Duration;

pub const INSTANCES: [&str; 3] = ["a.1", "a.2", "b.1"];

pub fn module(kills: u64) -> Module {
    Module::new(module_path!())
        .with_choices("random_kills_start_nothing_twice", move |random| random_kills_start_nothing_twice(kills, random))
}

pub fn up(place: &TestPlace) {
    std::fs::write(place.folder().join(WANTED), INSTANCES.join("\n")).unwrap();
    place.start_guardian();
}

#[track_caller]
pub fn wait_until_all_run(place: &TestPlace, when: &str) {
    for instance in INSTANCES {
        until(&format!("{instance} runs {when}"), || {
            start_if_down(place);
            let holder = place.directory.instance(&name(instance)).holder().unwrap();
            matches!(holder, Holder::Recorded { record, .. }
                if place.starts().get(&(name(instance), record.incarnation)) == Some(&record.process.process_id))
        });
    }
    for role_lock in [RoleLock::Guardian, RoleLock::Supervisor] {
        until(&format!("there is a {role_lock:?} {when}"), || {
            start_if_down(place);
            place.running_as(role_lock).is_some()
        });
    }
}

fn start_if_down(place: &TestPlace) {
    if [RoleLock::Guardian, RoleLock::Supervisor].into_iter().all(|role_lock| place.running_as(role_lock).is_none()) {
        place.start_guardian();
    }
}

#[track_caller]
pub fn check_ends(place: &TestPlace, killed: &BTreeMap<u32, Vec<Signal>>) -> (usize, usize) {
    let starts = place.starts();
    let mut ends = BTreeMap::new();
    for line in lines(&place.folder().join(ENDS)) {
        let (instance, rest) = line.split_once(' ').unwrap();
        let (incarnation, how) = rest.split_once(' ').unwrap();
        // A supervisor that is killed before it persists an end records it again.
        let noted: &mut Vec<String> = ends.entry((name(instance), incarnation.parse::<u64>().unwrap())).or_default();
        noted.push(how.to_owned());
    }
    let (mut known, mut unknown) = (0, 0);
    for ((instance, incarnation), pid) in &starts {
        let is_last = !starts.contains_key(&(instance.clone(), incarnation + 1))
            && starts.keys().filter(|(other, _)| other == instance).map(|(_, number)| number).max()
                == Some(incarnation);
        match ends.get(&(instance.clone(), *incarnation)) {
            None => assert!(is_last, "the end of {instance}, incarnation {incarnation}, was not recorded"),
            Some(noted) => {
                // Either of two signals may have caused the death.
                let sent = killed.get(pid).into_iter().flatten();
                let sent: Vec<_> = sent.map(|signal| format!("killed by signal {}", signal.as_raw())).collect();
                for how in noted {
                    let is_true = how == "unknown" || sent.contains(how);
                    assert!(is_true, "{instance}, incarnation {incarnation}: {how}, but signals sent were {sent:?}");
                    if how == "unknown" { unknown += 1 } else { known += 1 }
                }
            }
        }
    }
    (known, unknown)
}

fn random_kills_start_nothing_twice(kills: u64, random: &mut Random) {
    let place = TestPlace::new();
    up(&place);
    wait_until_all_run(&place, "at first");
    let mut killed: BTreeMap<u32, Vec<Signal>> = BTreeMap::new();
    let open = descriptors(place.wait_for_role(RoleLock::Guardian));
    for round in 0..kills {
        // Ends of a dead guardian's children are unknown.
        let victim: usize = random.pick(&[0, 1, 1, 2, 3, 4, 2, 3, 4, 2, 3, 4, 5]);
        let signal = random.pick(&[Signal::KILL, Signal::TERM, Signal::USR1]);
        if victim == 0 || victim == 5 {
            place.running_as(RoleLock::Guardian).into_iter().for_each(|pid| kill_if_there(pid, Signal::KILL));
        }
        if victim == 1 || victim == 5 {
            place.running_as(RoleLock::Supervisor).into_iter().for_each(|pid| kill_if_there(pid, Signal::KILL));
        }
        if let Some(instance) = INSTANCES.get(victim.wrapping_sub(2)) {
            let holder = place.directory.instance(&name(instance)).holder().unwrap();
            if let Holder::Recorded { record, pidfd } = holder {
                // A launcher is not recorded, and does not die of each signal.
                let is_noted = place.starts().values().any(|pid| *pid == record.process.process_id);
                if is_noted && rustix::process::pidfd_send_signal(&pidfd, signal).is_ok() {
                    killed.entry(record.process.process_id).or_default().push(signal);
                }
            }
        }
        if random.happens(300) {
            wait_until_all_run(&place, &format!("after kill {round}"));
        } else {
            std::thread::sleep(Duration::from_micros(random.below(30_000)));
        }
    }
    wait_until_all_run(&place, "in the end");
    place.check_starts();
    let (known, unknown) = check_ends(&place, &killed);
    let guardian = place.wait_for_role(RoleLock::Guardian);
    no_zombies(guardian);
    until("its descriptors are as at the beginning", || descriptors(guardian) <= open);
    println!("{} starts; ends: {known} known, {unknown} unknown", place.starts().len());
}
