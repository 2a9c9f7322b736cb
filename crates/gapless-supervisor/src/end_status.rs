//! [`EndStatus`]: how a process has ended.

use gapless_agent::shortage::EXIT_CODE;
use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};
use std::fmt;

/// In the status of a wait: a core was written.
const CORE_DUMPED: i32 = 0x80;

/// How a process has ended. As JSON `{"status":7}`, `{"signal":9,"has_core":false}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EndStatus {
    /// By itself, with this status, 0 to 255.
    #[serde(rename = "status")]
    Exited(i32),
    /// By a signal.
    #[serde(untagged)]
    Signaled {
        /// Its number.
        signal: i32,
        /// Whether a core was written.
        has_core: bool,
    },
}

impl EndStatus {
    /// What a wait has told; `None` of a process that has not ended.
    #[must_use]
    pub fn of_wait(status: WaitStatus) -> Option<Self> {
        let signaled = |signal| Self::Signaled { signal, has_core: status.as_raw() & CORE_DUMPED != 0 };
        status.exit_status().map(Self::Exited).or_else(|| status.terminating_signal().map(signaled))
    }

    /// Whether it exited by itself with status 0.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Exited(0))
    }

    /// Whether it exited by itself for want of room, memory or descriptors, which is nobody's fault.
    #[must_use]
    pub const fn is_shortage(self) -> bool {
        matches!(self, Self::Exited(code) if code == EXIT_CODE as i32)
    }
}

impl fmt::Display for EndStatus {
    /// `exited with 1`, `killed by signal 9`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) if self.is_shortage() => {
                write!(f, "exited with {code}, for want of room, memory or descriptors")
            }
            Self::Exited(code) => write!(f, "exited with {code}"),
            Self::Signaled { signal, has_core: false } => write!(f, "killed by signal {signal}"),
            Self::Signaled { signal, has_core: true } => write!(f, "killed by signal {signal}, core dumped"),
        }
    }
}
