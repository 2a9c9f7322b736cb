//! [`Role`]: what the program is when it was not started by a person, [`RoleCommand`]: how it is started so, and [`Outcome`]:
//! how a role ended.

use crate::copy_name::CopyName;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the surroundings say to a process that is a service, and to none that it starts.
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

/// What the program is when it was not started by a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It starts a guardian that is nobody's child, and ends: [`crate::guardian::start_detached`].
    StartGuardian {
        /// The state directory.
        directory: PathBuf,
    },
    /// [`crate::guardian::run`].
    Guardian {
        /// The state directory.
        directory: PathBuf,
    },
    /// The supervisor.
    Supervisor {
        /// The state directory.
        directory: PathBuf,
    },
    /// [`crate::launch::run`].
    Launch {
        /// The state directory.
        directory: PathBuf,
        /// The copy that it becomes.
        copy: CopyName,
        /// And of which intent.
        incarnation: u64,
    },
}

impl Role {
    /// The role that these arguments ask for, without those before it: what [`arguments`](Self::arguments) has made.
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
            [role, path, copy, incarnation] if role == "launch" => Some(Self::Launch {
                directory: directory(path),
                copy: copy.to_str()?.parse().ok()?,
                incarnation: incarnation.to_str()?.parse().ok()?,
            }),
            _ => None,
        }
    }

    /// The arguments that ask for it.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let with = |role: &str, path: &Path| vec![role.into(), path.into()];
        match self {
            Self::StartGuardian { directory } => with("start-guardian", directory),
            Self::Guardian { directory } => with("guardian", directory),
            Self::Supervisor { directory } => with("supervisor", directory),
            Self::Launch { directory, copy, incarnation } => {
                let mut arguments = with("launch", directory);
                arguments.extend([copy.to_string().into(), incarnation.to_string().into()]);
                arguments
            }
        }
    }
}

/// How the role of a guardian or of a supervisor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it was asked to: nothing runs any more.
    Over,
    /// Another one runs.
    AnotherIsThere,
}

/// The program of all roles, and its arguments before the role's.
#[derive(Clone, Debug)]
pub struct RoleCommand {
    program: PathBuf,
    before: Vec<OsString>,
}

impl Default for RoleCommand {
    /// This very program, also when its file has been replaced meanwhile, and `supervise`.
    fn default() -> Self {
        Self::new("/proc/self/exe", ["supervise"])
    }
}

impl RoleCommand {
    /// Another program: an absolute path.
    pub fn new(program: impl Into<PathBuf>, before: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { program: program.into(), before: before.into_iter().map(Into::into).collect() }
    }

    /// The command that starts it in a role.
    #[must_use]
    pub fn command(&self, role: &Role) -> Command {
        let mut command = Command::new(&self.program);
        for name in OWN_VARIABLES {
            command.env_remove(name);
        }
        // What `ps` shows.
        command.arg0("gapless").args(&self.before).args(role.arguments());
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_read_as_it_is_written_and_nothing_else_is_one() {
        let directory = PathBuf::from("/a b/state");
        let copy = "calculator.3".parse().unwrap();
        for role in [
            Role::StartGuardian { directory: directory.clone() },
            Role::Guardian { directory: directory.clone() },
            Role::Supervisor { directory: directory.clone() },
            Role::Launch { directory, copy, incarnation: 7 },
        ] {
            assert_eq!(Role::from_arguments(&role.arguments()), Some(role));
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
            assert_eq!(Role::from_arguments(&arguments), None, "{wrong:?}");
        }
    }
}
