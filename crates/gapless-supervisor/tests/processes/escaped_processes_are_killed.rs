//! Control groups find descendants that have left the session and closed the lock.

use super::floor::{are_ready, down, find, is_alive, kill_both, place, process, up, wait_for};
use super::instance_program::ESCAPE;
use super::test_place::{TestPlace, kill, name};
use gapless_supervisor::control_groups::{self, ControlGroups};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{until, until_some};
use rustix::process::Signal;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("escaped_child_ends_before_restart", escaped_child_ends_before_restart)
        .scenario("next_supervisor_finds_escaped_child", next_supervisor_finds_escaped_child)
}

fn place_with_escaped_child() -> Option<(TestPlace, ControlGroups, Vec<String>)> {
    let place = place();
    let groups = match ControlGroups::make(&place.directory) {
        Ok(groups) => groups,
        Err(reason) => {
            println!("SKIPPED: {reason}");
            return None;
        }
    };
    let processes = vec![process(&place, "a", ESCAPE, "stop = { grace = \"1 s\" }")];
    up(&place, &processes);
    wait_for(&place, "it is ready", |status| are_ready(status, 1));
    Some((place, groups, processes))
}

fn escaped(place: &TestPlace, index: usize) -> u32 {
    let closed = |count: usize| super::test_place::lines(&place.folder().join("closed")).len() >= count;
    until("it has closed everything", || closed(index + 1));
    until_some("it was noted", || {
        let starts = place.starts();
        starts.iter().filter(|((instance, _), _)| instance.process() == "escaped").nth(index).map(|(_, pid)| *pid)
    })
}

fn escaped_child_ends_before_restart() {
    let Some((place, groups, _)) = place_with_escaped_child() else { return };
    let first = escaped(&place, 0);
    let group = groups.of_instance(&name("a.1"));
    assert!(control_groups::contains(&group, first));
    let status = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    kill(find(&status, "a.1").process_id.unwrap(), Signal::KILL);
    wait_for(&place, "it is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 1));
    assert!(!is_alive(first), "the escaped child of the first start is dead");
    let second = escaped(&place, 1);
    assert!(is_alive(second) && control_groups::contains(&group, second));
    down(&place);
    assert!(!is_alive(second));
    assert!(!groups.root().exists(), "no group is left");
}

fn next_supervisor_finds_escaped_child() {
    let Some((place, _, processes)) = place_with_escaped_child() else { return };
    let first = escaped(&place, 0);
    let status = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    kill_both(&place);
    kill(find(&status, "a.1").process_id.unwrap(), Signal::KILL);
    assert!(is_alive(first));
    up(&place, &processes);
    wait_for(&place, "it is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 1));
    assert!(!is_alive(first));
    down(&place);
}
