//! [`SupervisorConfig`]: the configuration file as plain data, validated as a whole before anything starts.

mod checks;
pub mod process;
mod reading;

#[cfg(test)]
mod tests;

use gapless_agent::CpuMask;
use process::ProcessConfig;
use std::path::PathBuf;

/// Configuration of a supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorConfig {
    pub directory: PathBuf,
    /// `domain`: directory of the processes' domain, passed on as `GAPLESS_DOMAIN`; created if its parent exists. By
    /// default `domain` in the state directory.
    pub domain: PathBuf,
    pub group: Option<GroupConfig>,
    /// CPUs for all processes; by default all of the machine.
    pub cpus: Option<CpuMask>,
    /// `log_bytes_max`: length in bytes at which a log is rotated to `NAME.log.1`, including `events.log` and
    /// `guardian.log`; at least 4 KiB, by default 64 MiB. Output within 20 ms, and during the copy, may exceed it.
    pub log_bytes_max: u64,
    /// `logs_kept`: number of rotated files of each log, `NAME.log.1` being the newest; 0 to 100, by default 1. Each
    /// takes up to `log_bytes_max`, and once more during a copy.
    pub logs_kept: u32,
    /// In the order of the configuration.
    pub processes: Vec<ProcessConfig>,
    /// Warning about keys with former names, with file and line.
    pub warning: Option<String>,
}

/// Group with access to the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    pub id: u32,
    /// `steer`: members may also start, stop and scale.
    pub may_steer: bool,
}

impl SupervisorConfig {
    #[must_use]
    pub fn process(&self, name: &str) -> Option<&ProcessConfig> {
        self.processes.iter().find(|process| process.name == name)
    }

    /// Whether both mean the same, regardless of former key names.
    #[must_use]
    pub fn is_equivalent(&self, other: &Self) -> bool {
        let Self { directory, domain, group, cpus, log_bytes_max, logs_kept, processes, warning: _ } = self;
        let same_supervisor = (directory, domain, group, cpus)
            == (&other.directory, &other.domain, &other.group, &other.cpus)
            && (log_bytes_max, logs_kept) == (&other.log_bytes_max, &other.logs_kept);
        same_supervisor && processes == &other.processes
    }
}
