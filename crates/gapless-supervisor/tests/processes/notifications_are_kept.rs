use super::floor::{answered_status, are_ready, down, find, place, process, up, wait_for};
use super::instance_program::{NOTIFY, ROLE};
use super::test_place::{TestPlace, kill, lines};
use gapless_supervisor::control::protocol::InstanceCondition;
use gapless_supervisor::state_directory::{RoleLock, StateSocket};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("notification_waits_for_supervisor", notification_waits_for_supervisor)
        .scenario("notification_survives_the_guardian", notification_survives_the_guardian)
        .scenario("foreign_notifications_are_ignored", foreign_notifications_are_ignored)
        .scenario("watchdog_trigger_leads_to_a_kill", watchdog_trigger_leads_to_a_kill)
        .scenario("other_user_can_notify", other_user_can_notify)
}

fn waiting() -> TestPlace {
    let place = place();
    up(&place, &[process(&place, "a", NOTIFY, "ready = \"notify\"")]);
    until("it runs", || place.starts().len() == 1);
    place
}

fn allow_notification(place: &TestPlace) {
    std::fs::write(place.folder().join("ready"), "").unwrap();
}

fn wait_for_notification(place: &TestPlace) {
    until("it has spoken", || !lines(&place.folder().join("spoken")).is_empty());
}

fn notification_waits_for_supervisor() {
    let place = waiting();
    let guardian = place.wait_for_role(RoleLock::Guardian);
    let supervisor = place.wait_for_role(RoleLock::Supervisor);
    // Keeps the guardian from starting another supervisor.
    kill(guardian, Signal::STOP);
    kill(supervisor, Signal::KILL);
    until("it is dead", || place.running_as(RoleLock::Supervisor).is_none());
    allow_notification(&place);
    wait_for_notification(&place);
    kill(guardian, Signal::CONT);
    let status = wait_for(&place, "the next supervisor has received it", |status| are_ready(status, 1));
    assert_eq!(find(&status, "a.1").says.as_deref(), Some("fine"));
    kill(place.wait_for_role(RoleLock::Supervisor), Signal::KILL);
    let status = wait_for(&place, "the state is known", |status| are_ready(status, 1));
    assert_eq!(find(&status, "a.1").says.as_deref(), Some("fine"));
    assert_eq!(lines(&place.folder().join("spoken")).len(), 1);
    down(&place);
}

fn notification_survives_the_guardian() {
    let place = waiting();
    let guardian = place.wait_for_role(RoleLock::Guardian);
    kill(guardian, Signal::KILL);
    allow_notification(&place);
    wait_for_notification(&place);
    wait_for(&place, "it was received", |status| are_ready(status, 1));
    down(&place);
}

fn foreign_notifications_are_ignored() {
    let place = waiting();
    let supervisor = place.wait_for_role(RoleLock::Supervisor);
    let sender = UnixDatagram::unbound().unwrap();
    let path = place.directory.socket(StateSocket::Notify);
    for words in [&b"READY=1"[..], b"WATCHDOG=trigger\nSTATUS=wrong", b"", &[255; 9000], b"READY=1\0"] {
        sender.send_to(words, &path).unwrap();
    }
    let before = answered_status(&place);
    assert_eq!(find(&before, "a.1").state, InstanceCondition::Starting);
    allow_notification(&place);
    let after = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    assert_eq!((find(&after, "a.1").says.as_deref(), find(&after, "a.1").restarts), (Some("fine"), 0));
    assert_eq!(place.wait_for_role(RoleLock::Supervisor), supervisor);
    down(&place);
}

fn watchdog_trigger_leads_to_a_kill() {
    let place = place();
    allow_notification(&place);
    std::fs::write(place.folder().join("words"), "READY=1\nWATCHDOG=trigger").unwrap();
    up(&place, &[process(&place, "a", NOTIFY, "ready = \"notify\"\nrestart = { restarts_max = 1 }")]);
    let status = wait_for(&place, "it is held", |status| find(status, "a.1").state == InstanceCondition::Held);
    let reason = find(&status, "a.1").last_reason.clone().unwrap_or_default();
    assert!(reason.contains("WATCHDOG=trigger"), "{reason}");
    down(&place);
}

fn other_user_can_notify() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root may become another user");
        return;
    }
    let place = place();
    std::fs::set_permissions(place.folder(), PermissionsExt::from_mode(0o777)).unwrap();
    allow_notification(&place);
    let program = std::env::current_exe().unwrap();
    let words = [program.to_str().unwrap(), ROLE, place.folder().to_str().unwrap(), "a.1", "1", NOTIFY];
    let text = format!("[process.a]\ncommand = {words:?}\nuser = \"nobody\"\nready = \"notify\"\n");
    up(&place, &[text]);
    let status = wait_for(&place, "it was received", |status| are_ready(status, 1));
    let pid = find(&status, "a.1").process_id.unwrap();
    let told = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(told.contains("Uid:\t65534\t65534"), "{told}");
    down(&place);
}
