//! What a copy says of itself reaches a supervisor, also one that comes later; and only a copy's own words count.

use super::copy_program::{NOTIFY, ROLE};
use super::floor::{answered_status, are_ready, down, find, place, process, up, wait_for};
use super::place::{Place, kill, lines};
use gapless_supervisor::control::protocol::CopyCondition;
use gapless_supervisor::state_directory::{RoleLock, Socket};
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::until;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("words_wait_for_the_next_supervisor", words_wait_for_the_next_supervisor)
        .scenario("words_are_heard_behind_another_guardian", words_are_heard_behind_another_guardian)
        .scenario("a_strangers_words_count_for_nothing", a_strangers_words_count_for_nothing)
        .scenario("a_copy_that_says_it_is_stuck_is_killed", a_copy_that_says_it_is_stuck)
        .scenario("a_copy_of_another_user_is_heard", a_copy_of_another_user_is_heard)
}

/// One copy that says that it is ready as soon as the test lets it.
fn waiting() -> Place {
    let place = place();
    up(&place, &[process(&place, "a", NOTIFY, "ready = \"notify\"")]);
    until("it runs", || place.starts().len() == 1);
    place
}

fn let_it_speak(place: &Place) {
    std::fs::write(place.folder().join("ready"), "").unwrap();
}

/// The copy notes that it has spoken, once.
fn wait_until_it_has(place: &Place) {
    until("it has spoken", || !lines(&place.folder().join("spoken")).is_empty());
}

fn words_wait_for_the_next_supervisor() {
    let place = waiting();
    let guardian = place.wait_for_role(RoleLock::Guardian);
    let supervisor = place.wait_for_role(RoleLock::Supervisor);
    // So that no other one comes.
    kill(guardian, Signal::STOP);
    kill(supervisor, Signal::KILL);
    until("it is dead", || place.running_as(RoleLock::Supervisor).is_none());
    let_it_speak(&place);
    wait_until_it_has(&place);
    kill(guardian, Signal::CONT);
    let status = wait_for(&place, "the next one has heard it", |status| are_ready(status, 1));
    assert_eq!(find(&status, "a.1").says.as_deref(), Some("fine"));
    // The one after that knows it by what was written down.
    kill(place.wait_for_role(RoleLock::Supervisor), Signal::KILL);
    let status = wait_for(&place, "it is known", |status| are_ready(status, 1));
    assert_eq!(find(&status, "a.1").says.as_deref(), Some("fine"));
    assert_eq!(lines(&place.folder().join("spoken")).len(), 1);
    down(&place);
}

fn words_are_heard_behind_another_guardian() {
    let place = waiting();
    let guardian = place.wait_for_role(RoleLock::Guardian);
    kill(guardian, Signal::KILL);
    let_it_speak(&place);
    wait_until_it_has(&place);
    wait_for(&place, "it was heard", |status| are_ready(status, 1));
    down(&place);
}

fn a_strangers_words_count_for_nothing() {
    let place = waiting();
    let supervisor = place.wait_for_role(RoleLock::Supervisor);
    let sender = UnixDatagram::unbound().unwrap();
    let path = place.directory.socket(Socket::Notify);
    for words in [&b"READY=1"[..], b"WATCHDOG=trigger\nSTATUS=wrong", b"", &[255; 9000], b"READY=1\0"] {
        sender.send_to(words, &path).unwrap();
    }
    // Behind them comes the copy's own.
    let before = answered_status(&place);
    assert_eq!(find(&before, "a.1").state, CopyCondition::Starting);
    let_it_speak(&place);
    let after = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    assert_eq!((find(&after, "a.1").says.as_deref(), find(&after, "a.1").restarts), (Some("fine"), 0));
    assert_eq!(place.wait_for_role(RoleLock::Supervisor), supervisor);
    down(&place);
}

fn a_copy_that_says_it_is_stuck() {
    let place = place();
    let_it_speak(&place);
    std::fs::write(place.folder().join("words"), "READY=1\nWATCHDOG=trigger").unwrap();
    up(&place, &[process(&place, "a", NOTIFY, "ready = \"notify\"\nrestart = { restarts_max = 1 }")]);
    let status = wait_for(&place, "it is held", |status| find(status, "a.1").state == CopyCondition::Held);
    let reason = find(&status, "a.1").last_reason.clone().unwrap_or_default();
    assert!(reason.contains("WATCHDOG=trigger"), "{reason}");
    down(&place);
}

fn a_copy_of_another_user_is_heard() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root may become another user");
        return;
    }
    let place = place();
    std::fs::set_permissions(place.folder(), PermissionsExt::from_mode(0o777)).unwrap();
    let_it_speak(&place);
    let program = std::env::current_exe().unwrap();
    let words = [program.to_str().unwrap(), ROLE, place.folder().to_str().unwrap(), "a.1", "1", NOTIFY];
    let text = format!("[process.a]\ncommand = {words:?}\nuser = \"nobody\"\nready = \"notify\"\n");
    up(&place, &[text]);
    let status = wait_for(&place, "it was heard", |status| are_ready(status, 1));
    let pid = find(&status, "a.1").process_id.unwrap();
    let told = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(told.contains("Uid:\t65534\t65534"), "{told}");
    down(&place);
}
