//! Inputs and outputs of a [`Supervision`](super::Supervision): [`ProcessEvent`]s and [`OperatorCommand`]s in,
//! [`ProcessAction`]s out.

use super::instance::InstanceEnd;
use crate::config::process::StopSignal;
use crate::instance_name::InstanceName;
use serde::{Deserialize, Serialize};

/// Event of an instance. Events of an earlier incarnation are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// The launcher runs.
    Started {
        instance: InstanceName,
        incarnation: u64,
        process_id: u32,
    },
    /// Waits for the active instance of its singleton to end.
    Standby {
        instance: InstanceName,
        incarnation: u64,
    },
    /// Became the active instance of its singleton.
    Active {
        instance: InstanceName,
        incarnation: u64,
    },
    /// Reached [`DependencyStage::Initialised`](crate::config::process::DependencyStage::Initialised): dependents that
    /// need no more may start.
    Initialised {
        instance: InstanceName,
        incarnation: u64,
    },
    Ready {
        instance: InstanceName,
        incarnation: u64,
    },
    /// Readiness cannot be checked, because the supervisor lacks resources for a probe.
    ReadinessUnknown {
        instance: InstanceName,
        incarnation: u64,
    },
    /// Alive but hung.
    Stuck {
        instance: InstanceName,
        incarnation: u64,
        /// Evidence.
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
    /// Start the instance. [`ProcessEvent::Started`] or [`ProcessEvent::Ended`] follows.
    Start { instance: InstanceName, incarnation: u64 },
    /// Watch for readiness, liveness and the end.
    Watch { instance: InstanceName, incarnation: u64, process_id: u32 },
    /// Ask the instance to end, once per incarnation.
    Stop {
        instance: InstanceName,
        signal: StopSignal,
        /// Time at which survivors are killed, monotonic, ns.
        kill_at_ns: u64,
    },
    /// Kill the instance and all of its descendants.
    Kill { instance: InstanceName },
    /// Persist [`Supervision::persistent_state`](super::Supervision::persistent_state).
    Persist,
    /// Report to the observers.
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

/// Kind of a [`InstanceEvent`]; most are the same as in [`ProcessEvent`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstanceEventKind {
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
        end: InstanceEnd,
    },
    /// Failed too often; only an operator starts it again.
    Held,
}

/// Command of an operator. A name means a process with all of its instances, or one instance, as `calculator.1`. An
/// empty list means all processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorCommand {
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
pub enum OperatorCommandError {
    #[error("{name:?} is no process of the file; {known} are")]
    Unknown { name: String, known: String },
    #[error("{name} is not a configured instance; {process} has {instances} now, numbered from 1")]
    NoInstance { name: String, process: String, instances: u32 },
    #[error("{instances} instances of {name} are not allowed; the file allows {min} to {max}")]
    Instances { name: String, instances: u32, min: u32, max: u32 },
}
