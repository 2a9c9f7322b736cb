//! `ProcessIdentity`: identity of a process that is safe from reuse of its process id.

use crate::error::SupervisorError;
use gapless_agent::counters::descriptor::process_namespace;
use gapless_agent::monotonic::{boottime_ns, boottime_offset_ns};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

/// Counted from the first field after the name.
const STARTED_FIELD: usize = 22 - 3;
/// Process ids are not reused so soon.
const ROUNDING_TICKS: u64 = 1;

/// Identity of a process, safe from reuse of its process id, also across boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Process id; `pid` in files of earlier versions.
    #[serde(alias = "pid")]
    pub process_id: u32,
    /// Start time in clock ticks since boot: field 22 of `/proc/PID/stat`, without the time namespace's offset.
    pub started_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`
    pub boot: String,
    /// Inode number of the PID namespace of `process_id`; 0 in files of earlier versions, and without `/proc`.
    #[serde(default)]
    pub namespace: u64,
}

impl ProcessIdentity {
    /// Identity of this process.
    ///
    /// # Errors
    /// `/proc` is missing.
    pub fn of_this() -> Result<Self, SupervisorError> {
        let missing = || SupervisorError::io("looking for this process in /proc")(ErrorKind::NotFound.into());
        Self::of(std::process::id())?.ok_or_else(missing)
    }

    /// Identity of the process with this id, if there is one.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn of(process_id: u32) -> Result<Option<Self>, SupervisorError> {
        Ok(started_ticks(process_id)?.map(|started_ticks| Self {
            process_id,
            started_ticks,
            boot: boot_id().to_owned(),
            namespace: process_namespace(),
        }))
    }

    #[must_use]
    pub fn is_of_this_namespace(&self) -> bool {
        [0, process_namespace()].contains(&self.namespace)
    }

    /// Translates it to this PID namespace; `None` if it is invisible here, or dead.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn in_this_namespace(&self) -> Result<Option<Self>, SupervisorError> {
        if self.is_of_this_namespace() {
            return Ok(Some(self.clone()));
        }
        let listed = std::fs::read_dir("/proc").map_err(SupervisorError::io("listing processes"))?.flatten();
        let mut numbers = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let found = numbers.find(|number| number_inside(*number, self.namespace) == Some(self.process_id));
        Ok(found.map(|process_id| Self { process_id, namespace: process_namespace(), ..self.clone() }))
    }

    pub(super) fn is_younger_than(&self, process_id: u32) -> bool {
        let ticks = started_ticks(process_id).ok().flatten();
        self.boot == boot_id() && ticks.is_some_and(|ticks| ticks.saturating_add(ROUNDING_TICKS) < self.started_ticks)
    }

    /// Age in ms, independent of the wall clock; `None` after another boot.
    #[must_use]
    pub fn age_ms(&self) -> Option<u64> {
        if self.boot != boot_id() {
            return None;
        }
        let age_ns = boottime_ns().saturating_sub(self.started_ticks.saturating_mul(tick_ns()));
        Some(age_ns / 1_000_000)
    }

    /// Opens a pidfd, readable once the process is dead; `None` if it is dead already or invisible in this namespace.
    ///
    /// # Errors
    /// This process has no descriptor left, or `/proc` cannot be read.
    pub fn open(&self) -> Result<Option<OwnedFd>, SupervisorError> {
        if self.boot != boot_id() {
            return Ok(None);
        }
        let Some(Self { process_id, .. }) = self.in_this_namespace()? else { return Ok(None) };
        let Some(pid) = i32::try_from(process_id).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw) else {
            return Ok(None);
        };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            // EINVAL: the id now belongs to a thread.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(SupervisorError::system(format!("opening a pidfd of process {pid}"))(errno)),
        };
        // The id cannot be reused while the process lives. So the start time is its own if it is alive after the read.
        let ticks = started_ticks(process_id)?;
        let is_it = ticks.is_some_and(|ticks| ticks.abs_diff(self.started_ticks) <= ROUNDING_TICKS);
        let is_it = is_it && !is_dead(&pidfd);
        Ok(is_it.then_some(pidfd))
    }
}

pub fn is_dead(pidfd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    // With a timeout of zero the call is not interrupted.
    let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    !fds[0].revents().is_empty()
}

fn number_inside(process_id: u32, namespace: u64) -> Option<u32> {
    let process = Path::new("/proc").join(process_id.to_string());
    if std::fs::metadata(process.join("ns/pid")).ok()?.ino() != namespace {
        return None;
    }
    let status = std::fs::read_to_string(process.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace().next_back()?.parse().ok()
}

fn started_ticks(process_id: u32) -> Result<Option<u64>, SupervisorError> {
    let path = format!("/proc/{process_id}/stat");
    match std::fs::read(&path) {
        Ok(bytes) => {
            let started = parse_started(&String::from_utf8_lossy(&bytes));
            let missing = || SupervisorError::damaged(path.as_ref(), "it has no start time in field 22");
            let offset_ticks = boottime_offset_ns().div_euclid(tick_ns() as i64);
            started.map(|shown| Some(shown.wrapping_sub_signed(offset_ticks))).ok_or_else(missing)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // Died between open and read.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => Ok(None),
        Err(error) => Err(SupervisorError::io(format!("reading {path}"))(error)),
    }
}

fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

fn parse_started(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(STARTED_FIELD)?.parse().ok()
}

/// Boot identifier; empty on systems without one.
pub fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.trim().to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn identity_is_of_one_process() {
        let mut child = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
        let identity = ProcessIdentity::of(child.id()).unwrap().unwrap();
        let pidfd = identity.open().unwrap().unwrap();
        assert!(!is_dead(&pidfd));
        let younger = ProcessIdentity { started_ticks: identity.started_ticks + 2, ..identity.clone() };
        assert!(younger.open().unwrap().is_none());
        let elsewhere = ProcessIdentity { boot: "another".to_owned(), ..identity.clone() };
        assert!(elsewhere.open().unwrap().is_none());
        child.kill().unwrap();
        gapless_testkit::wait::until("its pidfd is readable", || is_dead(&pidfd));
        assert!(identity.open().unwrap().is_none(), "it is dead, but not reaped yet");
        child.wait().unwrap();
        assert!(identity.open().unwrap().is_none());
        for process_id in [0, u32::MAX, i32::MAX as u32] {
            assert!(ProcessIdentity { process_id, ..identity.clone() }.open().unwrap().is_none());
        }
    }

    #[test]
    fn start_time_follows_any_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        for name in ["sh", "a b", ") S 1 (", ")))"] {
            assert_eq!(parse_started(&format!("12 ({name}) {rest}")), Some(4711), "{name}");
        }
        for damaged in ["", "12", "12 (sh", "12 (sh) S 1", "12 (sh) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x"] {
            assert_eq!(parse_started(damaged), None, "{damaged}");
        }
        let this = ProcessIdentity::of_this().unwrap();
        assert!(this.started_ticks > 0 && !this.boot.is_empty());
        assert!(this.age_ms().is_some_and(|age_ms| age_ms < 3_600_000), "{:?}", this.age_ms());
        assert_eq!(ProcessIdentity { boot: "another".to_owned(), ..this }.age_ms(), None);
    }
}
