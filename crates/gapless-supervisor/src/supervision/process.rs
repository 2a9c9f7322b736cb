//! [`ProcessState`]: one configured process with its instances.

use super::copy::{CopyMemory, CopyState};
use crate::config::process::{ProcessConfig, RestartConfig, RestartPolicy, Stage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Persistent state of a process, for the next supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessMemory {
    pub is_wanted: bool,
    /// Number of instances set by an operator; `None` for the configured number.
    pub scale: Option<u32>,
    /// Counts the definitions of the process, for reloads.
    pub generation: u64,
    /// All instances have been ready at the same time since it was last started.
    pub was_up: bool,
    /// By number.
    pub copies: BTreeMap<u32, CopyMemory>,
}

impl Default for ProcessMemory {
    fn default() -> Self {
        Self { is_wanted: true, scale: None, generation: 0, was_up: false, copies: BTreeMap::new() }
    }
}

/// One configured process with its instances.
#[derive(Clone, Debug)]
pub struct ProcessState {
    pub config: ProcessConfig,
    /// Persistent state, without the instances, which are in `copies`.
    pub(super) memory: ProcessMemory,
    /// By number. Numbers beyond the scale are leaving instances and the extra one of a reload.
    pub(super) copies: BTreeMap<u32, CopyState>,
    /// No longer in the configuration.
    pub(super) is_removed: bool,
}

impl ProcessState {
    pub(super) fn new(config: ProcessConfig, mut memory: ProcessMemory) -> Self {
        let copies = std::mem::take(&mut memory.copies);
        let copies = copies.into_iter().map(|(number, memory)| (number, CopyState::new(memory))).collect();
        Self { config, memory, copies, is_removed: false }
    }

    /// Placeholder for a process outside the configuration; it is only stopped.
    pub(super) fn removed(name: &str, memory: ProcessMemory) -> Self {
        let restart = RestartConfig { policy: RestartPolicy::Never, ..RestartConfig::default() };
        let config = ProcessConfig { name: name.to_owned(), restart, ..ProcessConfig::default() };
        let memory = ProcessMemory { is_wanted: false, ..memory };
        Self { is_removed: true, ..Self::new(config, memory) }
    }

    pub(super) fn remember(&self) -> ProcessMemory {
        let copies = self.copies.iter().map(|(number, copy)| (*number, copy.memory.clone())).collect();
        ProcessMemory { copies, ..self.memory.clone() }
    }

    pub fn copies(&self) -> impl Iterator<Item = (u32, &CopyState)> {
        self.copies.iter().map(|(number, copy)| (*number, copy))
    }

    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.memory.is_wanted
    }

    /// Number of instances, if the process is wanted.
    #[must_use]
    pub fn scale(&self) -> u32 {
        let allowed = self.config.copies_min..=self.config.copies_max;
        self.memory.scale.filter(|scale| allowed.contains(scale)).unwrap_or(self.config.copies_min)
    }

    /// Numbers of the instances that should run, if the process is wanted; without those that an operator stopped on
    /// their own.
    pub fn asked_for(&self) -> impl Iterator<Item = u32> {
        (1..=self.scale()).filter(|number| !self.is_stopped_alone(*number))
    }

    /// Whether an operator has stopped this instance on its own.
    #[must_use]
    pub fn is_stopped_alone(&self, number: u32) -> bool {
        self.copies.get(&number).is_some_and(|copy| copy.memory.is_stopped)
    }

    /// Wants the process, in all instances or in one. The others of a stopped process stay stopped.
    pub(super) fn want(&mut self, number: Option<u32>) {
        for other in 1..=self.scale() {
            let copy = self.copies.entry(other).or_default();
            if number.is_none_or(|number| number == other) {
                copy.memory.is_stopped = false;
            } else if !self.memory.is_wanted {
                copy.memory.is_stopped = true;
            }
        }
        self.memory.is_wanted = true;
    }

    pub(super) fn meant(&mut self, number: Option<u32>) -> impl Iterator<Item = &mut CopyState> {
        let all = self.copies.iter_mut();
        all.filter(move |(other, _)| number.is_none_or(|number| number == **other)).map(|(_, copy)| copy)
    }

    #[must_use]
    pub fn is_running(&self) -> bool {
        self.copies.values().any(CopyState::is_running)
    }

    /// Whether dependents may start. The first time all instances must have reached the stage; later, and for
    /// singletons, one is enough.
    #[must_use]
    pub fn has_reached(&self, stage: Stage) -> bool {
        let reached = |number: u32| self.copies.get(&number).is_some_and(|copy| copy.has_reached(stage));
        let mut numbers = self.asked_for().peekable();
        if self.memory.was_up || self.config.is_singleton {
            numbers.any(reached)
        } else {
            numbers.peek().is_some() && numbers.all(reached)
        }
    }
}
