//! Pure rules. A wanted instance starts once its dependencies have reached their stages; an unwanted one is stopped
//! after its dependents that are also being stopped. A reload replaces one instance at a time, while all others are
//! ready.

use super::Supervision;
use super::event::{InstanceEvent, InstanceEventKind, ProcessAction};
use super::instance::{InstanceProgress, InstanceState, nanoseconds};
use super::process::SupervisedProcess;
use crate::config::process::{DependencyStage, ProcessConfig};
use crate::instance_name::InstanceName;

impl Supervision {
    /// Compares wanted and actual state at `now_ns`.
    pub fn reconcile(&mut self, now_ns: u64, actions: &mut Vec<ProcessAction>) {
        for index in 0..self.processes.len() {
            let may_start = self.may_start(index);
            let may_stop = self.may_stop(index);
            let process = &mut self.processes[index];
            prepare_instances(process);
            let extra = is_rolling(process).then(|| process.scale() + 1);
            let leaving = next_to_leave(process, extra);
            let numbers: Vec<u32> = process.instances.keys().copied().collect();
            for number in numbers {
                let is_in_scale = number <= process.scale() || Some(number) == extra;
                let is_wanted = process.persistent.is_wanted && is_in_scale && !process.is_stopped_alone(number);
                let is_old = leaving == Some(number) || is_to_restart(process, number);
                let Some(instance) = process.instances.get_mut(&number) else { continue };
                let Ok(name) = InstanceName::new(&process.config.name, number) else { continue };
                let mut step = InstanceStep {
                    now_ns,
                    name: &name,
                    generation: process.persistent.generation,
                    last_incarnation: &mut self.last_incarnation,
                    actions: &mut self.actions,
                };
                if !is_wanted {
                    step.end(instance, &process.config, may_stop, "it is not to run");
                } else if is_old {
                    step.end(instance, &process.config, true, "it starts anew");
                } else {
                    step.run(instance, &process.config, may_start);
                }
            }
            let is_up = process.persistent.is_wanted && process.has_reached(DependencyStage::Ready);
            process.persistent.was_up |= is_up;
            let last = extra.unwrap_or(0).max(process.config.instances_max);
            process.instances.retain(|number, instance| *number <= last || instance.is_running());
        }
        self.processes.retain(|process| !process.is_removed || process.is_running());
        actions.append(&mut self.actions);
    }

    /// Next time at which [`Supervision::reconcile`] must run without an event; monotonic, ns.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let instances = self.processes.iter().flat_map(|process| process.instances.values());
        instances
            .filter_map(|instance| match instance.persistent.progress {
                InstanceProgress::Starting { is_standby: false, until_ns, .. }
                | InstanceProgress::BackingOff { until_ns } => Some(until_ns),
                InstanceProgress::Stopping { kill_at_ns, is_killed: false } => Some(kill_at_ns),
                _ => None,
            })
            .min()
    }

    fn may_start(&self, index: usize) -> bool {
        self.processes[index].config.after.iter().all(|dependency| {
            let other = self.processes.iter().find(|process| process.config.name == dependency.process);
            other.is_none_or(|other| other.has_reached(dependency.stage))
        })
    }

    fn may_stop(&self, index: usize) -> bool {
        let name = &self.processes[index].config.name;
        let is_after = |process: &SupervisedProcess| process.config.after.iter().any(|other| &other.process == name);
        !self.processes.iter().any(|process| is_after(process) && !process.persistent.is_wanted && process.is_running())
    }
}

fn prepare_instances(process: &mut SupervisedProcess) {
    if !process.persistent.is_wanted {
        return;
    }
    let last = process.scale() + u32::from(is_rolling(process));
    for number in 1..=last {
        process.instances.entry(number).or_default();
    }
    // An instance that is scaled away and comes back is new: its individual stop is forgotten.
    let scale = process.scale();
    for (_, instance) in process.instances.range_mut(scale + 1..) {
        instance.persistent.is_stopped = false;
    }
}

fn is_rolling(process: &SupervisedProcess) -> bool {
    let has_extra = process.instances.get(&(process.scale() + 1)).is_some_and(InstanceState::is_running);
    let are_ready = process.desired_numbers().all(|number| is_ready(process, number));
    let overlaps = process.config.reload.is_overlapping && !process.config.is_singleton;
    overlaps && (process.desired_numbers().any(|number| is_old(process, number)) || (has_extra && !are_ready))
}

fn is_ready(process: &SupervisedProcess, number: u32) -> bool {
    process
        .instances
        .get(&number)
        .is_some_and(|instance| matches!(instance.persistent.progress, InstanceProgress::Ready { .. }))
}

fn is_old(process: &SupervisedProcess, number: u32) -> bool {
    let instance = process.instances.get(&number);
    instance
        .is_some_and(|instance| instance.is_running() && instance.persistent.generation < process.persistent.generation)
}

fn next_to_leave(process: &SupervisedProcess, extra: Option<u32>) -> Option<u32> {
    let is_old = |number: &u32| is_old(process, *number);
    // Standbys come first, so that a singleton's active instance changes only once.
    let stands_by = |number: &u32| {
        let instance = process.instances.get(number);
        instance.is_some_and(|instance| {
            matches!(instance.persistent.progress, InstanceProgress::Starting { is_standby: true, .. })
        })
    };
    let first = process.desired_numbers().find(|number| is_old(number) && stands_by(number));
    let old = first.or_else(|| process.desired_numbers().find(is_old))?;
    let mut others = process.desired_numbers().chain(extra).filter(|number| *number != old);
    // A replacement that does not become ready stalls the reload: the old instances stay.
    let is_there = |instance: &InstanceState| match instance.persistent.progress {
        InstanceProgress::Ready { .. } | InstanceProgress::Done => true,
        InstanceProgress::Starting { is_standby, .. } => is_standby && process.config.is_singleton,
        _ => false,
    };
    others.all(|number| process.instances.get(&number).is_some_and(is_there)).then_some(old)
}

fn is_to_restart(process: &SupervisedProcess, number: u32) -> bool {
    process
        .instances
        .get(&number)
        .is_some_and(|instance| instance.is_running() && instance.persistent.restart_requested)
}

struct InstanceStep<'a> {
    now_ns: u64,
    name: &'a InstanceName,
    generation: u64,
    last_incarnation: &'a mut u64,
    actions: &'a mut Vec<ProcessAction>,
}

impl InstanceStep<'_> {
    fn report(&mut self, what: InstanceEventKind) {
        self.actions.push(ProcessAction::Report(InstanceEvent { instance: self.name.clone(), what }));
    }

    fn end(&mut self, instance: &mut InstanceState, config: &ProcessConfig, may_stop: bool, reason: &str) {
        match instance.persistent.progress {
            InstanceProgress::Starting { .. } | InstanceProgress::Ready { .. } if may_stop => {
                let kill_at_ns = self.now_ns.saturating_add(nanoseconds(config.stop.grace));
                instance.change(self.now_ns, InstanceProgress::Stopping { kill_at_ns, is_killed: false });
                self.report(InstanceEventKind::Stopping { reason: reason.to_owned() });
                self.actions.push(ProcessAction::Stop {
                    instance: self.name.clone(),
                    signal: config.stop.signal,
                    kill_at_ns,
                });
                self.actions.push(ProcessAction::Persist);
            }
            InstanceProgress::Stopping { .. } => self.kill_if_overdue(instance),
            InstanceProgress::Waiting
            | InstanceProgress::BackingOff { .. }
            | InstanceProgress::Held
            | InstanceProgress::Done => {
                instance.change(self.now_ns, InstanceProgress::Stopped);
                self.actions.push(ProcessAction::Persist);
            }
            InstanceProgress::Starting { .. } | InstanceProgress::Ready { .. } | InstanceProgress::Stopped => {}
        }
    }

    fn run(&mut self, instance: &mut InstanceState, config: &ProcessConfig, may_start: bool) {
        match instance.persistent.progress {
            InstanceProgress::Stopped | InstanceProgress::Waiting => self.start(instance, config, may_start),
            InstanceProgress::BackingOff { until_ns } if until_ns <= self.now_ns => {
                self.start(instance, config, may_start)
            }
            InstanceProgress::Starting { is_standby: false, until_ns, .. } if until_ns <= self.now_ns => {
                instance.persistent.progress =
                    InstanceProgress::Starting { is_standby: false, is_initialised: false, until_ns: u64::MAX };
                let reason = format!("it was not ready within {:?}", config.ready_within);
                instance.persistent.reason = Some(reason.clone());
                self.report(InstanceEventKind::Killed { reason });
                self.actions.push(ProcessAction::Persist);
                self.actions.push(ProcessAction::Kill { instance: self.name.clone() });
            }
            InstanceProgress::Stopping { .. } => self.kill_if_overdue(instance),
            InstanceProgress::Held if instance.persistent.generation < self.generation => {
                instance.reset_failures();
                self.start(instance, config, may_start);
            }
            InstanceProgress::Starting { .. }
            | InstanceProgress::Ready { .. }
            | InstanceProgress::BackingOff { .. }
            | InstanceProgress::Held
            | InstanceProgress::Done => {}
        }
    }

    fn start(&mut self, instance: &mut InstanceState, config: &ProcessConfig, may_start: bool) {
        if !may_start {
            if instance.persistent.progress != InstanceProgress::Waiting {
                instance.change(self.now_ns, InstanceProgress::Waiting);
            }
            return;
        }
        *self.last_incarnation += 1;
        instance.persistent.incarnation = *self.last_incarnation;
        instance.persistent.generation = self.generation;
        instance.persistent.restart_requested = false;
        instance.persistent.reason = None;
        let until_ns = self.now_ns.saturating_add(nanoseconds(config.ready_within));
        instance.change(self.now_ns, InstanceProgress::Starting { is_standby: false, is_initialised: false, until_ns });
        self.report(InstanceEventKind::Starting);
        self.actions.push(ProcessAction::Persist);
        self.actions
            .push(ProcessAction::Start { instance: self.name.clone(), incarnation: instance.persistent.incarnation });
    }

    fn kill_if_overdue(&mut self, instance: &mut InstanceState) {
        let InstanceProgress::Stopping { kill_at_ns, is_killed: false } = instance.persistent.progress else { return };
        if kill_at_ns <= self.now_ns {
            instance.persistent.progress = InstanceProgress::Stopping { kill_at_ns: self.now_ns, is_killed: true };
            let reason = "it did not end when it was asked to".to_owned();
            instance.persistent.reason = Some(reason.clone());
            self.report(InstanceEventKind::Killed { reason });
            self.actions.push(ProcessAction::Persist);
            self.actions.push(ProcessAction::Kill { instance: self.name.clone() });
        }
    }
}
