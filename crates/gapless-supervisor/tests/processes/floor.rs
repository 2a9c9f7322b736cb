use super::instance_program::{OWN, ROLE};
use super::minimal_supervisor::REAL;
use super::test_place::{TestPlace, kill_if_there, name, roles};
use gapless_supervisor::SupervisorConfig;
use gapless_supervisor::control::protocol::{InstanceCondition, InstanceStatus, SupervisorAnswer, SupervisorRequest};
use gapless_supervisor::control::{ControlClient, SupervisionStatus, take_charge};
use gapless_supervisor::state_directory::RoleLock;
use gapless_testkit::wait::{PATIENCE, until, until_some};
use rustix::process::Signal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub fn process(place: &TestPlace, name: &str, wish: &str, more: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let words = [program.to_str().unwrap(), ROLE, place.folder().to_str().unwrap(), OWN, OWN, wish];
    format!("[process.{name}]\ncommand = {words:?}\n{more}\n")
}

pub fn place() -> TestPlace {
    let place = TestPlace::new();
    std::fs::write(place.folder().join(REAL), "").unwrap();
    place
}

pub fn write(place: &TestPlace, processes: &[String]) -> PathBuf {
    let path = place.folder().join("floor.toml");
    let text = format!("[supervisor]\ndirectory = \"state\"\n{}", processes.concat());
    std::fs::write(&path, text).unwrap();
    path
}

pub fn up(place: &TestPlace, processes: &[String]) -> ControlClient {
    let path = write(place, processes);
    let config = SupervisorConfig::load(&path).unwrap();
    take_charge(&path, &config, &roles(), PATIENCE).unwrap()
}

pub fn status(place: &TestPlace) -> Option<SupervisionStatus> {
    ControlClient::connect(place.directory.path()).ok()??.status().ok()
}

#[track_caller]
pub fn answered_status(place: &TestPlace) -> SupervisionStatus {
    wait_for(place, "the supervisor answers", |_| true)
}

const TOLD_AFTER: Duration = Duration::from_secs(20);

#[track_caller]
pub fn wait_for(place: &TestPlace, what: &str, is_so: impl Fn(&SupervisionStatus) -> bool) -> SupervisionStatus {
    let (begun, mut is_told) = (Instant::now(), false);
    until_some(what, || {
        let found = status(place);
        if begun.elapsed() > TOLD_AFTER && !std::mem::replace(&mut is_told, true) {
            eprintln!("{what} is waited for: {found:?}");
        }
        found.filter(|status| is_so(status))
    })
}

pub fn find<'a>(status: &'a SupervisionStatus, instance: &str) -> &'a InstanceStatus {
    status
        .instances
        .iter()
        .find(|found| found.instance == name(instance))
        .unwrap_or_else(|| panic!("{instance} in {status:?}"))
}

pub fn are_ready(status: &SupervisionStatus, count: usize) -> bool {
    status.instances.iter().filter(|instance| instance.state == InstanceCondition::Ready).count() == count
}

pub fn pids(status: &SupervisionStatus) -> Vec<Option<u32>> {
    status.instances.iter().map(|instance| instance.process_id).collect()
}

/// Zombies without a guardian count as dead.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X'])))
}

#[track_caller]
pub fn down(place: &TestPlace) {
    let mut client = ControlClient::connect_within(place.directory.path(), PATIENCE).unwrap();
    client.ask(&SupervisorRequest::Down).unwrap();
    let answer = until_some("it has ended", || client.next(PATIENCE).unwrap());
    assert_eq!(answer, SupervisorAnswer::Done);
    until("no role runs", || {
        [RoleLock::Guardian, RoleLock::Supervisor].into_iter().all(|role_lock| place.running_as(role_lock).is_none())
    });
    place.check_starts();
    let left: Vec<u32> = place.starts().into_values().filter(|pid| is_alive(*pid)).collect();
    assert_eq!(left, [] as [u32; 0], "live instances");
    assert_eq!(place.directory.read_config_in_force().unwrap(), None);
}

pub fn kill_both(place: &TestPlace) {
    until("both are dead", || {
        let both = [RoleLock::Guardian, RoleLock::Supervisor].map(|role_lock| place.running_as(role_lock));
        both.into_iter().flatten().for_each(|pid| kill_if_there(pid, Signal::STOP));
        both.into_iter().flatten().for_each(|pid| kill_if_there(pid, Signal::KILL));
        both == [None, None]
    });
}
