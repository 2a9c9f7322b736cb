//! [`Supervision`]: the rules, as a pure state machine: events and times in, actions out.

mod commands;
pub mod event;
pub mod instance;
pub mod process;
mod reconciliation;

#[cfg(test)]
mod tests;

use crate::config::SupervisorConfig;
use crate::config::process::Readiness;
use crate::instance_name::InstanceName;
use event::{InstanceEvent, InstanceEventKind, ProcessAction, ProcessEvent};
use instance::{InstanceEnd, InstanceProgress, InstanceState, nanoseconds};
use process::{PersistentProcess, SupervisedProcess};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time in which a killed instance ends, unless the kernel or another namespace keeps it.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(30);

/// State machine of all processes: wanted state, actual state and pending actions.
#[derive(Debug)]
pub struct Supervision {
    processes: Vec<SupervisedProcess>,
    last_incarnation: u64,
    actions: Vec<ProcessAction>,
}

/// Persistent state of a [`Supervision`], for the next supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PersistentSupervision {
    pub last_incarnation: u64,
    /// By process name.
    pub processes: BTreeMap<String, PersistentProcess>,
}

impl Supervision {
    /// Creates it from a configuration and the previous supervisor's state. Call [`Supervision::adopt`] for each
    /// running instance, then [`Supervision::reconcile`].
    #[must_use]
    pub fn new(config: &SupervisorConfig, mut persistent: PersistentSupervision) -> Self {
        let of = |process: &_| {
            let process: &crate::config::process::ProcessConfig = process;
            SupervisedProcess::new(process.clone(), persistent.processes.remove(&process.name).unwrap_or_default())
        };
        let mut processes: Vec<SupervisedProcess> = config.processes.iter().map(of).collect();
        let removed =
            persistent.processes.into_iter().map(|(name, persistent)| SupervisedProcess::removed(&name, persistent));
        processes.extend(removed.filter(SupervisedProcess::is_running));
        Self { processes, last_incarnation: persistent.last_incarnation, actions: Vec::new() }
    }

    /// Takes over a running instance, or stops it if the configuration no longer names it.
    pub fn adopt(&mut self, now_ns: u64, name: &InstanceName, incarnation: u64, process_id: u32) {
        self.last_incarnation = self.last_incarnation.max(incarnation);
        let process = self.process_or_removed(name.process());
        let (ready_within, signal) = (process.config.ready_within, process.config.stop.signal);
        let instance = process.instances.entry(name.number()).or_default();
        instance.adopt(now_ns, incarnation, process_id, ready_within);
        let progress = instance.progress();
        self.actions.push(ProcessAction::Watch { instance: name.clone(), incarnation, process_id });
        if let InstanceProgress::Stopping { kill_at_ns, is_killed: false } = progress {
            // After a drain the signal may still be outstanding.
            self.actions.push(ProcessAction::Stop { instance: name.clone(), signal, kill_at_ns });
        }
    }

    /// Ends all instances of the previous supervisor that were not adopted. `seen` returns how one ended, possibly
    /// [`InstanceEnd::Unseen`]; `None`: never started, since starts are recorded before they are requested.
    pub fn end_unadopted(
        &mut self,
        now_ns: u64,
        mut seen: impl FnMut(&InstanceName, u64) -> Option<InstanceEnd>,
        actions: &mut Vec<ProcessAction>,
    ) {
        for process in &mut self.processes {
            let mut lost = Vec::new();
            for (number, instance) in &mut process.instances {
                let Ok(name) = InstanceName::new(&process.config.name, *number) else { continue };
                if instance.is_running() && instance.process_id.is_none() {
                    let incarnation = instance.persistent.incarnation;
                    match seen(&name, incarnation) {
                        Some(end) => lost.push(ProcessEvent::Ended { end, instance: name, incarnation }),
                        // Does not count as a failure, and starts again.
                        None => instance.change(now_ns, InstanceProgress::Stopped),
                    }
                }
            }
            for event in lost {
                let name = event.instance().clone();
                self.actions.extend(apply_event(now_ns, process, &name, event));
            }
        }
        self.reconcile(now_ns, actions);
    }

    /// Applies an event.
    pub fn handle(&mut self, now_ns: u64, event: ProcessEvent, actions: &mut Vec<ProcessAction>) {
        let name = event.instance().clone();
        if let Some(process) = self.processes.iter_mut().find(|process| process.config.name == name.process()) {
            let actions = apply_event(now_ns, process, &name, event);
            self.actions.extend(actions);
        }
        self.reconcile(now_ns, actions);
    }

    /// Reacts to a replaced program or input file of a process.
    pub fn file_changed(&mut self, now_ns: u64, process: &str, actions: &mut Vec<ProcessAction>) {
        for process in self.processes.iter_mut().filter(|found| found.config.name == process) {
            if process.config.reload.on_program || process.config.reload.on_input {
                process.persistent.generation += 1;
                self.actions.push(ProcessAction::Persist);
            }
        }
        self.reconcile(now_ns, actions);
    }

    #[must_use]
    pub fn persistent_state(&self) -> PersistentSupervision {
        let processes = self.processes.iter().map(|process| (process.config.name.clone(), process.persist()));
        PersistentSupervision { last_incarnation: self.last_incarnation, processes: processes.collect() }
    }

    #[must_use]
    pub fn processes(&self) -> &[SupervisedProcess] {
        &self.processes
    }

    /// Whether no process runs and none is wanted.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let is_over = |process: &SupervisedProcess| !process.persistent.is_wanted && !process.is_running();
        self.processes.iter().all(is_over)
    }

    /// An instance that has not ended within [`KILL_TIMEOUT`] after its kill.
    #[must_use]
    pub fn find_unkillable(&self, now_ns: u64) -> Option<InstanceName> {
        let is_unkillable = |instance: &InstanceState| {
            matches!(instance.persistent.progress, InstanceProgress::Stopping { kill_at_ns, is_killed: true }
                if kill_at_ns.saturating_add(nanoseconds(KILL_TIMEOUT)) <= now_ns)
        };
        self.processes.iter().find_map(|process| {
            let (number, _) = process.instances.iter().find(|(_, instance)| is_unkillable(instance))?;
            InstanceName::new(&process.config.name, *number).ok()
        })
    }

    fn process_or_removed(&mut self, name: &str) -> &mut SupervisedProcess {
        let index = self.processes.iter().position(|process| process.config.name == name).unwrap_or_else(|| {
            self.processes.push(SupervisedProcess::removed(name, PersistentProcess::default()));
            self.processes.len() - 1
        });
        &mut self.processes[index]
    }
}

fn apply_event(
    now_ns: u64,
    process: &mut SupervisedProcess,
    name: &InstanceName,
    event: ProcessEvent,
) -> Vec<ProcessAction> {
    let says_initialised = process.config.ready == Readiness::Notify;
    let (restart, is_once) = (process.config.restart.clone(), process.config.is_once);
    let Some(instance) = process.instances.get_mut(&name.number()) else { return Vec::new() };
    if event.incarnation() != instance.persistent.incarnation {
        // A late event of an earlier start.
        return Vec::new();
    }
    let incarnation = instance.persistent.incarnation;
    let happening = |what: InstanceEventKind| ProcessAction::Report(InstanceEvent { instance: name.clone(), what });
    match event {
        ProcessEvent::Started { process_id, .. } => {
            instance.process_id = Some(process_id);
            if let InstanceProgress::Starting { is_initialised, .. } = &mut instance.persistent.progress {
                // Only instances that report readiness can report initialisation before it.
                *is_initialised = !says_initialised;
            }
            vec![
                happening(InstanceEventKind::Started { process_id }),
                ProcessAction::Watch { instance: name.clone(), incarnation, process_id },
            ]
        }
        ProcessEvent::Standby { .. } => {
            let InstanceProgress::Starting { is_standby, .. } = &mut instance.persistent.progress else {
                return Vec::new();
            };
            *is_standby = true;
            vec![happening(InstanceEventKind::Standby), ProcessAction::Persist]
        }
        ProcessEvent::Active { .. } => {
            let InstanceProgress::Starting { is_standby, until_ns, .. } = &mut instance.persistent.progress else {
                return Vec::new();
            };
            *is_standby = false;
            *until_ns = now_ns.saturating_add(nanoseconds(process.config.ready_within));
            vec![happening(InstanceEventKind::Active), ProcessAction::Persist]
        }
        ProcessEvent::Initialised { .. } => {
            let InstanceProgress::Starting { is_initialised, .. } = &mut instance.persistent.progress else {
                return Vec::new();
            };
            *is_initialised = true;
            vec![happening(InstanceEventKind::Initialised), ProcessAction::Persist]
        }
        ProcessEvent::Ready { .. } => {
            let InstanceProgress::Starting { .. } = instance.persistent.progress else { return Vec::new() };
            instance.change(now_ns, InstanceProgress::Ready { since_ns: now_ns });
            vec![happening(InstanceEventKind::Ready), ProcessAction::Persist]
        }
        ProcessEvent::ReadinessUnknown { .. } => {
            let InstanceProgress::Starting { until_ns, .. } = &mut instance.persistent.progress else {
                return Vec::new();
            };
            // The full time begins again once readiness can be checked, except after a kill.
            if *until_ns != u64::MAX {
                *until_ns = now_ns.saturating_add(nanoseconds(process.config.ready_within));
            }
            Vec::new()
        }
        ProcessEvent::Stuck { reason, .. } => {
            let (InstanceProgress::Starting { .. } | InstanceProgress::Ready { .. }) = instance.persistent.progress
            else {
                return Vec::new();
            };
            instance.persistent.reason = Some(reason.clone());
            vec![
                happening(InstanceEventKind::Killed { reason }),
                ProcessAction::Persist,
                ProcessAction::Kill { instance: name.clone() },
            ]
        }
        ProcessEvent::Ended { end, .. } => {
            if !instance.is_running() {
                return Vec::new();
            }
            let progress = match instance.persistent.progress {
                InstanceProgress::Stopping { .. } => InstanceProgress::Stopped,
                _ => instance.after_end(now_ns, &end, &restart, is_once),
            };
            instance.process_id = None;
            instance.persistent.last_end = Some(end.clone());
            instance.persistent.last_reason = instance.persistent.reason.take();
            instance.change(now_ns, progress);
            let held = (progress == InstanceProgress::Held).then(|| happening(InstanceEventKind::Held));
            [happening(InstanceEventKind::Ended { end })]
                .into_iter()
                .chain(held)
                .chain([ProcessAction::Persist])
                .collect()
        }
    }
}
