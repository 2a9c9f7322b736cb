use super::floor::{are_ready, down, find, is_alive, pids, place, process, up, wait_for};
use super::instance_program::STAY;
use super::test_place::{kill, kill_if_there, roles};
use gapless_supervisor::guardian::start_if_missing;
use gapless_supervisor::state_directory::RoleLock;
use gapless_supervisor::supervision::instance::InstanceEnd;
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
        .scenario("stopped_at_its_start_is_replaced", stopped_at_its_start_is_replaced)
        .scenario("supervisor_works_without_guardian", supervisor_works_without_guardian)
}

fn a_stopped_role_is_replaced(role_lock: RoleLock) {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "instances = 2")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let victim = place.wait_for_role(role_lock);
    std::thread::sleep(Duration::from_millis(1500));
    kill(victim, Signal::STOP);
    until("another process has taken over the role", || place.running_as(role_lock).is_some_and(|pid| pid != victim));
    assert!(!is_alive(victim));
    let after = wait_for(&place, "the roles are in control", |status| are_ready(status, 2));
    assert_eq!(pids(&after), pids(&before), "the instances are unaffected");
    kill(find(&after, "a.1").process_id.unwrap(), Signal::KILL);
    wait_for(&place, "a.1 is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 2));
    down(&place);
}

fn children(pid: u32) -> BTreeSet<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_task = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let listed = tasks.flatten().map(of_task).collect::<String>();
    listed.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

fn stopped_at_its_start_is_replaced() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "")]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    let guardian = place.wait_for_role(RoleLock::Guardian);
    let known = children(guardian);
    kill(place.wait_for_role(RoleLock::Supervisor), Signal::KILL);
    let words = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let runs = |pid: &&u32| !words(**pid).is_empty() && words(**pid) != words(guardian);
    let next = until_some("the next supervisor starts", || children(guardian).difference(&known).find(runs).copied());
    kill(next, Signal::STOP);
    kill(find(&before, "a.1").process_id.unwrap(), Signal::KILL);
    wait_for(&place, "a.1 is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 1));
    assert!(!is_alive(next));
    down(&place);
}

fn supervisor_works_without_guardian() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "instances = 2")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
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
    let alone = wait_for(&place, "its end is seen", |status| find(status, "a.1").last_end == Some(InstanceEnd::Unseen));
    assert_eq!(alone.supervisor.supervisor_process_id, Some(supervisor));
    // May have been replaced already for its silence on a busy machine.
    assert_ne!(alone.supervisor.guardian_process_id, Some(guardian));
    kill_if_there(guardian, Signal::CONT);
    let after = wait_for(&place, "it is back", |status| are_ready(status, 2));
    assert_eq!(find(&after, "a.2").process_id, find(&before, "a.2").process_id);
    down(&place);
}
