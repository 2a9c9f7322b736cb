//! One JSON value for each packet.

use crate::instance_name::InstanceName;
use crate::supervision::event::{InstanceEvent, OperatorCommand};
use crate::supervision::instance::InstanceEnd;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Protocol version; others are refused with an error that names both.
pub const VERSION: u32 = 2;

/// Request of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum SupervisorRequest {
    /// Answered only if it is refused.
    Hello {
        version: u32,
    },
    /// Put this configuration in force and start its processes; only for the supervisor's own user.
    Up {
        /// Absolute path.
        path: PathBuf,
    },
    TakeFile,
    Down,
    Change {
        command: OperatorCommand,
    },
    /// Answered by [`SupervisorAnswer::Supervisor`], a [`SupervisorAnswer::Instance`] for each instance, then
    /// [`SupervisorAnswer::Done`].
    Status,
    Events,
}

/// Answer of a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum SupervisorAnswer {
    /// Done or begun; after [`SupervisorRequest::Down`]: all processes have ended.
    Done,
    Refused {
        reason: String,
    },
    Supervisor {
        supervisor: SupervisorStatus,
    },
    Instance {
        instance: InstanceStatus,
    },
    Event {
        record: EventRecord,
    },
}

/// Status of a supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorStatus {
    pub file: Option<PathBuf>,
    /// `None` if no supervisor runs.
    pub supervisor_process_id: Option<u32>,
    pub guardian_process_id: Option<u32>,
    /// Inode number of the PID namespace of all process ids here, if known.
    #[serde(default)]
    pub process_namespace: Option<u64>,
    /// Reason for running instances without control groups.
    pub without_control_groups: Option<String>,
    pub is_ending: bool,
    /// Directory of the domain; `None` without a configuration.
    pub domain: Option<PathBuf>,
    /// Current problem, for instance a rejected configuration.
    pub problem: Option<String>,
}

/// Status of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceStatus {
    pub instance: InstanceName,
    pub state: InstanceCondition,
    pub process_id: Option<u32>,
    /// The process belongs to another user, or to another PID namespace, as of a container.
    #[serde(default)]
    pub process_in_other_namespace: bool,
    /// Time in the current state, ms.
    pub since_ms: u64,
    pub restarts: u64,
    pub last_end: Option<InstanceEnd>,
    /// Reason for which the supervisor ended it.
    pub last_reason: Option<String>,
    /// Last status text of its own (`STATUS=`).
    pub says: Option<String>,
    /// Last lines of its output before its last end.
    pub last_lines: Vec<String>,
    /// Log file; `None` without a supervisor.
    pub log: Option<PathBuf>,
    pub cpu_ms: Option<u64>,
    /// Age of its process, ms.
    pub running_ms: Option<u64>,
    pub memory_bytes: Option<u64>,
}

/// State of an instance, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceCondition {
    Stopped,
    Waiting,
    Starting,
    /// Another instance of the singleton is active.
    Standby,
    Ready,
    Stopping,
    BackingOff,
    Held,
    Done,
    Failed,
    Unwatched,
    Unreadable,
}

impl InstanceCondition {
    /// Whether the instance has reached its goal.
    #[must_use]
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Ready | Self::Standby | Self::Done | Self::Stopped)
    }

    /// Whether only an operator can change the state.
    #[must_use]
    pub const fn is_given_up(self) -> bool {
        matches!(self, Self::Held | Self::Failed)
    }
}

impl fmt::Display for InstanceCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stopped => "stopped",
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Standby => "standby",
            Self::Ready => "ready",
            Self::Stopping => "stopping",
            Self::BackingOff => "backing off",
            Self::Held => "held",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Unwatched => "unwatched",
            Self::Unreadable => "unreadable",
        })
    }
}

/// Event as recorded in `events.log`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    pub unix_ms: u64,
    #[serde(flatten)]
    pub subject: EventSubject,
}

/// Subject of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EventSubject {
    Instance(InstanceEvent),
    Supervisor { event: SupervisorEvent },
}

/// Event of the supervisor itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorEvent {
    /// The disk of this log directory is full: output is lost.
    DiskFull {
        folder: PathBuf,
    },
    DiskHasRoom {
        folder: PathBuf,
    },
    LogNotCut {
        log: PathBuf,
        reason: String,
    },
    FileTaken {
        path: PathBuf,
    },
    /// A configuration was rejected; the previous one stays in force.
    FileRefused {
        reason: String,
    },
    /// The program file of a process was replaced: its instances are reloaded.
    ProgramReplaced {
        process: String,
    },
    /// The `input` file of a process was replaced: its instances are reloaded.
    InputReplaced {
        process: String,
    },
}

impl fmt::Display for SupervisorEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DiskFull { folder } => {
                write!(f, "the disk of {} is full: what instances print is lost until it has room", folder.display())
            }
            Self::DiskHasRoom { folder } => write!(f, "the disk of {} has room again", folder.display()),
            Self::LogNotCut { log, reason } => {
                write!(f, "{} is longer than it may be, and cannot be cut: {reason}", log.display())
            }
            Self::FileTaken { path } => write!(f, "{} is in force", path.display()),
            Self::FileRefused { reason } => write!(f, "a new file was not taken: {reason}"),
            Self::ProgramReplaced { process } => write!(f, "{process}: another program; its instances start anew"),
            Self::InputReplaced { process } => write!(f, "{process}: another input; its instances start anew"),
        }
    }
}
