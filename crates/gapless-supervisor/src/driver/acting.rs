//! Carries out the actions of the rules.

use super::journal::{DriverMemory, MEMORY_VERSION, key};
use super::launch_plans::{launch_plan, log};
use super::readiness::Probe;
use super::service::Driver;
use super::standby_look::StandbyLook;
use super::watched::Watched;
use crate::clock::{boot_ns, now_ns, unix_ms};
use crate::config::process::Readiness;
use crate::control::protocol::{Answer, EventRecord, Recorded, SupervisorEvent};
use crate::copy_name::CopyName;
use crate::error::SupervisorError;
use crate::guardian::protocol::Ask;
use crate::logs::LogFollower;
use crate::state_directory::Socket;
use crate::supervision::Memory;
use crate::supervision::copy::{End, Progress};
use crate::supervision::event::{Action, Event, Happening};
use gapless_agent::folder::Folder;
use std::collections::BTreeSet;

impl Driver {
    /// Passes pending events to the rules and carries out their actions, until both are exhausted.
    pub fn work(&mut self) {
        loop {
            let actions = std::mem::take(&mut self.actions);
            let serving = self.serving_processes(&actions);
            for action in actions {
                self.act(action, &serving);
            }
            match self.happened.pop_front() {
                Some(event) => self.supervision.handle(now_ns(), event, &mut self.actions),
                None if self.actions.is_empty() => break,
                None => {}
            }
        }
        self.remember();
        // The guardian keeps ends until they are persisted, for the next supervisor.
        if !self.is_dirty {
            self.forget_ended();
        }
    }

    fn act(&mut self, action: Action, serving: &BTreeSet<u32>) {
        match action {
            Action::Start { copy, incarnation } => {
                // Persisted before the start: an incarnation is never given twice.
                self.remember();
                if let Err(error) = self.start(&copy, incarnation) {
                    self.watched.remove(&copy);
                    let end = if error.is_shortage() { End::Lacking } else { End::NotStarted }(error.to_string());
                    self.happened.push_back(Event::Ended { copy, incarnation, end });
                }
            }
            Action::Watch { copy, process_id, .. } => self.watch(&copy, process_id),
            Action::Stop { copy, signal, kill_at_ns } => self.stop(&copy, signal, kill_at_ns, serving),
            Action::Kill { copy } => {
                self.watched.entry(copy).and_modify(|watched| watched.kill());
            }
            Action::Remember => self.is_dirty = true,
            Action::Tell(happening) => self.tell(happening),
        }
    }

    fn start(&mut self, copy: &CopyName, incarnation: u64) -> Result<(), SupervisorError> {
        let Some(process) = self.config.process(copy.process()) else {
            return Err(SupervisorError::Refused("the file does not name it any more".to_owned()));
        };
        let files = self.directory.copy(copy);
        files.prepare()?;
        let notify_socket = self.directory.socket(Socket::Notify);
        let mut plan = launch_plan(&self.config, process, copy, incarnation, &notify_socket);
        plan.cgroup = self.groups.as_ref().ok().map(|groups| groups.of_copy(copy));
        if process.is_singleton {
            plan.singleton = Some(self.directory.singleton_lock(copy.process())?);
        }
        let (log, is_line) = (log(process, copy), matches!(process.ready, Readiness::Line(_)));
        make_log_folder(&log)?;
        let log_begin = LogFollower::end_of(&log);
        self.logs.add(&log);
        let notes = self.notes.entry(key(copy)).or_default();
        (notes.log, notes.log_begin) = (log, log_begin);
        notes.status.clear();
        if is_line {
            // Persisted for a successor, which must read the log from the same place.
            self.is_dirty = true;
            self.remember();
        }
        files.write_launch(&plan)?;
        self.watched.insert(copy.clone(), Watched::asked(incarnation, plan.cgroup));
        self.ask(&Ask::Start { copy: copy.clone(), incarnation });
        Ok(())
    }

    /// Sends a request to the guardian. If the guardian is dead, [`Driver::compare`] repeats it with the next one.
    pub fn ask(&mut self, ask: &Ask) {
        if let Some(guardian) = &mut self.guardian
            && let Err(error) = guardian.ask(ask)
        {
            tracing::warn!("{error}");
            self.lose_guardian();
        }
    }

    /// Begins to watch a running instance.
    fn watch(&mut self, copy: &CopyName, process_id: u32) {
        let Some(watched) = self.watched.get_mut(copy).filter(|watched| watched.process_id == Some(process_id)) else {
            return;
        };
        if let Some(signal) = watched.wanted_signal.take() {
            watched.signal(signal);
        }
        let process = self.supervision.processes().iter().find(|process| process.config.name == copy.process());
        let Some(process) = process else { return };
        let state = process.copies().find(|(number, _)| *number == copy.number()).map(|(_, copy)| copy.progress());
        if let Some(Progress::Starting { is_standby, .. }) = state {
            let notes = self.notes.get(&key(copy)).cloned().unwrap_or_default();
            watched.probe = Probe::new(&process.config.ready, &notes.log, notes.log_begin, now_ns());
            watched.standby = process.config.is_singleton.then(|| StandbyLook::new(now_ns(), is_standby));
        }
    }

    /// Persists the state for the next supervisor, if it has changed.
    pub fn remember(&mut self) {
        self.note_signals();
        if !self.is_dirty {
            return;
        }
        self.note_changes();
        let memory = DriverMemory {
            version: MEMORY_VERSION,
            started_with: self.changed_files.known(),
            boot: self.boot.clone(),
            is_ending: self.is_ending,
            supervision: self.supervision.memory(),
            copies: self.notes.clone(),
        };
        match self.directory.write_memory(&memory) {
            Ok(()) => {
                self.is_dirty = false;
                // The problem was the failed write, which is over.
                if std::mem::take(&mut self.is_unwritten) {
                    self.problem = None;
                }
            }
            // Retried at the next turn.
            Err(error) => {
                let said = error.to_string();
                if !self.is_unwritten || self.problem.as_ref() != Some(&said) {
                    tracing::error!("{said}");
                }
                (self.problem, self.is_unwritten) = (Some(said), true);
            }
        }
    }

    /// Records which instances have received their signal, so that a successor does not send it twice.
    fn note_signals(&mut self) {
        for (copy, watched) in self.watched.iter_mut().filter(|(_, watched)| watched.is_signalled) {
            watched.is_signalled = false;
            self.notes.entry(key(copy)).or_default().signalled_incarnation = watched.incarnation;
            self.is_dirty = true;
        }
    }

    /// Records times of state changes by the boot-time clock, which runs on during suspend.
    fn note_changes(&mut self) {
        for process in self.supervision.processes() {
            for (number, copy) in process.copies() {
                let Ok(name) = CopyName::new(&process.config.name, number) else { continue };
                let notes = self.notes.entry(key(&name)).or_default();
                if notes.changed_ns != copy.memory.changed_ns {
                    (notes.changed_ns, notes.changed_boot_ns) = (copy.memory.changed_ns, boot_ns());
                }
            }
        }
    }

    /// Clears the persistent state, except for the last incarnation.
    pub fn forget_all(&mut self) -> Result<(), SupervisorError> {
        let last_incarnation = self.supervision.memory().last_incarnation;
        let supervision = Memory { last_incarnation, ..Memory::default() };
        let (version, boot) = (MEMORY_VERSION, self.boot.clone());
        self.directory.write_memory(&DriverMemory { version, boot, supervision, ..DriverMemory::default() })
    }

    fn tell(&mut self, happening: Happening) {
        self.record(Recorded::Copy(happening));
    }

    /// Reports an event of the supervisor itself.
    pub fn tell_of_supervisor(&mut self, event: SupervisorEvent) {
        self.record(Recorded::Supervisor { event });
    }

    fn record(&mut self, happening: Recorded) {
        let record = EventRecord { unix_ms: unix_ms(), happening };
        self.events.append(&record);
        self.connections.tell(&Answer::Event { record });
    }
}

/// Creates the directory of a log outside the state directory.
fn make_log_folder(log: &std::path::Path) -> Result<(), SupervisorError> {
    let Some(folder) = log.parent() else { return Ok(()) };
    let failed = SupervisorError::io(format!("making the folder {}", folder.display()));
    Folder::create(folder).map(drop).map_err(failed)
}
