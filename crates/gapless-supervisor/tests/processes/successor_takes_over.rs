use super::floor::{are_ready, down, find, is_alive, place, up, wait_for};
use super::test_place::{TestPlace, kill, lines, name};
use gapless_supervisor::control::protocol::InstanceCondition;
use gapless_supervisor::control::{ControlClient, SupervisionStatus};
use gapless_supervisor::state_directory::RoleLock;
use gapless_supervisor::supervision::event::OperatorCommand;
use gapless_supervisor::supervision::instance::InstanceEnd;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::process::Signal;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("stop_signal_is_sent_once", stop_signal_is_sent_once)
        .scenario("pending_restart_is_completed", pending_restart_is_completed)
        .scenario("task_with_unseen_end_is_held", task_with_unseen_end_is_held)
        .scenario("descendants_keep_the_grace_period", descendants_keep_the_grace_period)
}

/// Exits with 0 after SIGTERM once the file `go` exists; creates `up` once its trap is set.
const SLOW: &str = "trap 'echo TERM >> terms; stop=1' TERM; echo up > up; \
                    until [ -e go ] && [ \"$stop\" ]; do sleep 0.02; done; exit 0";

/// A process counts as ready before its shell has set the trap.
fn wait_for_trap(place: &TestPlace) {
    until("the trap is set", || !lines(&place.folder().join("up")).is_empty());
}

fn shell(name: &str, script: &str, more: &str) -> String {
    format!("[process.{name}]\ncommand = {:?}\n{more}\n", ["sh", "-c", script])
}

fn go(place: &TestPlace) {
    std::fs::write(place.folder().join("go"), "").unwrap();
}

fn replace_supervisor(place: &TestPlace) -> (SupervisionStatus, ControlClient) {
    let supervisor = place.wait_for_role(RoleLock::Supervisor);
    kill(supervisor, Signal::KILL);
    let after = wait_for(place, "another one is in control", |status| {
        status.supervisor.supervisor_process_id.is_some_and(|pid| pid != supervisor)
    });
    (after, ControlClient::connect_within(place.directory.path(), PATIENCE).unwrap())
}

fn stop_signal_is_sent_once() {
    let place = place();
    let mut client = up(&place, &[shell("a", SLOW, "stop = { grace = \"1 min\" }")]);
    wait_for(&place, "it is ready", |status| are_ready(status, 1));
    wait_for_trap(&place);
    client.change(OperatorCommand::Stop(Vec::new())).unwrap();
    let terms = || lines(&place.folder().join("terms"));
    until("it has got its signal", || terms().len() == 1);
    wait_for(&place, "it is being stopped", |status| find(status, "a.1").state == InstanceCondition::Stopping);
    for _ in 0..2 {
        let (after, _) = replace_supervisor(&place);
        assert_eq!(find(&after, "a.1").state, InstanceCondition::Stopping);
    }
    go(&place);
    wait_for(&place, "it has stopped", |status| find(status, "a.1").state == InstanceCondition::Stopped);
    assert_eq!(terms(), ["TERM"]);
    down(&place);
}

fn pending_restart_is_completed() {
    let place = place();
    let more = "stop = { grace = \"1 min\" }\nrestart = { policy = \"never\" }";
    let mut client = up(&place, &[shell("a", SLOW, more)]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    wait_for_trap(&place);
    client.change(OperatorCommand::Restart(Vec::new())).unwrap();
    until("it has got its signal", || lines(&place.folder().join("terms")).len() == 1);
    wait_for(&place, "it is being stopped", |status| find(status, "a.1").state == InstanceCondition::Stopping);
    replace_supervisor(&place);
    go(&place);
    let after = wait_for(&place, "it is back", |status| are_ready(status, 1));
    assert_ne!(find(&after, "a.1").process_id, find(&before, "a.1").process_id);
    assert_eq!(find(&after, "a.1").restarts, 0);
    down(&place);
}

fn task_with_unseen_end_is_held() {
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
    let held = wait_for(&place, "it is held", |status| find(status, "a.1").state == InstanceCondition::Held);
    let instance = find(&held, "a.1");
    assert_eq!(instance.last_end, Some(InstanceEnd::Unseen));
    assert!(instance.last_reason.as_ref().is_some_and(|reason| reason.contains("not seen")), "{instance:?}");
    let (after, mut client) = replace_supervisor(&place);
    assert_eq!(find(&after, "a.1").state, InstanceCondition::Held);
    assert_eq!(runs(), ["run"]);
    client.change(OperatorCommand::Start(vec!["a".to_owned()])).unwrap();
    wait_for(&place, "it is done", |status| find(status, "a.1").state == InstanceCondition::Done);
    assert_eq!(runs(), ["run", "run"]);
    down(&place);
}

fn descendants_keep_the_grace_period() {
    let place = place();
    let script = "(until [ -e go ]; do sleep 0.02; done; echo well > finished) & \
                  trap 'exit 0' TERM; echo up > up; while :; do sleep 0.02; done";
    let mut client = up(&place, &[shell("a", script, "stop = { grace = \"1 min\" }")]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    wait_for_trap(&place);
    client.change(OperatorCommand::Stop(Vec::new())).unwrap();
    let leader = find(&before, "a.1").process_id.unwrap();
    until("its first process has ended", || !is_alive(leader));
    for _ in 0..2 {
        let status = wait_for(&place, "the supervisor answers", |_| true);
        assert_eq!(find(&status, "a.1").state, InstanceCondition::Stopping);
    }
    let (after, _) = replace_supervisor(&place);
    assert_eq!(find(&after, "a.1").state, InstanceCondition::Stopping);
    go(&place);
    wait_for(&place, "all has ended", |status| find(status, "a.1").state == InstanceCondition::Stopped);
    assert_eq!(lines(&place.folder().join("finished")), ["well"]);
    let holder = place.directory.instance(&name("a.1")).holder().unwrap();
    assert!(matches!(holder, gapless_supervisor::state_directory::Holder::Free { .. }), "{holder:?}");
    down(&place);
}
