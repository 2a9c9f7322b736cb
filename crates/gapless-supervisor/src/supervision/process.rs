//! `SupervisedProcess`: one configured process with its instances.

use super::instance::{InstanceState, PersistentInstance};
use crate::config::process::{DependencyStage, ProcessConfig, RestartConfig, RestartPolicy};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Persistent state of a process, for the next supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PersistentProcess {
    pub is_wanted: bool,
    /// Instances set by an operator; `None`: as configured.
    pub scale: Option<u32>,
    /// Counts the definitions of the process, for reloads.
    pub generation: u64,
    /// All instances were ready at the same time since its last start.
    pub was_up: bool,
    /// Instances by number; the key is `copies` in files of earlier versions.
    #[serde(alias = "copies")]
    pub instances: BTreeMap<u32, PersistentInstance>,
}

impl Default for PersistentProcess {
    fn default() -> Self {
        Self { is_wanted: true, scale: None, generation: 0, was_up: false, instances: BTreeMap::new() }
    }
}

/// One configured process with its instances.
#[derive(Clone, Debug)]
pub struct SupervisedProcess {
    pub config: ProcessConfig,
    pub(super) persistent: PersistentProcess,
    /// By number. Numbers beyond the scale are leaving instances and the extra one of a reload.
    pub(super) instances: BTreeMap<u32, InstanceState>,
    pub(super) is_removed: bool,
}

impl SupervisedProcess {
    pub(super) fn new(config: ProcessConfig, mut persistent: PersistentProcess) -> Self {
        let instances = std::mem::take(&mut persistent.instances);
        let instances =
            instances.into_iter().map(|(number, persistent)| (number, InstanceState::new(persistent))).collect();
        Self { config, persistent, instances, is_removed: false }
    }

    pub(super) fn removed(name: &str, persistent: PersistentProcess) -> Self {
        let restart = RestartConfig { policy: RestartPolicy::Never, ..RestartConfig::default() };
        let config = ProcessConfig { name: name.to_owned(), restart, ..ProcessConfig::default() };
        let persistent = PersistentProcess { is_wanted: false, ..persistent };
        Self { is_removed: true, ..Self::new(config, persistent) }
    }

    pub(super) fn persist(&self) -> PersistentProcess {
        let instances =
            self.instances.iter().map(|(number, instance)| (*number, instance.persistent.clone())).collect();
        PersistentProcess { instances, ..self.persistent.clone() }
    }

    pub fn instances(&self) -> impl Iterator<Item = (u32, &InstanceState)> {
        self.instances.iter().map(|(number, instance)| (*number, instance))
    }

    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.persistent.is_wanted
    }

    /// Number of instances, if the process is wanted.
    #[must_use]
    pub fn scale(&self) -> u32 {
        let allowed = self.config.instances_min..=self.config.instances_max;
        self.persistent.scale.filter(|scale| allowed.contains(scale)).unwrap_or(self.config.instances_min)
    }

    /// Numbers of the wanted process's instances that should run, without those stopped alone by an operator.
    pub fn desired_numbers(&self) -> impl Iterator<Item = u32> {
        (1..=self.scale()).filter(|number| !self.is_stopped_alone(*number))
    }

    /// Whether an operator has stopped this instance on its own.
    #[must_use]
    pub fn is_stopped_alone(&self, number: u32) -> bool {
        self.instances.get(&number).is_some_and(|instance| instance.persistent.is_stopped)
    }

    pub(super) fn want(&mut self, number: Option<u32>) {
        for other in 1..=self.scale() {
            let instance = self.instances.entry(other).or_default();
            if number.is_none_or(|number| number == other) {
                instance.persistent.is_stopped = false;
            } else if !self.persistent.is_wanted {
                instance.persistent.is_stopped = true;
            }
        }
        self.persistent.is_wanted = true;
    }

    pub(super) fn selected(&mut self, number: Option<u32>) -> impl Iterator<Item = &mut InstanceState> {
        let all = self.instances.iter_mut();
        all.filter(move |(other, _)| number.is_none_or(|number| number == **other)).map(|(_, instance)| instance)
    }

    #[must_use]
    pub fn is_running(&self) -> bool {
        self.instances.values().any(InstanceState::is_running)
    }

    /// Whether dependents may start: the first time all instances must have reached the stage; later, and for
    /// singletons, one is enough.
    #[must_use]
    pub fn has_reached(&self, stage: DependencyStage) -> bool {
        let reached = |number: u32| self.instances.get(&number).is_some_and(|instance| instance.has_reached(stage));
        let mut numbers = self.desired_numbers().peekable();
        if self.persistent.was_up || self.config.is_singleton {
            numbers.any(reached)
        } else {
            numbers.peek().is_some() && numbers.all(reached)
        }
    }
}
