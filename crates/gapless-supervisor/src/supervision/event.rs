//! Inputs and outputs of a `Supervision`: `ProcessEvent`s and `OperatorCommand`s in, `ProcessAction`s out.

use super::instance::InstanceEnd;
use crate::config::process::StopSignal;
use crate::instance_name::InstanceName;
use serde::{Deserialize, Serialize};

/// Event of an instance; ignored if of an earlier incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    Started {
        instance: InstanceName,
        incarnation: u64,
        process_id: u32,
    },
    Standby {
        instance: InstanceName,
        incarnation: u64,
    },
    Active {
        instance: InstanceName,
        incarnation: u64,
    },
    /// Reached [`DependencyStage::Initialised`](crate::config::process::DependencyStage::Initialised).
    Initialised {
        instance: InstanceName,
        incarnation: u64,
    },
    Ready {
        instance: InstanceName,
        incarnation: u64,
    },
    ReadinessUnknown {
        instance: InstanceName,
        incarnation: u64,
    },
    Stuck {
        instance: InstanceName,
        incarnation: u64,
        reason: String,
    },
    /// Ended together with all of its descendants, or was never started.
    Ended {
        instance: InstanceName,
        incarnation: u64,
        end: InstanceEnd,
    },
}

impl ProcessEvent {
    #[must_use]
    pub const fn instance(&self) -> &InstanceName {
        match self {
            Self::Started { instance, .. }
            | Self::Standby { instance, .. }
            | Self::Active { instance, .. }
            | Self::Initialised { instance, .. }
            | Self::Ready { instance, .. }
            | Self::ReadinessUnknown { instance, .. }
            | Self::Stuck { instance, .. }
            | Self::Ended { instance, .. } => instance,
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
            | Self::ReadinessUnknown { incarnation, .. }
            | Self::Stuck { incarnation, .. }
            | Self::Ended { incarnation, .. } => *incarnation,
        }
    }
}

/// Instructions of the rules, to be carried out in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessAction {
    /// [`ProcessEvent::Started`] or [`ProcessEvent::Ended`] follows.
    Start {
        instance: InstanceName,
        incarnation: u64,
    },
    Watch {
        instance: InstanceName,
        incarnation: u64,
        process_id: u32,
    },
    /// Asks the instance to end: once per incarnation, and once more by each supervisor that takes over meanwhile.
    Stop {
        instance: InstanceName,
        signal: StopSignal,
        kill_at_ns: u64,
    },
    Kill {
        instance: InstanceName,
    },
    Persist,
    Report(InstanceEvent),
}

/// Reportable event of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceEvent {
    /// `copy` in events of earlier versions.
    #[serde(alias = "copy")]
    pub instance: InstanceName,
    pub what: InstanceEventKind,
}

/// Kind of an [`InstanceEvent`]; most are the same as in [`ProcessEvent`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceEventKind {
    Starting,
    Started { process_id: u32 },
    Standby,
    Active,
    Initialised,
    Ready,
    Said { words: String },
    Stopping { reason: String },
    Killed { reason: String },
    Ended { end: InstanceEnd },
    Held,
}

/// Command of an operator; a name means a process or an instance (`calculator.1`), an empty list all processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorCommand {
    Start(Vec<String>),
    Stop(Vec<String>),
    /// All instances at once.
    Restart(Vec<String>),
    /// One instance after the other; stopped instances stay stopped.
    Reload(Vec<String>),
    /// All or nothing.
    Scale(Vec<(String, u32)>),
}

/// Reason for refusing a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorCommandError {
    #[error("{name:?} is no process of the file; {known} are")]
    Unknown { name: String, known: String },
    #[error("{name} is not a configured instance; {process} has {instances} now, numbered from 1")]
    NoInstance { name: String, process: String, instances: u32 },
    #[error("{instances} instances of {name} are not allowed; the file allows {min} to {max}")]
    Instances { name: String, instances: u32, min: u32, max: u32 },
}
