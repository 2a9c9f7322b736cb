//! A supervisor or guardian that lives and says nothing is killed after its time, and another one goes on.

use super::copy_program::STAY;
use super::floor::{are_ready, down, find, lives, pids, place, process, up, wait_for};
use super::place::{kill, kill_if_there, roles};
use gapless_supervisor::guardian::start_if_missing;
use gapless_supervisor::state_directory::RoleLock;
use gapless_supervisor::supervision::copy::End;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until, until_some};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .side_by_side(4)
        .scenario("a_stopped_supervisor_is_replaced", || a_stopped_role_is_replaced(RoleLock::Supervisor))
        .scenario("a_stopped_guardian_is_replaced", || a_stopped_role_is_replaced(RoleLock::Guardian))
        .scenario("one_stopped_at_its_start_is_replaced", one_stopped_at_its_start_is_replaced)
        .scenario("without_a_guardian_it_answers_and_sees_ends", without_a_guardian_it_answers_and_sees_ends)
}

fn a_stopped_role_is_replaced(role_lock: RoleLock) {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "copies = 2")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let victim = place.wait_for_role(role_lock);
    // Long enough that each has asked the other whether it hears.
    std::thread::sleep(Duration::from_millis(1500));
    kill(victim, Signal::STOP);
    until("another is there", || place.running_as(role_lock).is_some_and(|pid| pid != victim));
    assert!(!lives(victim));
    let after = wait_for(&place, "it is in control", |status| are_ready(status, 2));
    assert_eq!(pids(&after), pids(&before), "it is none of the copies' affairs");
    kill(find(&after, "a.1").process_id.unwrap(), Signal::KILL);
    wait_for(&place, "a.1 is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 2));
    down(&place);
}

/// Numbers of the processes that this one has started.
fn children(pid: u32) -> BTreeSet<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_task = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let listed = tasks.flatten().map(of_task).collect::<String>();
    listed.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

fn one_stopped_at_its_start_is_replaced() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "")]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    let guardian = place.wait_for_role(RoleLock::Guardian);
    let known = children(guardian);
    kill(place.wait_for_role(RoleLock::Supervisor), Signal::KILL);
    // Before it runs its own program, the guardian waits for it.
    let words = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let runs = |pid: &&u32| !words(**pid).is_empty() && words(**pid) != words(guardian);
    let next = until_some("the next one", || children(guardian).difference(&known).find(runs).copied());
    kill(next, Signal::STOP);
    kill(find(&before, "a.1").process_id.unwrap(), Signal::KILL);
    wait_for(&place, "a.1 is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 1));
    assert!(!lives(next));
    down(&place);
}

fn without_a_guardian_it_answers_and_sees_ends() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "copies = 2")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    // Another guardian runs, and does not answer.
    let supervisor = place.wait_for_role(RoleLock::Supervisor);
    kill(supervisor, Signal::STOP);
    let guardian = place.wait_for_role(RoleLock::Guardian);
    kill(guardian, Signal::KILL);
    until("it is dead", || place.running_as(RoleLock::Guardian).is_none());
    start_if_missing(&place.directory, &roles(), PATIENCE).unwrap();
    let guardian = place.wait_for_role(RoleLock::Guardian);
    kill(guardian, Signal::STOP);
    kill(supervisor, Signal::CONT);
    kill(find(&before, "a.1").process_id.unwrap(), Signal::KILL);
    let alone = wait_for(&place, "its end is seen", |status| find(status, "a.1").last_end == Some(End::Unseen));
    assert_eq!(alone.supervisor.supervisor_process_id, Some(supervisor));
    // On a busy machine it has been replaced meanwhile, because it is silent.
    assert_ne!(alone.supervisor.guardian_process_id, Some(guardian));
    kill_if_there(guardian, Signal::CONT);
    let after = wait_for(&place, "it is back", |status| are_ready(status, 2));
    assert_eq!(find(&after, "a.2").process_id, find(&before, "a.2").process_id);
    down(&place);
}
