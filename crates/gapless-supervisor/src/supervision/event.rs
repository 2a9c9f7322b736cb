//! Inputs and outputs of a [`Supervision`](super::Supervision): [`Event`]s and [`Command`]s in, [`Action`]s out.

use super::copy::End;
use crate::config::process::StopSignal;
use crate::copy_name::CopyName;
use serde::{Deserialize, Serialize};

/// Event of an instance. Events of an earlier incarnation are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The launcher runs.
    Started {
        copy: CopyName,
        incarnation: u64,
        process_id: u32,
    },
    /// Waits for the active instance of its singleton to end.
    Standby {
        copy: CopyName,
        incarnation: u64,
    },
    /// Became the active instance of its singleton.
    Active {
        copy: CopyName,
        incarnation: u64,
    },
    /// Reached [`Stage::Initialised`](crate::config::process::Stage::Initialised): dependents that need no more may
    /// start.
    Initialised {
        copy: CopyName,
        incarnation: u64,
    },
    Ready {
        copy: CopyName,
        incarnation: u64,
    },
    /// Readiness cannot be checked, because the supervisor lacks resources for a probe.
    Unknown {
        copy: CopyName,
        incarnation: u64,
    },
    /// Alive but hung.
    Stuck {
        copy: CopyName,
        incarnation: u64,
        /// Evidence.
        reason: String,
    },
    /// Ended together with all of its descendants, or was never started.
    Ended {
        copy: CopyName,
        incarnation: u64,
        end: End,
    },
}

impl Event {
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

/// Instructions of the rules, to be carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start the instance. [`Event::Started`] or [`Event::Ended`] follows.
    Start { copy: CopyName, incarnation: u64 },
    /// Watch for readiness, liveness and the end.
    Watch { copy: CopyName, incarnation: u64, process_id: u32 },
    /// Ask the instance to end, once per incarnation.
    Stop {
        copy: CopyName,
        signal: StopSignal,
        /// Time at which survivors are killed, monotonic, ns.
        kill_at_ns: u64,
    },
    /// Kill the instance and all of its descendants.
    Kill { copy: CopyName },
    /// Persist [`Supervision::memory`](super::Supervision::memory).
    Remember,
    /// Report to the observers.
    Tell(Happening),
}

/// Reportable event of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happening {
    pub copy: CopyName,
    pub what: What,
}

/// Kind of a [`Happening`]; most are the same as in [`Event`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Requested from the guardian.
    Starting,
    Started {
        process_id: u32,
    },
    Standby,
    Active,
    Initialised,
    Ready,
    /// Status text of the instance itself, from `STATUS=` or its own form.
    Said {
        words: String,
    },
    /// Asked to end.
    Stopping {
        reason: String,
    },
    Killed {
        reason: String,
    },
    Ended {
        end: End,
    },
    /// Failed too often; only an operator starts it again.
    Held,
}

/// Command of an operator. A name means a process with all of its instances, or one instance, as `calculator.1`. An
/// empty list means all processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Start(Vec<String>),
    Stop(Vec<String>),
    /// End and start again, all instances at once.
    Restart(Vec<String>),
    /// Replace one instance after the other; stopped instances stay stopped.
    Reload(Vec<String>),
    /// Set the number of instances of each process; all or nothing.
    Scale(Vec<(String, u32)>),
}

/// Reason for refusing a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("{name:?} is no process of the file; {known} are")]
    Unknown { name: String, known: String },
    #[error("{name} is no copy that is asked for; {process} has {copies} now, numbered from 1")]
    NoCopy { name: String, process: String, copies: u32 },
    #[error("{copies} copies of {name} are not allowed; the file allows {min} to {max}")]
    Copies { name: String, copies: u32, min: u32, max: u32 },
}
