//! [`SupervisorConfig`]: what the file of a supervisor says, as plain data. It is checked whole before anything starts; each
//! of its refusals names file, line, key, the found and the allowed value.
//!
//! | module | what lives there |
//! |---|---|
//! | `errors` | [`ConfigErrors`]: everything that is wrong in it |
//! | `reading` | from the text to the data |
//! | `checks` | what must go together: dependencies, CPUs, programs, users |
//! | [`process`] | what is said of one process |

mod checks;
mod errors;
pub mod process;
mod reading;

#[cfg(test)]
mod tests;

pub use errors::ConfigErrors;
use gapless_agent::CpuMask;
use process::ProcessConfig;
use std::path::PathBuf;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorConfig {
    /// Where the supervisor keeps what it must know after its death.
    pub directory: PathBuf,
    /// The domain of routes that the processes are given as `GAPLESS_DOMAIN`, and that their routes are looked for in: `domain`, a
    /// directory, which is made if only it itself is missing; `domain` in the state directory without it.
    pub domain: PathBuf,
    /// A group that may look, or steer.
    pub group: Option<GroupConfig>,
    /// CPUs that are shared out; all of the machine's without it.
    pub cpus: Option<CpuMask>,
    /// `log_bytes_max`: a log of this length, in bytes, is cut: what it holds is kept beside it as `NAME.log.1`. From 4 KiB
    /// on, 64 MiB without it. Of each copy's log, of `events.log` and of `guardian.log`. What is printed within 20 ms, and
    /// while the log is copied, may exceed it.
    pub log_bytes_max: u64,
    /// `logs_kept`: so many older files of each log are kept, `NAME.log.1` the newest; 0 to 100, 1 without it. A log and what
    /// is kept of it take no more than `log_bytes_max` each, and while it is copied once more.
    pub logs_kept: u32,
    /// The processes, by name.
    pub processes: Vec<ProcessConfig>,
}

/// A group beside the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// Its number.
    pub id: u32,
    /// It may also start, stop and scale.
    pub may_steer: bool,
}

impl SupervisorConfig {
    /// The process of that name.
    #[must_use]
    pub fn process(&self, name: &str) -> Option<&ProcessConfig> {
        self.processes.iter().find(|process| process.name == name)
    }
}
