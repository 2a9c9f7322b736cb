//! [`Event`]: what a [`Supervision`](super::Supervision) is told; [`Action`]: what it says; [`Command`]: what a person asks
//! for.

use super::copy::End;
use crate::config::process::StopSignal;
use crate::copy_name::CopyName;
use serde::{Deserialize, Serialize};

/// What happened to a copy. One of an earlier incarnation changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Its launcher runs.
    Started {
        /// The copy.
        copy: CopyName,
        /// Which start of it.
        incarnation: u64,
        /// Its process.
        process_id: u32,
    },
    /// It stands by: another copy is active.
    Standby {
        /// The copy.
        copy: CopyName,
        /// Which start of it.
        incarnation: u64,
    },
    /// It stands by no more.
    Active {
        /// The copy.
        copy: CopyName,
        /// Which start of it.
        incarnation: u64,
    },
    /// It has come so far that others may begin that need no more.
    Initialised {
        /// The copy.
        copy: CopyName,
        /// Which start of it.
        incarnation: u64,
    },
    /// It is ready.
    Ready {
        /// The copy.
        copy: CopyName,
        /// Which start of it.
        incarnation: u64,
    },
    /// Whether it is ready cannot be seen, because the supervisor lacks what it needs for a look.
    Unknown {
        /// The copy.
        copy: CopyName,
        /// Which start of it.
        incarnation: u64,
    },
    /// It runs and does nothing.
    Stuck {
        /// The copy.
        copy: CopyName,
        /// Which start of it.
        incarnation: u64,
        /// How that was seen.
        reason: String,
    },
    /// It has ended, and so has all that it started; or it has not been started.
    Ended {
        /// The copy.
        copy: CopyName,
        /// Which start of it.
        incarnation: u64,
        /// How.
        end: End,
    },
}

impl Event {
    /// The copy that it is about.
    #[must_use]
    pub const fn copy(&self) -> &CopyName {
        match self {
            Self::Started { copy, .. }
            | Self::Standby { copy, .. }
            | Self::Active { copy, .. }
            | Self::Initialised { copy, .. }
            | Self::Ready { copy, .. }
            | Self::Unknown { copy, .. }
            | Self::Stuck { copy, .. }
            | Self::Ended { copy, .. } => copy,
        }
    }

    /// Which start of the copy it is about.
    #[must_use]
    pub const fn incarnation(&self) -> u64 {
        match self {
            Self::Started { incarnation, .. }
            | Self::Standby { incarnation, .. }
            | Self::Active { incarnation, .. }
            | Self::Initialised { incarnation, .. }
            | Self::Ready { incarnation, .. }
            | Self::Unknown { incarnation, .. }
            | Self::Stuck { incarnation, .. }
            | Self::Ended { incarnation, .. } => *incarnation,
        }
    }
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start it. [`Event::Started`] follows, or [`Event::Ended`].
    Start {
        /// The copy.
        copy: CopyName,
        /// Which start of it.
        incarnation: u64,
    },
    /// Find out when it is ready, whether it is well, and when it ends.
    Watch {
        /// The copy.
        copy: CopyName,
        /// Which start of it.
        incarnation: u64,
        /// Its process.
        process_id: u32,
    },
    /// Ask it to end, if that has not been done for this start of it.
    Stop {
        /// The copy.
        copy: CopyName,
        /// By this signal.
        signal: StopSignal,
        /// What of it runs then is killed, monotonic, ns.
        kill_at_ns: u64,
    },
    /// Kill it and all that it started.
    Kill {
        /// The copy.
        copy: CopyName,
    },
    /// Write [`Supervision::memory`](super::Supervision::memory) down.
    Remember,
    /// Tell whoever watches.
    Tell(Happening),
}

/// Something that people want to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happening {
    /// The copy that it is about.
    pub copy: CopyName,
    /// What happened.
    pub what: What,
}

/// What happened to a copy, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It has been asked for.
    Starting,
    /// It runs.
    Started {
        /// Its process.
        process_id: u32,
    },
    /// It stands by.
    Standby,
    /// It stands by no more.
    Active,
    /// It has come so far that others may begin that need no more.
    Initialised,
    /// It is ready.
    Ready,
    /// It says of itself, behind `STATUS=` or by other words.
    Said {
        /// What.
        words: String,
    },
    /// It has been asked to end.
    Stopping {
        /// Why.
        reason: String,
    },
    /// It has been killed.
    Killed {
        /// Why.
        reason: String,
    },
    /// It has ended.
    Ended {
        /// How.
        end: End,
    },
    /// It has ended too often, and does not start again by itself.
    Held,
}

/// What a person asks for. Names are those of processes, whose copies are all meant, or of single copies, as `calculator.1`; none are
/// all processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// They shall run.
    Start(Vec<String>),
    /// They shall not.
    Stop(Vec<String>),
    /// They end and start again, all copies at one time.
    Restart(Vec<String>),
    /// They start anew copy by copy; what is stopped stays so.
    Reload(Vec<String>),
    /// So many copies of each: of all, or of none if one is refused.
    Scale(Vec<(String, u32)>),
}

/// Why a command is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There is no such process.
    #[error("{name:?} is no process of the file; {known} are")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What is there.
        known: String,
    },
    /// There is no such copy.
    #[error("{name} is no copy that is asked for; {process} has {copies} now, numbered from 1")]
    NoCopy {
        /// What was asked for.
        name: String,
        /// Its process.
        process: String,
        /// How many there are.
        copies: u32,
    },
    /// The file does not allow so many copies.
    #[error("{copies} copies of {name} are not allowed; the file allows {min} to {max}")]
    Copies {
        /// The process.
        name: String,
        /// What was asked for.
        copies: u32,
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
}
