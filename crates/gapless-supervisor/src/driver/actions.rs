//! Carries out the actions of the rules.

use super::launch_plans::{launch_plan, log};
use super::persistence::{PersistentState, STATE_VERSION, key};
use super::readiness::ReadinessProbe;
use super::service::SupervisorDriver;
use super::standby_probe::StandbyProbe;
use super::watched_instance::WatchedInstance;
use crate::clock::{boot_ns, now_ns, unix_ms};
use crate::config::process::Readiness;
use crate::control::protocol::{EventRecord, EventSubject, SupervisorAnswer, SupervisorEvent};
use crate::error::SupervisorError;
use crate::guardian::protocol::GuardianRequest;
use crate::instance_name::InstanceName;
use crate::logs::LogFollower;
use crate::state_directory::StateSocket;
use crate::supervision::PersistentSupervision;
use crate::supervision::event::{InstanceEvent, ProcessAction, ProcessEvent};
use crate::supervision::instance::{InstanceEnd, InstanceProgress};
use gapless_agent::folder::Folder;
use std::collections::BTreeSet;

impl SupervisorDriver {
    /// Passes events to the rules and carries out their actions, until both are exhausted.
    pub fn work(&mut self) {
        loop {
            let actions = std::mem::take(&mut self.actions);
            let serving = self.serving_processes(&actions);
            for action in actions {
                self.act(action, &serving);
            }
            match self.pending_events.pop_front() {
                Some(event) => self.supervision.handle(now_ns(), event, &mut self.actions),
                None if self.actions.is_empty() => break,
                None => {}
            }
        }
        self.persist();
        // The guardian keeps ends until they are persisted, for the next supervisor.
        if !self.is_dirty {
            self.forget_ended();
        }
    }

    fn act(&mut self, action: ProcessAction, serving: &BTreeSet<u32>) {
        match action {
            ProcessAction::Start { instance, incarnation } => {
                // Persisted before the start: an incarnation is never given twice.
                self.persist();
                if let Err(error) = self.start(&instance, incarnation) {
                    self.watched.remove(&instance);
                    let end = if error.is_shortage() { InstanceEnd::Shortage } else { InstanceEnd::NotStarted }(
                        error.to_string(),
                    );
                    self.pending_events.push_back(ProcessEvent::Ended { instance, incarnation, end });
                }
            }
            ProcessAction::Watch { instance, process_id, .. } => self.watch(&instance, process_id),
            ProcessAction::Stop { instance, signal, kill_at_ns } => self.stop(&instance, signal, kill_at_ns, serving),
            ProcessAction::Kill { instance } => {
                self.watched.entry(instance).and_modify(|watched| watched.kill());
            }
            ProcessAction::Persist => self.is_dirty = true,
            ProcessAction::Report(event) => self.report(event),
        }
    }

    fn start(&mut self, instance: &InstanceName, incarnation: u64) -> Result<(), SupervisorError> {
        let Some(process) = self.config.process(instance.process()) else {
            return Err(SupervisorError::Refused("the file does not name it any more".to_owned()));
        };
        let files = self.directory.instance(instance);
        files.prepare()?;
        let notify_socket = self.directory.socket(StateSocket::Notify);
        let mut plan = launch_plan(&self.config, process, instance, incarnation, &notify_socket);
        plan.cgroup = self.groups.as_ref().ok().map(|groups| groups.of_instance(instance));
        if process.is_singleton {
            plan.singleton = Some(self.directory.singleton_lock(instance.process())?);
        }
        let (log, is_line) = (log(process, instance), matches!(process.ready, Readiness::Line(_)));
        make_log_folder(&log)?;
        let log_begin = LogFollower::end_of(&log);
        self.logs.add(&log);
        let notes = self.notes.entry(key(instance)).or_default();
        (notes.log, notes.log_begin) = (log, log_begin);
        notes.status.clear();
        if is_line {
            // Persisted for a successor, which must read the log from the same place.
            self.is_dirty = true;
            self.persist();
        }
        files.write_launch(&plan)?;
        self.watched.insert(instance.clone(), WatchedInstance::requested(incarnation, plan.cgroup));
        self.ask(&GuardianRequest::Start { instance: instance.clone(), incarnation });
        Ok(())
    }

    /// Sends a request to the guardian; [`SupervisorDriver::compare_children`] repeats it for the successor of a dead
    /// one.
    pub fn ask(&mut self, ask: &GuardianRequest) {
        if let Some(guardian) = &mut self.guardian
            && let Err(error) = guardian.ask(ask)
        {
            tracing::warn!("{error}");
            self.disconnect_guardian();
        }
    }

    fn watch(&mut self, instance: &InstanceName, process_id: u32) {
        let Some(watched) = self.watched.get_mut(instance).filter(|watched| watched.process_id == Some(process_id))
        else {
            return;
        };
        if let Some(signal) = watched.wanted_signal.take() {
            watched.signal(signal);
        }
        let process = self.supervision.processes().iter().find(|process| process.config.name == instance.process());
        let Some(process) = process else { return };
        let state = process
            .instances()
            .find(|(number, _)| *number == instance.number())
            .map(|(_, instance)| instance.progress());
        if let Some(InstanceProgress::Starting { is_standby, .. }) = state {
            let notes = self.notes.get(&key(instance)).cloned().unwrap_or_default();
            watched.probe = ReadinessProbe::new(&process.config.ready, &notes.log, notes.log_begin, now_ns());
            watched.standby = process.config.is_singleton.then(|| StandbyProbe::new(now_ns(), is_standby));
        }
    }

    /// Persists the state for the next supervisor, if it has changed.
    pub fn persist(&mut self) {
        self.note_signals();
        if !self.is_dirty {
            return;
        }
        self.note_changes();
        let persistent = PersistentState {
            version: STATE_VERSION,
            started_versions: self.changed_files.known(),
            boot: self.boot.clone(),
            is_ending: self.is_ending,
            supervision: self.supervision.persistent_state(),
            instances: self.notes.clone(),
        };
        match self.directory.write_state(&persistent) {
            Ok(()) => {
                self.is_dirty = false;
                if std::mem::take(&mut self.is_unwritten) {
                    self.problem = None;
                }
            }
            Err(error) => {
                let problem = error.to_string();
                if !self.is_unwritten || self.problem.as_ref() != Some(&problem) {
                    tracing::error!("{problem}");
                }
                (self.problem, self.is_unwritten) = (Some(problem), true);
            }
        }
    }

    /// A successor must not send the signal twice.
    fn note_signals(&mut self) {
        for (instance, watched) in self.watched.iter_mut().filter(|(_, watched)| watched.is_signalled) {
            watched.is_signalled = false;
            self.notes.entry(key(instance)).or_default().signalled_incarnation = watched.incarnation;
            self.is_dirty = true;
        }
    }

    fn note_changes(&mut self) {
        for process in self.supervision.processes() {
            for (number, instance) in process.instances() {
                let Ok(name) = InstanceName::new(&process.config.name, number) else { continue };
                let notes = self.notes.entry(key(&name)).or_default();
                if notes.changed_ns != instance.persistent.changed_ns {
                    (notes.changed_ns, notes.changed_boot_ns) = (instance.persistent.changed_ns, boot_ns());
                }
            }
        }
    }

    /// Clears the persistent state, except for the last incarnation.
    pub fn clear_state(&mut self) -> Result<(), SupervisorError> {
        let last_incarnation = self.supervision.persistent_state().last_incarnation;
        let supervision = PersistentSupervision { last_incarnation, ..PersistentSupervision::default() };
        let (version, boot) = (STATE_VERSION, self.boot.clone());
        self.directory.write_state(&PersistentState { version, boot, supervision, ..PersistentState::default() })
    }

    fn report(&mut self, event: InstanceEvent) {
        self.record(EventSubject::Instance(event));
    }

    /// Reports an event of the supervisor itself.
    pub fn report_supervisor_event(&mut self, event: SupervisorEvent) {
        self.record(EventSubject::Supervisor { event });
    }

    fn record(&mut self, subject: EventSubject) {
        let record = EventRecord { unix_ms: unix_ms(), subject };
        self.events.append(&record);
        self.connections.publish(&SupervisorAnswer::Event { record });
    }
}

fn make_log_folder(log: &std::path::Path) -> Result<(), SupervisorError> {
    let Some(folder) = log.parent() else { return Ok(()) };
    let failed = SupervisorError::io(format!("making the folder {}", folder.display()));
    Folder::create(folder).map(drop).map_err(failed)
}
