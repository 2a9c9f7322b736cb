//! [`ProcessState`]: one process of the file, with its copies.

use super::copy::{CopyMemory, CopyState};
use crate::config::process::{ProcessConfig, RestartConfig, RestartPolicy, Stage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What outlives a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessMemory {
    /// It shall run.
    pub is_wanted: bool,
    /// In so many copies; what the file says without it.
    pub scale: Option<u32>,
    /// Counts the definitions that it was to be started with.
    pub generation: u64,
    /// All its copies were ready once since it was to run.
    pub was_up: bool,
    /// By number.
    pub copies: BTreeMap<u32, CopyMemory>,
}

impl Default for ProcessMemory {
    fn default() -> Self {
        Self { is_wanted: true, scale: None, generation: 0, was_up: false, copies: BTreeMap::new() }
    }
}

/// One process of the file, with its copies.
#[derive(Clone, Debug)]
pub struct ProcessState {
    /// What the file says of it.
    pub config: ProcessConfig,
    /// What is remembered; but its copies stand in `copies`.
    pub(super) memory: ProcessMemory,
    /// By number. Beyond the scale there are those that leave, and the additional one of a reload.
    pub(super) copies: BTreeMap<u32, CopyState>,
    /// The file does not name it any more.
    pub(super) is_removed: bool,
}

impl ProcessState {
    pub(super) fn new(config: ProcessConfig, mut memory: ProcessMemory) -> Self {
        let copies = std::mem::take(&mut memory.copies);
        let copies = copies.into_iter().map(|(number, memory)| (number, CopyState::new(memory))).collect();
        Self { config, memory, copies, is_removed: false }
    }

    /// One that is not in the file any more, and only there to end.
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

    /// The copies, by number.
    pub fn copies(&self) -> impl Iterator<Item = (u32, &CopyState)> {
        self.copies.iter().map(|(number, copy)| (*number, copy))
    }

    /// It shall run.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.memory.is_wanted
    }

    /// So many copies are asked for, as long as it shall run.
    #[must_use]
    pub fn scale(&self) -> u32 {
        let allowed = self.config.copies_min..=self.config.copies_max;
        self.memory.scale.filter(|scale| allowed.contains(scale)).unwrap_or(self.config.copies_min)
    }

    /// The numbers of the copies that are asked for, as long as it shall run: those that nobody has stopped by themselves.
    pub fn asked_for(&self) -> impl Iterator<Item = u32> {
        (1..=self.scale()).filter(|number| !self.is_stopped_alone(*number))
    }

    /// Whether this copy shall not run, though its process may: a person has stopped it by itself.
    #[must_use]
    pub fn is_stopped_alone(&self, number: u32) -> bool {
        self.copies.get(&number).is_some_and(|copy| copy.memory.is_stopped)
    }

    /// It shall run, in all copies or in this one. Of a process that was stopped as a whole the others stay stopped.
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

    /// All its copies, or this one.
    pub(super) fn meant(&mut self, number: Option<u32>) -> impl Iterator<Item = &mut CopyState> {
        let all = self.copies.iter_mut();
        all.filter(move |(other, _)| number.is_none_or(|number| number == **other)).map(|(_, copy)| copy)
    }

    /// Whether a copy runs, or may.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.copies.values().any(CopyState::is_running)
    }

    /// Whether those that wait for it may begin: once all its copies must have come so far, later one is enough.
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
