//! A supervisor is killed in the middle of something: the next one goes on with that, and does nothing a second time.

use super::floor::{are_ready, down, find, lives, place, up, wait_for};
use super::place::{Place, kill, lines, name};
use gapless_supervisor::control::protocol::CopyCondition;
use gapless_supervisor::control::{ControlClient, Status};
use gapless_supervisor::state_directory::RoleLock;
use gapless_supervisor::supervision::copy::End;
use gapless_supervisor::supervision::event::Command;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::process::Signal;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("a_copy_that_is_being_stopped_gets_one_signal", a_copy_that_is_being_stopped_gets_one_signal)
        .scenario("a_restart_that_has_begun_is_finished", a_restart_that_has_begun_is_finished)
        .scenario("a_task_whose_end_nobody_saw_does_not_run_again", a_task_whose_end_nobody_saw_does_not_run_again)
        .scenario(
            "what_a_stopped_copy_leaves_has_the_rest_of_its_grace",
            what_a_stopped_copy_leaves_has_the_rest_of_its_grace,
        )
}

/// Notes each SIGTERM, and ends well behind one when the file `go` is there. The file `up` is there once it hears them.
const SLOW: &str = "trap 'echo TERM >> terms; stop=1' TERM; echo up > up; \
                    until [ -e go ] && [ \"$stop\" ]; do sleep 0.02; done; exit 0";

/// A process is ready when it is started, before its shell has set a trap.
fn until_it_hears(place: &Place) {
    until("it hears", || !lines(&place.folder().join("up")).is_empty());
}

fn shell(name: &str, script: &str, more: &str) -> String {
    format!("[process.{name}]\ncommand = {:?}\n{more}\n", ["sh", "-c", script])
}

fn go(place: &Place) {
    std::fs::write(place.folder().join("go"), "").unwrap();
}

/// Kills the supervisor; the status that the next one gives.
fn succeed(place: &Place) -> (Status, ControlClient) {
    let supervisor = place.wait_for_role(RoleLock::Supervisor);
    kill(supervisor, Signal::KILL);
    let after = wait_for(place, "another one is in control", |status| {
        status.supervisor.supervisor_process_id.is_some_and(|pid| pid != supervisor)
    });
    (after, ControlClient::connect_within(place.directory.path(), PATIENCE).unwrap())
}

fn a_copy_that_is_being_stopped_gets_one_signal() {
    let place = place();
    let mut client = up(&place, &[shell("a", SLOW, "stop = { grace = \"1 min\" }")]);
    wait_for(&place, "it is ready", |status| are_ready(status, 1));
    until_it_hears(&place);
    client.change(Command::Stop(Vec::new())).unwrap();
    let terms = || lines(&place.folder().join("terms"));
    until("it has got its signal", || terms().len() == 1);
    wait_for(&place, "it is being stopped", |status| find(status, "a.1").state == CopyCondition::Stopping);
    for _ in 0..2 {
        let (after, _) = succeed(&place);
        assert_eq!(find(&after, "a.1").state, CopyCondition::Stopping);
    }
    go(&place);
    wait_for(&place, "it has stopped", |status| find(status, "a.1").state == CopyCondition::Stopped);
    assert_eq!(terms(), ["TERM"]);
    down(&place);
}

fn a_restart_that_has_begun_is_finished() {
    let place = place();
    let more = "stop = { grace = \"1 min\" }\nrestart = { policy = \"never\" }";
    let mut client = up(&place, &[shell("a", SLOW, more)]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    until_it_hears(&place);
    client.change(Command::Restart(Vec::new())).unwrap();
    until("it has got its signal", || lines(&place.folder().join("terms")).len() == 1);
    wait_for(&place, "it is being stopped", |status| find(status, "a.1").state == CopyCondition::Stopping);
    succeed(&place);
    go(&place);
    let after = wait_for(&place, "it is back", |status| are_ready(status, 1));
    assert_ne!(find(&after, "a.1").process_id, find(&before, "a.1").process_id);
    assert_eq!(find(&after, "a.1").restarts, 0);
    down(&place);
}

fn a_task_whose_end_nobody_saw_does_not_run_again() {
    let place = place();
    let script = "echo run >> runs; until [ -e go ]; do sleep 0.02; done";
    up(&place, &[shell("a", script, "once = true\nready = \"started\"")]);
    let runs = || lines(&place.folder().join("runs"));
    until("it runs", || runs().len() == 1);
    let guardian = place.wait_for_role(RoleLock::Guardian);
    kill(guardian, Signal::KILL);
    wait_for(&place, "another guardian is there", |status| {
        status.supervisor.guardian_process_id.is_some_and(|pid| pid != guardian)
    });
    go(&place);
    let held = wait_for(&place, "it is held", |status| find(status, "a.1").state == CopyCondition::Held);
    let copy = find(&held, "a.1");
    assert_eq!(copy.last_end, Some(End::Unseen));
    assert!(copy.last_reason.as_ref().is_some_and(|reason| reason.contains("not seen")), "{copy:?}");
    let (after, mut client) = succeed(&place);
    assert_eq!(find(&after, "a.1").state, CopyCondition::Held);
    assert_eq!(runs(), ["run"]);
    client.change(Command::Start(vec!["a".to_owned()])).unwrap();
    wait_for(&place, "it is done", |status| find(status, "a.1").state == CopyCondition::Done);
    assert_eq!(runs(), ["run", "run"]);
    down(&place);
}

fn what_a_stopped_copy_leaves_has_the_rest_of_its_grace() {
    let place = place();
    let script = "(until [ -e go ]; do sleep 0.02; done; echo well > finished) & \
                  trap 'exit 0' TERM; echo up > up; while :; do sleep 0.02; done";
    let mut client = up(&place, &[shell("a", script, "stop = { grace = \"1 min\" }")]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    until_it_hears(&place);
    client.change(Command::Stop(Vec::new())).unwrap();
    let leader = find(&before, "a.1").process_id.unwrap();
    until("its first process has ended", || !lives(leader));
    for _ in 0..2 {
        let status = wait_for(&place, "it is known", |_| true);
        assert_eq!(find(&status, "a.1").state, CopyCondition::Stopping);
    }
    // The next supervisor leaves it its time, too.
    let (after, _) = succeed(&place);
    assert_eq!(find(&after, "a.1").state, CopyCondition::Stopping);
    go(&place);
    wait_for(&place, "all has ended", |status| find(status, "a.1").state == CopyCondition::Stopped);
    assert_eq!(lines(&place.folder().join("finished")), ["well"]);
    let holder = place.directory.copy(&name("a.1")).holder().unwrap();
    assert!(matches!(holder, gapless_supervisor::state_directory::Holder::Nobody { .. }), "{holder:?}");
    down(&place);
}
