//! Data of a process from `/proc`: CPU time, age, memory, session, users, control group.

use rustix::time::{ClockId, clock_gettime};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessTimes {
    pub cpu_ms: u64,
    /// Age, ms.
    pub running_ms: u64,
}

impl ProcessTimes {
    pub fn of(pid: u32) -> Option<Self> {
        let [user, system, started] = status_fields(pid, [14, 15, 22])?;
        let ms = |ticks: u64| ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second().max(1);
        let now = clock_gettime(ClockId::Boottime);
        let now_ms = (now.tv_sec as u64).saturating_mul(1000) + now.tv_nsec as u64 / 1_000_000;
        Some(Self { cpu_ms: ms(user.saturating_add(system)), running_ms: now_ms.saturating_sub(ms(started)) })
    }
}

/// Numbered as in proc_pid_stat(5); only fields after the name.
fn status_fields<const COUNT: usize>(pid: u32, numbers: [usize; COUNT]) -> Option<[u64; COUNT]> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain spaces and parentheses; the next field is number 3.
    let fields: Vec<&str> = status.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let values = numbers.map(|number| fields.get(number - 3)?.parse().ok());
    values.iter().all(Option::is_some).then(|| values.map(Option::unwrap_or_default))
}

/// Resident memory, bytes.
pub fn memory_bytes(pid: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages = statm.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Session id, which is the process id of the instance; `None` without the process, or with a session leader outside
/// this PID namespace.
pub fn session(pid: u32) -> Option<u32> {
    // rustix's getsid cannot represent 0, which the kernel returns for a leader outside.
    let [session] = status_fields(pid, [6])?;
    u32::try_from(session).ok().filter(|session| *session != 0)
}

/// Real and saved user id, whose processes may signal it.
pub fn users(pid: u32) -> Option<[u32; 2]> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_ascii_whitespace();
    let (real, saved) = (users.next()?.parse().ok()?, users.nth(1)?.parse().ok()?);
    Some([real, saved])
}

/// Processes in a control group (version 2), given by its directory.
pub fn processes_of_group(group: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

pub fn is_in_group(pid: u32, group: &Path) -> bool {
    i32::try_from(pid).is_ok_and(|pid| processes_of_group(group).contains(&pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_process_has_no_data() {
        let this = std::process::id();
        let times = ProcessTimes::of(this).unwrap();
        let threads = std::thread::available_parallelism().unwrap().get() as u64;
        assert!(times.cpu_ms <= (times.running_ms + 20) * threads, "{times:?}");
        assert!(times.running_ms < 3_600_000, "{times:?}");
        assert!(memory_bytes(this).unwrap() > 100_000);
        assert_ne!(session(this), Some(0));
        assert_eq!(users(this), Some([rustix::process::getuid().as_raw(); 2]));
        assert_eq!((ProcessTimes::of(u32::MAX), memory_bytes(u32::MAX), session(u32::MAX)), (None, None, None));
        assert_eq!(users(u32::MAX), None);
    }

    #[test]
    fn session_leader_leads_its_session() {
        let mut process = std::process::Command::new("setsid").args(["sleep", "60"]).spawn().unwrap();
        let give_up_at = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while session(process.id()) != Some(process.id()) {
            assert!(std::time::Instant::now() < give_up_at, "{:?}", session(process.id()));
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(session(process.id()), None);
    }
}
