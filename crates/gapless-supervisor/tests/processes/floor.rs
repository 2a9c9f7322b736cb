//! Configurations for the real supervisor, and helpers of tests.

use super::copy_program::{OWN, ROLE};
use super::place::{Place, kill_if_there, name, roles};
use super::stand_in::REAL;
use gapless_supervisor::SupervisorConfig;
use gapless_supervisor::control::protocol::{Answer, CopyCondition, CopyStatus, Request};
use gapless_supervisor::control::{ControlClient, Status, take_charge};
use gapless_supervisor::state_directory::RoleLock;
use gapless_testkit::wait::{PATIENCE, until, until_some};
use rustix::process::Signal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Section of a process.
pub fn process(place: &Place, name: &str, wish: &str, more: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let words = [program.to_str().unwrap(), ROLE, place.folder().to_str().unwrap(), OWN, OWN, wish];
    format!("[process.{name}]\ncommand = {words:?}\n{more}\n")
}

pub fn place() -> Place {
    let place = Place::new();
    std::fs::write(place.folder().join(REAL), "").unwrap();
    place
}

pub fn write(place: &Place, processes: &[String]) -> PathBuf {
    let path = place.folder().join("floor.toml");
    let text = format!("[supervisor]\ndirectory = \"state\"\n{}", processes.concat());
    std::fs::write(&path, text).unwrap();
    path
}

/// Same as `gapless up`.
pub fn up(place: &Place, processes: &[String]) -> ControlClient {
    let path = write(place, processes);
    let config = SupervisorConfig::load(&path).unwrap();
    take_charge(&path, &config, &roles(), PATIENCE).unwrap()
}

/// Status from the current supervisor, if one answers.
pub fn status(place: &Place) -> Option<Status> {
    ControlClient::connect(place.directory.path()).ok()??.status().ok()
}

/// Waits for a status: a supervisor that reads a long file may answer late.
#[track_caller]
pub fn answered_status(place: &Place) -> Status {
    wait_for(place, "the supervisor answers", |_| true)
}

const TOLD_AFTER: Duration = Duration::from_secs(20);

#[track_caller]
pub fn wait_for(place: &Place, what: &str, is_so: impl Fn(&Status) -> bool) -> Status {
    let (begun, mut is_told) = (Instant::now(), false);
    until_some(what, || {
        let found = status(place);
        if begun.elapsed() > TOLD_AFTER && !std::mem::replace(&mut is_told, true) {
            eprintln!("{what} is waited for: {found:?}");
        }
        found.filter(|status| is_so(status))
    })
}

pub fn find<'a>(status: &'a Status, copy: &str) -> &'a CopyStatus {
    status.copies.iter().find(|found| found.copy == name(copy)).unwrap_or_else(|| panic!("{copy} in {status:?}"))
}

pub fn are_ready(status: &Status, count: usize) -> bool {
    status.copies.iter().filter(|copy| copy.state == CopyCondition::Ready).count() == count
}

pub fn pids(status: &Status) -> Vec<Option<u32>> {
    status.copies.iter().map(|copy| copy.process_id).collect()
}

/// Whether a process is alive; zombies without a guardian count as dead.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
}

/// Shuts everything down, and checks that no process is left.
#[track_caller]
pub fn down(place: &Place) {
    let mut client = ControlClient::connect_within(place.directory.path(), PATIENCE).unwrap();
    client.ask(&Request::Down).unwrap();
    let answer = until_some("it has ended", || client.next(PATIENCE).unwrap());
    assert_eq!(answer, Answer::Done);
    until("no role runs", || {
        [RoleLock::Guardian, RoleLock::Supervisor].into_iter().all(|role_lock| place.running_as(role_lock).is_none())
    });
    place.check_starts();
    let left: Vec<u32> = place.starts().into_values().filter(|pid| is_alive(*pid)).collect();
    assert_eq!(left, [] as [u32; 0], "live instances");
    assert_eq!(place.directory.read_config_in_force().unwrap(), None);
}

/// Kills guardian and supervisor in a way that prevents either from restarting the other.
pub fn kill_both(place: &Place) {
    until("both are dead", || {
        let both = [RoleLock::Guardian, RoleLock::Supervisor].map(|role_lock| place.running_as(role_lock));
        both.into_iter().flatten().for_each(|pid| kill_if_there(pid, Signal::STOP));
        both.into_iter().flatten().for_each(|pid| kill_if_there(pid, Signal::KILL));
        both == [None, None]
    });
}
