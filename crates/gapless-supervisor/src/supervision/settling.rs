//! Rules from wanted and actual state to actions. Pure: no clock, no I/O.
//!
//! Each call looks at every instance once. A wanted instance starts once its dependencies have reached their stages. An
//! unwanted one is stopped after all dependents that are also being stopped. A reload replaces one instance at a time,
//! while all others are ready.

use super::Supervision;
use super::copy::{CopyState, Progress, nanoseconds};
use super::event::{Action, Happening, What};
use super::process::ProcessState;
use crate::config::process::{ProcessConfig, Stage};
use crate::copy_name::CopyName;

impl Supervision {
    /// Compares wanted and actual state at `now_ns`, and adds the resulting actions to `actions`.
    pub fn settle(&mut self, now_ns: u64, actions: &mut Vec<Action>) {
        for index in 0..self.processes.len() {
            let may_start = self.may_start(index);
            let may_stop = self.may_stop(index);
            let process = &mut self.processes[index];
            prepare_copies(process);
            let extra = is_rolling(process).then(|| process.scale() + 1);
            let leaving = next_to_leave(process, extra);
            let numbers: Vec<u32> = process.copies.keys().copied().collect();
            for number in numbers {
                let is_asked_for = number <= process.scale() || Some(number) == extra;
                let is_wanted = process.memory.is_wanted && is_asked_for && !process.is_stopped_alone(number);
                let is_old = leaving == Some(number) || is_to_restart(process, number);
                let Some(copy) = process.copies.get_mut(&number) else { continue };
                let Ok(name) = CopyName::new(&process.config.name, number) else { continue };
                let mut turn = Turn {
                    now_ns,
                    name: &name,
                    generation: process.memory.generation,
                    last_incarnation: &mut self.last_incarnation,
                    said: &mut self.actions,
                };
                if !is_wanted {
                    turn.end(copy, &process.config, may_stop, "it is not to run");
                } else if is_old {
                    turn.end(copy, &process.config, true, "it starts anew");
                } else {
                    turn.run(copy, &process.config, may_start);
                }
            }
            let is_up = process.memory.is_wanted && process.has_reached(Stage::Ready);
            process.memory.was_up |= is_up;
            let last = extra.unwrap_or(0).max(process.config.copies_max);
            process.copies.retain(|number, copy| *number <= last || copy.is_running());
        }
        self.processes.retain(|process| !process.is_removed || process.is_running());
        actions.append(&mut self.actions);
    }

    /// Next time at which [`Supervision::settle`] must run without an event; monotonic, ns.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let copies = self.processes.iter().flat_map(|process| process.copies.values());
        copies
            .filter_map(|copy| match copy.memory.progress {
                Progress::Starting { is_standby: false, until_ns, .. } | Progress::BackingOff { until_ns } => {
                    Some(until_ns)
                }
                Progress::Stopping { kill_at_ns, is_killed: false } => Some(kill_at_ns),
                _ => None,
            })
            .min()
    }

    /// Whether all dependencies of the process have reached their stages.
    fn may_start(&self, index: usize) -> bool {
        self.processes[index].config.after.iter().all(|dependency| {
            let other = self.processes.iter().find(|process| process.config.name == dependency.process);
            other.is_none_or(|other| other.has_reached(dependency.stage))
        })
    }

    /// Whether all dependents that are also being stopped have ended.
    fn may_stop(&self, index: usize) -> bool {
        let name = &self.processes[index].config.name;
        let is_after = |process: &ProcessState| process.config.after.iter().any(|other| &other.process == name);
        !self.processes.iter().any(|process| is_after(process) && !process.memory.is_wanted && process.is_running())
    }
}

/// Adds entries for all instances that should run.
fn prepare_copies(process: &mut ProcessState) {
    if !process.memory.is_wanted {
        return;
    }
    let last = process.scale() + u32::from(is_rolling(process));
    for number in 1..=last {
        process.copies.entry(number).or_default();
    }
    // An instance that is scaled away and comes back is new: its individual stop is forgotten.
    let scale = process.scale();
    for (_, copy) in process.copies.range_mut(scale + 1..) {
        copy.memory.is_stopped = false;
    }
}

/// Whether a reload is in progress that needs an extra instance.
fn is_rolling(process: &ProcessState) -> bool {
    // The extra instance stays until the replacements are ready.
    let has_extra = process.copies.get(&(process.scale() + 1)).is_some_and(CopyState::is_running);
    let are_ready = process.asked_for().all(|number| is_ready(process, number));
    let overlaps = process.config.reload.is_overlapping && !process.config.is_singleton;
    overlaps && (process.asked_for().any(|number| is_old(process, number)) || (has_extra && !are_ready))
}

fn is_ready(process: &ProcessState, number: u32) -> bool {
    process.copies.get(&number).is_some_and(|copy| matches!(copy.memory.progress, Progress::Ready { .. }))
}

/// Whether the instance runs an earlier definition.
fn is_old(process: &ProcessState, number: u32) -> bool {
    let copy = process.copies.get(&number);
    copy.is_some_and(|copy| copy.is_running() && copy.memory.generation < process.memory.generation)
}

/// Next instance for a reload to replace. `None` while any other instance is not ready.
fn next_to_leave(process: &ProcessState, extra: Option<u32>) -> Option<u32> {
    let is_old = |number: &u32| is_old(process, *number);
    // Standbys of a singleton come first, so that the active instance changes only once.
    let stands_by = |number: &u32| {
        let copy = process.copies.get(number);
        copy.is_some_and(|copy| matches!(copy.memory.progress, Progress::Starting { is_standby: true, .. }))
    };
    let first = process.asked_for().find(|number| is_old(number) && stands_by(number));
    let old = first.or_else(|| process.asked_for().find(is_old))?;
    let mut others = process.asked_for().chain(extra).filter(|number| *number != old);
    // A replacement that does not become ready stalls the reload: the old instances stay.
    let is_there = |copy: &CopyState| match copy.memory.progress {
        Progress::Ready { .. } | Progress::Done => true,
        Progress::Starting { is_standby, .. } => is_standby && process.config.is_singleton,
        _ => false,
    };
    others.all(|number| process.copies.get(&number).is_some_and(is_there)).then_some(old)
}

fn is_to_restart(process: &ProcessState, number: u32) -> bool {
    process.copies.get(&number).is_some_and(|copy| copy.is_running() && copy.memory.restart_requested)
}

/// One instance in one call of [`Supervision::settle`].
struct Turn<'a> {
    now_ns: u64,
    name: &'a CopyName,
    generation: u64,
    last_incarnation: &'a mut u64,
    said: &'a mut Vec<Action>,
}

impl Turn<'_> {
    fn tell(&mut self, what: What) {
        self.said.push(Action::Tell(Happening { copy: self.name.clone(), what }));
    }

    /// Brings an unwanted or outdated instance to its end.
    fn end(&mut self, copy: &mut CopyState, config: &ProcessConfig, may_stop: bool, reason: &str) {
        match copy.memory.progress {
            Progress::Starting { .. } | Progress::Ready { .. } if may_stop => {
                let kill_at_ns = self.now_ns.saturating_add(nanoseconds(config.stop.grace));
                copy.change(self.now_ns, Progress::Stopping { kill_at_ns, is_killed: false });
                self.tell(What::Stopping { reason: reason.to_owned() });
                self.said.push(Action::Stop { copy: self.name.clone(), signal: config.stop.signal, kill_at_ns });
                self.said.push(Action::Remember);
            }
            Progress::Stopping { .. } => self.hurry(copy),
            Progress::Waiting | Progress::BackingOff { .. } | Progress::Held | Progress::Done => {
                copy.change(self.now_ns, Progress::Stopped);
                self.said.push(Action::Remember);
            }
            Progress::Starting { .. } | Progress::Ready { .. } | Progress::Stopped => {}
        }
    }

    /// Brings a wanted instance to its start.
    fn run(&mut self, copy: &mut CopyState, config: &ProcessConfig, may_start: bool) {
        match copy.memory.progress {
            Progress::Stopped | Progress::Waiting => self.start(copy, config, may_start),
            Progress::BackingOff { until_ns } if until_ns <= self.now_ns => self.start(copy, config, may_start),
            Progress::Starting { is_standby: false, until_ns, .. } if until_ns <= self.now_ns => {
                // Killed once; `Event::Ended` follows.
                copy.memory.progress =
                    Progress::Starting { is_standby: false, is_initialised: false, until_ns: u64::MAX };
                let reason = format!("it was not ready within {:?}", config.ready_within);
                copy.memory.reason = Some(reason.clone());
                self.tell(What::Killed { reason });
                self.said.push(Action::Remember);
                self.said.push(Action::Kill { copy: self.name.clone() });
            }
            Progress::Stopping { .. } => self.hurry(copy),
            // A new definition gets a new chance.
            Progress::Held if copy.memory.generation < self.generation => {
                copy.reset_failures();
                self.start(copy, config, may_start);
            }
            Progress::Starting { .. }
            | Progress::Ready { .. }
            | Progress::BackingOff { .. }
            | Progress::Held
            | Progress::Done => {}
        }
    }

    fn start(&mut self, copy: &mut CopyState, config: &ProcessConfig, may_start: bool) {
        if !may_start {
            if copy.memory.progress != Progress::Waiting {
                copy.change(self.now_ns, Progress::Waiting);
            }
            return;
        }
        *self.last_incarnation += 1;
        copy.memory.incarnation = *self.last_incarnation;
        copy.memory.generation = self.generation;
        copy.memory.restart_requested = false;
        copy.memory.reason = None;
        let until_ns = self.now_ns.saturating_add(nanoseconds(config.ready_within));
        copy.change(self.now_ns, Progress::Starting { is_standby: false, is_initialised: false, until_ns });
        self.tell(What::Starting);
        self.said.push(Action::Remember);
        self.said.push(Action::Start { copy: self.name.clone(), incarnation: copy.memory.incarnation });
    }

    /// Kills an instance whose grace period is over.
    fn hurry(&mut self, copy: &mut CopyState) {
        let Progress::Stopping { kill_at_ns, is_killed: false } = copy.memory.progress else { return };
        if kill_at_ns <= self.now_ns {
            copy.memory.progress = Progress::Stopping { kill_at_ns: self.now_ns, is_killed: true };
            let reason = "it did not end when it was asked to".to_owned();
            copy.memory.reason = Some(reason.clone());
            self.tell(What::Killed { reason });
            self.said.push(Action::Remember);
            self.said.push(Action::Kill { copy: self.name.clone() });
        }
    }
}
