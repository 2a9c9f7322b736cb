//! `EndStatus`: exit status or signal of an ended process.

use gapless_agent::shortage::EXIT_CODE;
use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};
use std::fmt;

const CORE_DUMPED: i32 = 0x80;

/// Exit status or signal. As JSON `{"status":7}`, `{"signal":9,"has_core":false}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EndStatus {
    #[serde(rename = "status")]
    Exited(i32),
    #[serde(untagged)]
    Signaled { signal: i32, has_core: bool },
}

impl EndStatus {
    /// Reads the status of `wait`; `None` if the process has not ended.
    #[must_use]
    pub fn of_wait(status: WaitStatus) -> Option<Self> {
        let signaled = |signal| Self::Signaled { signal, has_core: status.as_raw() & CORE_DUMPED != 0 };
        status.exit_status().map(Self::Exited).or_else(|| status.terminating_signal().map(signaled))
    }

    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Exited(0))
    }

    /// Whether it exited for lack of space, memory or descriptors, which is not its failure.
    #[must_use]
    pub const fn is_shortage(self) -> bool {
        matches!(self, Self::Exited(code) if code == EXIT_CODE as i32)
    }
}

impl fmt::Display for EndStatus {
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
