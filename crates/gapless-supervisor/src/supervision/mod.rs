//! [`Supervision`]: what shall run, what does, and what is to be done about it. It knows neither processes nor files nor
//! clocks: it is told what happened and when, and says what to do.
//!
//! | module | what lives there |
//! |---|---|
//! | `settling` | the rules: from what shall be and what is to actions |
//! | `commands` | what a person asks for |
//! | [`event`] | what it is told, and what it says |
//! | [`process`] | one process of the file, with its copies |
//! | [`copy`] | one copy |

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

/// A copy that is killed ends within this time, unless the kernel or another namespace keeps it.
pub const KILLED_ENDS_WITHIN: Duration = Duration::from_secs(30);

/// What shall run, what does, and what is to be done about it.
#[derive(Debug)]
pub struct Supervision {
    /// In the order of the file; those that are not in it any more behind them, until they have ended.
    processes: Vec<ProcessState>,
    /// The number of the last start of any copy.
    last_incarnation: u64,
    /// What has been said and not been done yet.
    actions: Vec<Action>,
}

/// What outlives a supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// The number of the last start of any copy.
    pub last_incarnation: u64,
    /// By name.
    pub processes: BTreeMap<String, ProcessMemory>,
}

impl Supervision {
    /// Of a file, with what the last supervisor remembered. Nothing runs yet: [`Supervision::adopt`] says what does, then
    /// [`Supervision::settle`] begins.
    #[must_use]
    pub fn new(config: &SupervisorConfig, mut memory: Memory) -> Self {
        let of = |process: &_| {
            let process: &crate::config::process::ProcessConfig = process;
            ProcessState::new(process.clone(), memory.processes.remove(&process.name).unwrap_or_default())
        };
        let mut processes: Vec<ProcessState> = config.processes.iter().map(of).collect();
        // Those that the file does not name any more, and have not ended yet.
        let removed = memory.processes.into_iter().map(|(name, memory)| ProcessState::removed(&name, memory));
        processes.extend(removed.filter(ProcessState::is_running));
        Self { processes, last_incarnation: memory.last_incarnation, actions: Vec::new() }
    }

    /// A copy that runs already. One that the file does not name any more is stopped.
    pub fn adopt(&mut self, now_ns: u64, name: &CopyName, incarnation: u64, process_id: u32) {
        self.last_incarnation = self.last_incarnation.max(incarnation);
        let process = self.process_or_removed(name.process());
        let (ready_within, signal) = (process.config.ready_within, process.config.stop.signal);
        let copy = process.copies.entry(name.number()).or_default();
        copy.adopt(now_ns, incarnation, process_id, ready_within);
        let progress = copy.progress();
        self.actions.push(Action::Watch { copy: name.clone(), incarnation, process_id });
        if let Progress::Stopping { kill_at_ns, is_killed: false } = progress {
            // It may have been drained, and not have got its signal yet.
            self.actions.push(Action::Stop { copy: name.clone(), signal, kill_at_ns });
        }
    }

    /// The copies that ran when their supervisor died and have not been adopted: they have ended, and `seen` knows how, if
    /// only that nobody saw it; or knows that the start never was, which was written down before it was asked for.
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
                        // It counts for nothing, and is begun again.
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

    /// Says what happened; what is to be done then is added to `actions`.
    pub fn handle(&mut self, now_ns: u64, event: Event, actions: &mut Vec<Action>) {
        let name = event.copy().clone();
        if let Some(process) = self.processes.iter_mut().find(|process| process.config.name == name.process()) {
            let said = happen(now_ns, process, &name, event);
            self.actions.extend(said);
        }
        self.settle(now_ns, actions);
    }

    /// The program or the input of a process has been replaced.
    pub fn file_changed(&mut self, now_ns: u64, process: &str, actions: &mut Vec<Action>) {
        for process in self.processes.iter_mut().filter(|found| found.config.name == process) {
            if process.config.reload.on_program || process.config.reload.on_input {
                process.memory.generation += 1;
                self.actions.push(Action::Remember);
            }
        }
        self.settle(now_ns, actions);
    }

    /// What is to be remembered.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let processes = self.processes.iter().map(|process| (process.config.name.clone(), process.remember()));
        Memory { last_incarnation: self.last_incarnation, processes: processes.collect() }
    }

    /// The processes.
    #[must_use]
    pub fn processes(&self) -> &[ProcessState] {
        &self.processes
    }

    /// Whether nothing runs and nothing shall.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let is_over = |process: &ProcessState| !process.memory.is_wanted && !process.is_running();
        self.processes.iter().all(is_over)
    }

    /// A copy that was killed [`KILLED_ENDS_WITHIN`] ago or earlier and has not ended.
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

    /// The process, or one that is only there to end.
    fn process_or_removed(&mut self, name: &str) -> &mut ProcessState {
        let index = self.processes.iter().position(|process| process.config.name == name).unwrap_or_else(|| {
            self.processes.push(ProcessState::removed(name, ProcessMemory::default()));
            self.processes.len() - 1
        });
        &mut self.processes[index]
    }
}

/// What an event says about a copy, written down.
fn happen(now_ns: u64, process: &mut ProcessState, name: &CopyName, event: Event) -> Vec<Action> {
    let says_initialised = process.config.ready == Readiness::Notify;
    let (restart, is_once) = (process.config.restart.clone(), process.config.is_once);
    let Some(copy) = process.copies.get_mut(&name.number()) else { return Vec::new() };
    if event.incarnation() != copy.memory.incarnation {
        // Of an earlier start, which is over.
        return Vec::new();
    }
    let incarnation = copy.memory.incarnation;
    let happening = |what: What| Action::Tell(Happening { copy: name.clone(), what });
    match event {
        Event::Started { process_id, .. } => {
            copy.process_id = Some(process_id);
            if let Progress::Starting { is_initialised, .. } = &mut copy.memory.progress {
                // Only who says when he is ready can say before that he is initialised.
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
            // It gets its whole time once it can be seen; one that is killed already stays so.
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
