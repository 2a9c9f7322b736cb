//! [`Supervision`]: the rules for starting and stopping processes, as a pure state machine. It knows no processes,
//! files or clocks: inputs are events and times, outputs are actions.
//!
//! | module | what lives there |
//! |---|---|
//! | `settling` | the rules: from wanted and actual state to actions |
//! | `commands` | commands of an operator, and a new configuration |
//! | [`event`] | inputs and outputs |
//! | [`process`] | one configured process with its instances |
//! | [`copy`] | one instance |

mod commands;
pub mod copy;
pub mod event;
pub mod process;
mod settling;

#[cfg(test)]
mod tests;

use crate::config::SupervisorConfig;
use crate::config::process::Readiness;
use crate::copy_name::CopyName;
use copy::{CopyState, End, Progress, nanoseconds};
use event::{Action, Event, Happening, What};
use process::{ProcessMemory, ProcessState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time in which a killed instance ends, unless the kernel or another namespace keeps it.
pub const KILLED_ENDS_WITHIN: Duration = Duration::from_secs(30);

/// State machine of all processes: wanted state, actual state and pending actions.
#[derive(Debug)]
pub struct Supervision {
    /// In the order of the configuration, followed by removed processes that still run.
    processes: Vec<ProcessState>,
    /// Number of the last start of any instance.
    last_incarnation: u64,
    /// Actions that have not been handed out yet.
    actions: Vec<Action>,
}

/// Persistent state of a [`Supervision`], for the next supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub last_incarnation: u64,
    /// By process name.
    pub processes: BTreeMap<String, ProcessMemory>,
}

impl Supervision {
    /// Creates it from a configuration and the state of the previous supervisor. Call [`Supervision::adopt`] for each
    /// running instance, then [`Supervision::settle`].
    #[must_use]
    pub fn new(config: &SupervisorConfig, mut memory: Memory) -> Self {
        let of = |process: &_| {
            let process: &crate::config::process::ProcessConfig = process;
            ProcessState::new(process.clone(), memory.processes.remove(&process.name).unwrap_or_default())
        };
        let mut processes: Vec<ProcessState> = config.processes.iter().map(of).collect();
        // Processes that were removed from the configuration and still run.
        let removed = memory.processes.into_iter().map(|(name, memory)| ProcessState::removed(&name, memory));
        processes.extend(removed.filter(ProcessState::is_running));
        Self { processes, last_incarnation: memory.last_incarnation, actions: Vec::new() }
    }

    /// Takes over a running instance. It is stopped if the configuration no longer names it.
    pub fn adopt(&mut self, now_ns: u64, name: &CopyName, incarnation: u64, process_id: u32) {
        self.last_incarnation = self.last_incarnation.max(incarnation);
        let process = self.process_or_removed(name.process());
        let (ready_within, signal) = (process.config.ready_within, process.config.stop.signal);
        let copy = process.copies.entry(name.number()).or_default();
        copy.adopt(now_ns, incarnation, process_id, ready_within);
        let progress = copy.progress();
        self.actions.push(Action::Watch { copy: name.clone(), incarnation, process_id });
        if let Progress::Stopping { kill_at_ns, is_killed: false } = progress {
            // The signal may still be outstanding, after a drain.
            self.actions.push(Action::Stop { copy: name.clone(), signal, kill_at_ns });
        }
    }

    /// Ends all instances that ran under the previous supervisor and were not adopted. `seen` returns how one ended,
    /// [`End::Unseen`] included. `None` means that it was never started: starts are recorded before they are requested.
    pub fn lose_others(
        &mut self,
        now_ns: u64,
        mut seen: impl FnMut(&CopyName, u64) -> Option<End>,
        actions: &mut Vec<Action>,
    ) {
        for process in &mut self.processes {
            let mut lost = Vec::new();
            for (number, copy) in &mut process.copies {
                let Ok(name) = CopyName::new(&process.config.name, *number) else { continue };
                if copy.is_running() && copy.process_id.is_none() {
                    let incarnation = copy.memory.incarnation;
                    match seen(&name, incarnation) {
                        Some(end) => lost.push(Event::Ended { end, copy: name, incarnation }),
                        // Does not count as a failure, and starts again.
                        None => copy.change(now_ns, Progress::Stopped),
                    }
                }
            }
            for event in lost {
                let name = event.copy().clone();
                self.actions.extend(happen(now_ns, process, &name, event));
            }
        }
        self.settle(now_ns, actions);
    }

    /// Applies an event and adds the resulting actions to `actions`.
    pub fn handle(&mut self, now_ns: u64, event: Event, actions: &mut Vec<Action>) {
        let name = event.copy().clone();
        if let Some(process) = self.processes.iter_mut().find(|process| process.config.name == name.process()) {
            let said = happen(now_ns, process, &name, event);
            self.actions.extend(said);
        }
        self.settle(now_ns, actions);
    }

    /// Reacts to a replaced program or input file of a process.
    pub fn file_changed(&mut self, now_ns: u64, process: &str, actions: &mut Vec<Action>) {
        for process in self.processes.iter_mut().filter(|found| found.config.name == process) {
            if process.config.reload.on_program || process.config.reload.on_input {
                process.memory.generation += 1;
                self.actions.push(Action::Remember);
            }
        }
        self.settle(now_ns, actions);
    }

    #[must_use]
    pub fn memory(&self) -> Memory {
        let processes = self.processes.iter().map(|process| (process.config.name.clone(), process.remember()));
        Memory { last_incarnation: self.last_incarnation, processes: processes.collect() }
    }

    #[must_use]
    pub fn processes(&self) -> &[ProcessState] {
        &self.processes
    }

    /// Whether no process runs and none is wanted.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let is_over = |process: &ProcessState| !process.memory.is_wanted && !process.is_running();
        self.processes.iter().all(is_over)
    }

    /// An instance that has not ended within [`KILLED_ENDS_WITHIN`] after its kill.
    #[must_use]
    pub fn find_unkillable(&self, now_ns: u64) -> Option<CopyName> {
        let is_unkillable = |copy: &CopyState| {
            matches!(copy.memory.progress, Progress::Stopping { kill_at_ns, is_killed: true }
                if kill_at_ns.saturating_add(nanoseconds(KILLED_ENDS_WITHIN)) <= now_ns)
        };
        self.processes.iter().find_map(|process| {
            let (number, _) = process.copies.iter().find(|(_, copy)| is_unkillable(copy))?;
            CopyName::new(&process.config.name, *number).ok()
        })
    }

    /// The process; if the configuration does not name it, a placeholder that is only stopped.
    fn process_or_removed(&mut self, name: &str) -> &mut ProcessState {
        let index = self.processes.iter().position(|process| process.config.name == name).unwrap_or_else(|| {
            self.processes.push(ProcessState::removed(name, ProcessMemory::default()));
            self.processes.len() - 1
        });
        &mut self.processes[index]
    }
}

/// Applies an event to its instance.
fn happen(now_ns: u64, process: &mut ProcessState, name: &CopyName, event: Event) -> Vec<Action> {
    let says_initialised = process.config.ready == Readiness::Notify;
    let (restart, is_once) = (process.config.restart.clone(), process.config.is_once);
    let Some(copy) = process.copies.get_mut(&name.number()) else { return Vec::new() };
    if event.incarnation() != copy.memory.incarnation {
        // Late event of an earlier start.
        return Vec::new();
    }
    let incarnation = copy.memory.incarnation;
    let happening = |what: What| Action::Tell(Happening { copy: name.clone(), what });
    match event {
        Event::Started { process_id, .. } => {
            copy.process_id = Some(process_id);
            if let Progress::Starting { is_initialised, .. } = &mut copy.memory.progress {
                // Only instances that report readiness can report initialisation before it.
                *is_initialised = !says_initialised;
            }
            vec![happening(What::Started { process_id }), Action::Watch { copy: name.clone(), incarnation, process_id }]
        }
        Event::Standby { .. } => {
            let Progress::Starting { is_standby, .. } = &mut copy.memory.progress else { return Vec::new() };
            *is_standby = true;
            vec![happening(What::Standby), Action::Remember]
        }
        Event::Active { .. } => {
            let Progress::Starting { is_standby, until_ns, .. } = &mut copy.memory.progress else { return Vec::new() };
            *is_standby = false;
            *until_ns = now_ns.saturating_add(nanoseconds(process.config.ready_within));
            vec![happening(What::Active), Action::Remember]
        }
        Event::Initialised { .. } => {
            let Progress::Starting { is_initialised, .. } = &mut copy.memory.progress else { return Vec::new() };
            *is_initialised = true;
            vec![happening(What::Initialised), Action::Remember]
        }
        Event::Ready { .. } => {
            let Progress::Starting { .. } = copy.memory.progress else { return Vec::new() };
            copy.change(now_ns, Progress::Ready { since_ns: now_ns });
            vec![happening(What::Ready), Action::Remember]
        }
        Event::Unknown { .. } => {
            let Progress::Starting { until_ns, .. } = &mut copy.memory.progress else { return Vec::new() };
            // The full time begins again once readiness can be checked, except after a kill.
            if *until_ns != u64::MAX {
                *until_ns = now_ns.saturating_add(nanoseconds(process.config.ready_within));
            }
            Vec::new()
        }
        Event::Stuck { reason, .. } => {
            let (Progress::Starting { .. } | Progress::Ready { .. }) = copy.memory.progress else { return Vec::new() };
            copy.memory.reason = Some(reason.clone());
            vec![happening(What::Killed { reason }), Action::Remember, Action::Kill { copy: name.clone() }]
        }
        Event::Ended { end, .. } => {
            if !copy.is_running() {
                return Vec::new();
            }
            let progress = match copy.memory.progress {
                Progress::Stopping { .. } => Progress::Stopped,
                _ => copy.after_end(now_ns, &end, &restart, is_once),
            };
            copy.process_id = None;
            copy.memory.last_end = Some(end.clone());
            copy.memory.last_reason = copy.memory.reason.take();
            copy.change(now_ns, progress);
            let held = (progress == Progress::Held).then(|| happening(What::Held));
            [happening(What::Ended { end })].into_iter().chain(held).chain([Action::Remember]).collect()
        }
    }
}
