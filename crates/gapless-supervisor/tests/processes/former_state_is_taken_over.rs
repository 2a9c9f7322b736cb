//! An earlier version called instances copies.

use super::floor::{are_ready, down, find, kill_both, pids, place, process, up, wait_for};
use super::instance_program::STAY;
use super::test_place::kill;
use gapless_supervisor::control::protocol::InstanceCondition;
use gapless_supervisor::control::status_of_files;
use gapless_testkit::scenarios::Module;
use rustix::process::Signal;
use std::path::Path;

pub fn module() -> Module {
    Module::new(module_path!()).scenario("former_names_are_read", former_names_are_read)
}

fn write_former_names(directory: &Path) {
    std::fs::remove_file(directory.join("copies")).unwrap();
    std::fs::rename(directory.join("instances"), directory.join("copies")).unwrap();
    let state = directory.join("memory");
    let text = std::fs::read_to_string(&state).unwrap();
    assert!(text.contains("\"version\":2") && text.contains("\"instances\":{\"1\":"), "{text}");
    let former = text.replace("\"instances\":", "\"copies\":").replace("\"version\":2", "\"version\":1");
    std::fs::write(&state, former).unwrap();
}

fn former_names_are_read() {
    let place = place();
    let processes = [process(&place, "a", STAY, "copies = 2")];
    up(&place, &processes);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    kill(find(&before, "a.1").process_id.unwrap(), Signal::KILL);
    let before = wait_for(&place, "it is back", |status| find(status, "a.1").restarts == 1 && are_ready(status, 2));
    kill_both(&place);
    write_former_names(place.directory.path());
    let found = status_of_files(&place.directory).unwrap();
    assert_eq!((find(&found, "a.1").state, find(&found, "a.1").restarts), (InstanceCondition::Unwatched, 1));
    up(&place, &processes);
    let after = wait_for(&place, "they are taken over", |status| are_ready(status, 2));
    assert_eq!(pids(&after), pids(&before), "the same processes");
    assert_eq!((find(&after, "a.1").restarts, find(&after, "a.2").restarts), (1, 0));
    assert!(place.directory.path().join("instances/a.1/lock").is_file());
    kill(find(&after, "a.2").process_id.unwrap(), Signal::KILL);
    wait_for(&place, "it is back", |status| find(status, "a.2").restarts == 1 && are_ready(status, 2));
    down(&place);
}
