//! `ProcessRole`: internal roles of the program.

use crate::instance_name::InstanceName;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variables addressed to one service process, not to its children.
pub const OWN_VARIABLES: [&str; 9] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_PIDFDID",
    "LISTEN_FDNAMES",
    "MAINPID",
    "JOURNAL_STREAM",
];

/// Internal role of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessRole {
    StartGuardian { directory: PathBuf },
    Guardian { directory: PathBuf },
    Supervisor { directory: PathBuf },
    Launch { directory: PathBuf, instance: InstanceName, incarnation: u64 },
}

impl ProcessRole {
    /// Parses the arguments of a role, as made by [`arguments`](Self::arguments).
    #[must_use]
    pub fn from_arguments(arguments: &[OsString]) -> Option<Self> {
        let directory = |text: &OsStr| PathBuf::from(text);
        match arguments {
            [role, path] => match role.to_str()? {
                "start-guardian" => Some(Self::StartGuardian { directory: directory(path) }),
                "guardian" => Some(Self::Guardian { directory: directory(path) }),
                "supervisor" => Some(Self::Supervisor { directory: directory(path) }),
                _ => None,
            },
            [role, path, instance, incarnation] if role == "launch" => Some(Self::Launch {
                directory: directory(path),
                instance: instance.to_str()?.parse().ok()?,
                incarnation: incarnation.to_str()?.parse().ok()?,
            }),
            _ => None,
        }
    }

    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let with = |role: &str, path: &Path| vec![role.into(), path.into()];
        match self {
            Self::StartGuardian { directory } => with("start-guardian", directory),
            Self::Guardian { directory } => with("guardian", directory),
            Self::Supervisor { directory } => with("supervisor", directory),
            Self::Launch { directory, instance, incarnation } => {
                let mut arguments = with("launch", directory);
                arguments.extend([instance.to_string().into(), incarnation.to_string().into()]);
                arguments
            }
        }
    }
}

/// End of a guardian or a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleOutcome {
    ShutDown,
    AlreadyRunning,
}

/// Program of all roles, with the arguments before those of the role.
#[derive(Clone, Debug)]
pub struct RoleCommand {
    program: PathBuf,
    leading_arguments: Vec<OsString>,
}

impl Default for RoleCommand {
    /// This program, even if its file was replaced meanwhile, with `supervise`.
    fn default() -> Self {
        Self::new("/proc/self/exe", ["supervise"])
    }
}

impl RoleCommand {
    /// Another program, by absolute path.
    pub fn new(program: impl Into<PathBuf>, leading_arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { program: program.into(), leading_arguments: leading_arguments.into_iter().map(Into::into).collect() }
    }

    #[must_use]
    pub fn command(&self, role: &ProcessRole) -> Command {
        let mut command = Command::new(&self.program);
        for name in OWN_VARIABLES {
            command.env_remove(name);
        }
        command.arg0("gapless").args(&self.leading_arguments).args(role.arguments());
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_round_trip() {
        let directory = PathBuf::from("/a b/state");
        let instance = "calculator.3".parse().unwrap();
        for role in [
            ProcessRole::StartGuardian { directory: directory.clone() },
            ProcessRole::Guardian { directory: directory.clone() },
            ProcessRole::Supervisor { directory: directory.clone() },
            ProcessRole::Launch { directory, instance, incarnation: 7 },
        ] {
            assert_eq!(ProcessRole::from_arguments(&role.arguments()), Some(role));
        }
        for wrong in [
            &[][..],
            &["guardian"],
            &["guardian", "a", "b"],
            &["launch", "a"],
            &["launch", "a", "b", "1"],
            &["launch", "a", "b.1", "-1"],
            &["other", "a"],
        ] {
            let arguments: Vec<OsString> = wrong.iter().map(Into::into).collect();
            assert_eq!(ProcessRole::from_arguments(&arguments), None, "{wrong:?}");
        }
    }
}
