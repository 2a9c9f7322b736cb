//! What commands and a supervisor say to each other: JSON, a packet each.

use crate::copy_name::CopyName;
use crate::supervision::copy::End;
use crate::supervision::event::{Command, Happening};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The version of this protocol. Another one is refused, with both numbers.
pub const VERSION: u32 = 1;

/// What a command asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// The first packet, which is answered only if it is refused.
    Hello {
        /// [`VERSION`].
        version: u32,
    },
    /// This file is to be in force, and what it names is to run. Only of the supervisor's own user.
    Up {
        /// Absolute.
        path: PathBuf,
    },
    /// The file in force is to be read again.
    TakeFile,
    /// Everything is to end, and supervisor and guardian behind it.
    Down,
    /// To change what runs.
    Change {
        /// How.
        command: Command,
    },
    /// What runs: [`Answer::Supervisor`], [`Answer::Copy`] for each, and [`Answer::Done`].
    Status,
    /// [`Answer::Event`] for each from now on.
    Events,
}

/// What a supervisor answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// It is done, or begun; of [`Request::Down`]: nothing runs any more.
    Done,
    /// It is not.
    Refused {
        /// Why.
        reason: String,
    },
    /// Of the whole.
    Supervisor {
        /// What is told of it.
        supervisor: SupervisorStatus,
    },
    /// Of one copy.
    Copy {
        /// What is told of it.
        copy: CopyStatus,
    },
    /// Something has happened.
    Event {
        /// What.
        record: EventRecord,
    },
}

/// How the whole stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorStatus {
    /// The file in force.
    pub file: Option<PathBuf>,
    /// The supervisor; none if nobody watches.
    pub supervisor_process_id: Option<u32>,
    /// The guardian, if there is one.
    pub guardian_process_id: Option<u32>,
    /// The inode number of the process namespace of these and of the copies' numbers, if it is known.
    #[serde(default)]
    pub process_namespace: Option<u64>,
    /// Why copies have no control groups, if they have none.
    pub without_control_groups: Option<String>,
    /// It is going down.
    pub is_ending: bool,
    /// Where the routes of its copies meet; none without a file in force.
    pub domain: Option<PathBuf>,
    /// What is wrong, if anything: such as a file that was not taken.
    pub problem: Option<String>,
}

/// How a copy stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyStatus {
    /// The copy.
    pub copy: CopyName,
    /// How far it has come.
    pub state: CopyCondition,
    /// Its process, if it has one.
    pub process_id: Option<u32>,
    /// That number is one of another process namespace than the reader's, as of a container, or the process is another user's.
    #[serde(default)]
    pub process_in_other_namespace: bool,
    /// How long it has been in its state, ms.
    pub since_ms: u64,
    /// How often it was started again.
    pub restarts: u64,
    /// How it last ended.
    pub last_end: Option<End>,
    /// Why the supervisor ended it, if it did.
    pub last_reason: Option<String>,
    /// What it last said of itself (`STATUS=`).
    pub says: Option<String>,
    /// The last lines of its output before that.
    pub last_lines: Vec<String>,
    /// Where its output goes, if somebody watches it.
    pub log: Option<PathBuf>,
    /// Processor time that it has used, ms.
    pub cpu_ms: Option<u64>,
    /// How long its process has run, ms.
    pub running_ms: Option<u64>,
    /// Memory that it has in use, bytes.
    pub memory_bytes: Option<u64>,
}

/// How far a copy has come, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyCondition {
    /// It does not run, and shall not.
    Stopped,
    /// Another process is not that far yet.
    Waiting,
    /// It is not ready yet.
    Starting,
    /// Another copy is active.
    Standby,
    /// It is ready.
    Ready,
    /// It has been asked to end.
    Stopping,
    /// It has ended, and starts again later.
    BackingOff,
    /// It has ended too often, and waits for a person.
    Held,
    /// It has ended well, and does not start again.
    Done,
    /// It has ended badly, and does not start again.
    Failed,
    /// It runs, and nobody watches it.
    Unwatched,
    /// Nobody watches it, and whether it runs cannot be seen.
    Unreadable,
}

impl CopyCondition {
    /// Whether it is as far as it shall come.
    #[must_use]
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Ready | Self::Standby | Self::Done | Self::Stopped)
    }

    /// Whether it stays as it is until a person does something.
    #[must_use]
    pub const fn is_given_up(self) -> bool {
        matches!(self, Self::Held | Self::Failed)
    }
}

impl fmt::Display for CopyCondition {
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

/// An event, as it stands in `events.log`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// What.
    #[serde(flatten)]
    pub happening: Recorded,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Recorded {
    /// A copy.
    Copy(Happening),
    /// The whole.
    Supervisor {
        /// What happened.
        event: SupervisorEvent,
    },
}

/// What happened to the whole, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupervisorEvent {
    /// The disk of this folder of logs is full: what is printed there is lost until it has room.
    DiskFull {
        /// The folder.
        folder: PathBuf,
    },
    /// It has room again.
    DiskHasRoom {
        /// The folder.
        folder: PathBuf,
    },
    /// A log is longer than it may be, and cannot be cut.
    LogNotCut {
        /// The log.
        log: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file is in force that says something else than the one before.
    FileTaken {
        /// The file.
        path: PathBuf,
    },
    /// A file was not taken: the one before stays in force.
    FileRefused {
        /// What is wrong, with its line.
        reason: String,
    },
    /// Another program lies at the path of a process: its copies start anew.
    ProgramReplaced {
        /// The process.
        process: String,
    },
    /// Another file lies at the path of a process's `input`: its copies start anew.
    InputReplaced {
        /// The process.
        process: String,
    },
}

impl fmt::Display for SupervisorEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DiskFull { folder } => {
                write!(f, "the disk of {} is full: what copies print is lost until it has room", folder.display())
            }
            Self::DiskHasRoom { folder } => write!(f, "the disk of {} has room again", folder.display()),
            Self::LogNotCut { log, reason } => {
                write!(f, "{} is longer than it may be, and cannot be cut: {reason}", log.display())
            }
            Self::FileTaken { path } => write!(f, "{} is in force", path.display()),
            Self::FileRefused { reason } => write!(f, "a new file was not taken: {reason}"),
            Self::ProgramReplaced { process } => write!(f, "{process}: another program; its copies start anew"),
            Self::InputReplaced { process } => write!(f, "{process}: another input; its copies start anew"),
        }
    }
}
