//! What a copy has forked, and what has left its session and its lock, is killed with it where there are control groups.

use super::copy_program::ESCAPE;
use super::floor::{are_ready, down, find, kill_both, lives, place, process, up, wait_for};
use super::place::{Place, kill, name};
use gapless_supervisor::control_groups::{self, ControlGroups};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{until, until_some};
use rustix::process::Signal;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("it_ends_before_the_copy_starts_again", it_ends_before_the_copy_starts_again)
        .scenario("it_is_found_by_whoever_takes_over", it_is_found_by_whoever_takes_over)
}

/// Where a copy runs that has had a process escape.
fn with_an_escaped_one() -> Option<(Place, ControlGroups, Vec<String>)> {
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

/// The process that the copy's start of that place in their order has had escape.
fn escaped(place: &Place, index: usize) -> u32 {
    let closed = |count: usize| super::place::lines(&place.folder().join("closed")).len() >= count;
    until("it has closed everything", || closed(index + 1));
    until_some("it was noted", || {
        let starts = place.starts();
        starts.iter().filter(|((copy, _), _)| copy.process() == "escaped").nth(index).map(|(_, pid)| *pid)
    })
}

fn it_ends_before_the_copy_starts_again() {
    let Some((place, groups, _)) = with_an_escaped_one() else { return };
    let first = escaped(&place, 0);
    let group = groups.of_copy(&name("a.1"));
    assert!(control_groups::contains(&group, first));
    let status = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    kill(find(&status, "a.1").process_id.unwrap(), Signal::KILL);
    wait_for(&place, "it is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 1));
    assert!(!lives(first), "what the first start has left");
    let second = escaped(&place, 1);
    assert!(lives(second) && control_groups::contains(&group, second));
    down(&place);
    assert!(!lives(second));
    assert!(!groups.root().exists(), "no group is left");
}

fn it_is_found_by_whoever_takes_over() {
    let Some((place, _, processes)) = with_an_escaped_one() else { return };
    let first = escaped(&place, 0);
    let status = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    kill_both(&place);
    kill(find(&status, "a.1").process_id.unwrap(), Signal::KILL);
    assert!(lives(first));
    up(&place, &processes);
    wait_for(&place, "it is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 1));
    assert!(!lives(first));
    down(&place);
}
