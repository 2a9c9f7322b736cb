//! `faults` covers kills of silent roles.

use super::floor::{are_ready, down, find, is_alive, pids, place, process, up, wait_for, write};
use super::instance_program::{NOTIFY, STAY};
use super::test_place::{TestPlace, kill, kill_if_there, roles};
use gapless_supervisor::SupervisorConfig;
use gapless_supervisor::control::protocol::{SupervisorAnswer, SupervisorRequest};
use gapless_supervisor::control::{ControlClient, end_all, take_charge};
use gapless_supervisor::state_directory::RoleLock;
use gapless_supervisor::supervision::event::OperatorCommand;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait::{PATIENCE, until, until_some};
use rustix::fs::{FileType, Mode};
use rustix::process::Signal;
use std::time::Duration;

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("pipes_as_logs_do_not_block", pipes_as_logs_do_not_block)
        .scenario("shutdown_of_silent_roles_times_out", shutdown_of_silent_roles_times_out)
        .scenario("unrecorded_shutdown_is_an_error", unrecorded_shutdown_is_an_error)
        .scenario("removed_sockets_are_reopened", removed_sockets_are_reopened)
        .scenario("instance_without_files_is_replaced", instance_without_files_is_replaced)
        .scenario("removed_directory_prevents_a_start", removed_directory_prevents_a_start)
        .scenario("up_takes_over_from_dying_roles", up_takes_over_from_dying_roles)
}

fn pipes_as_logs_do_not_block() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "")]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    for log in [place.directory.events(), place.directory.guardian_log()] {
        std::fs::remove_file(&log).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &log, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }
    for role_lock in [RoleLock::Guardian, RoleLock::Supervisor] {
        kill(place.wait_for_role(role_lock), Signal::KILL);
    }
    kill(find(&before, "a.1").process_id.unwrap(), Signal::KILL);
    up(&place, &[process(&place, "a", STAY, "")]);
    wait_for(&place, "a.1 is back", |status| pids(status) != pids(&before) && are_ready(status, 1));
    down(&place);
}

fn shutdown_of_silent_roles_times_out() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "")]);
    wait_for(&place, "it is ready", |status| are_ready(status, 1));
    let both = [RoleLock::Supervisor, RoleLock::Guardian].map(|role_lock| place.wait_for_role(role_lock));
    both.into_iter().for_each(|pid| kill(pid, Signal::STOP));
    let error = end_all(place.directory.path(), &roles(), Duration::from_millis(500)).unwrap_err().to_string();
    let stopped = "is stopped by a signal; SIGCONT lets it go on";
    let ends_with = format!("; it, process {}, {stopped}; its guardian, process {}, {stopped}", both[0], both[1]);
    assert!(error.contains("does not answer within 0.5 s; what was asked for may still be done"), "{error}");
    assert!(error.ends_with(&ends_with), "{error}");
    both.into_iter().for_each(|pid| kill(pid, Signal::CONT));
    until("no role runs", || both.into_iter().all(|pid| !is_alive(pid)));
    assert_eq!(place.directory.read_config_in_force().unwrap(), None);
}

fn unrecorded_shutdown_is_an_error() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "")]);
    wait_for(&place, "it is ready", |status| are_ready(status, 1));
    for file in ["config-in-force", "memory"].map(|name| place.directory.path().join(name)) {
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir_all(file.join("inside")).unwrap();
    }
    let error = end_all(place.directory.path(), &roles(), PATIENCE).unwrap_err().to_string();
    assert!(error.starts_with("all instances have ended, and it cannot be written down (removing "), "{error}");
    assert!(error.contains("config-in-force") && error.ends_with("starts them again"), "{error}");
    until("no role runs", || {
        [RoleLock::Guardian, RoleLock::Supervisor].into_iter().all(|role_lock| place.running_as(role_lock).is_none())
    });
    let left: Vec<u32> = place.starts().into_values().filter(|pid| is_alive(*pid)).collect();
    assert_eq!(left, [] as [u32; 0], "live instances");
}

fn removed_sockets_are_reopened() {
    let place = place();
    std::fs::write(place.folder().join("ready"), "").unwrap();
    up(&place, &[process(&place, "a", NOTIFY, "ready = \"notify\"")]);
    let before = wait_for(&place, "it is ready", |status| are_ready(status, 1));
    for socket in ["control.socket", "guardian.socket", "notify/socket"] {
        std::fs::remove_file(place.directory.path().join(socket)).unwrap();
    }
    let mut client = ControlClient::connect_within(place.directory.path(), PATIENCE).unwrap();
    until("all are there", || {
        ["guardian.socket", "notify/socket"].iter().all(|socket| place.directory.path().join(socket).exists())
    });
    let supervisor = place.wait_for_role(RoleLock::Supervisor);
    client.change(OperatorCommand::Restart(vec!["a".to_owned()])).unwrap();
    wait_for(&place, "it reports readiness", |status| pids(status) != pids(&before) && are_ready(status, 1));
    kill(supervisor, Signal::KILL);
    until("there is another", || place.running_as(RoleLock::Supervisor).is_some_and(|pid| pid != supervisor));
    wait_for(&place, "it is in control", |status| are_ready(status, 1));
    down(&place);
}

fn instance_without_files_is_replaced() {
    let place = place();
    up(&place, &[process(&place, "a", STAY, "instances = 2")]);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let lost = find(&before, "a.1").process_id.unwrap();
    std::fs::remove_dir_all(place.directory.path().join("instances/a.1")).unwrap();
    kill(place.wait_for_role(RoleLock::Supervisor), Signal::KILL);
    let after = wait_for(&place, "it is replaced", |status| {
        are_ready(status, 2) && find(status, "a.1").process_id != Some(lost)
    });
    assert!(!is_alive(lost));
    assert_eq!(find(&after, "a.2").process_id, find(&before, "a.2").process_id);
    down(&place);
}

fn removed_directory_prevents_a_start() {
    let place = place();
    let processes = [process(&place, "a", STAY, "instances = 2")];
    up(&place, &processes);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let guardian = place.wait_for_role(RoleLock::Guardian);
    std::fs::remove_dir_all(place.directory.path()).unwrap();
    let again = |place: &TestPlace| {
        let path = write(place, &processes);
        take_charge(&path, &SupervisorConfig::load(&path).unwrap(), &roles(), PATIENCE)
    };
    let error = again(&place).unwrap_err().to_string();
    assert!(error.contains(&guardian.to_string()) && error.contains("run twice"), "{error}");
    assert!(!place.directory.path().exists());
    pids(&before).into_iter().flatten().for_each(|pid| kill_if_there(pid, Signal::KILL));
    until("the guardian has ended with them", || !is_alive(guardian));
    again(&place).unwrap();
    wait_for(&place, "all are ready", |status| are_ready(status, 2));
    let mut client = ControlClient::connect_within(place.directory.path(), PATIENCE).unwrap();
    client.ask(&SupervisorRequest::Down).unwrap();
    assert_eq!(until_some("it has ended", || client.next(PATIENCE).unwrap()), SupervisorAnswer::Done);
}

fn up_takes_over_from_dying_roles() {
    let place = place();
    let processes = [process(&place, "a", STAY, "instances = 2")];
    up(&place, &processes);
    let before = wait_for(&place, "all are ready", |status| are_ready(status, 2));
    for _ in 0..15 {
        let both = [RoleLock::Guardian, RoleLock::Supervisor].map(|role_lock| place.wait_for_role(role_lock));
        both.into_iter().for_each(|pid| kill_if_there(pid, Signal::STOP));
        both.into_iter().for_each(|pid| kill_if_there(pid, Signal::KILL));
        up(&place, &processes);
        let after = wait_for(&place, "a supervisor runs", |status| are_ready(status, 2));
        assert_eq!(pids(&after), pids(&before));
    }
    down(&place);
}
