//! Answers the requests of commands.

use super::connections::May;
use super::journal::{CopyNotes, key};
use super::launch_plans::log;
use super::service::Driver;
use crate::clock::{boot_ns, now_ns};
use crate::control::protocol::{Answer, CopyCondition, CopyStatus, Request, SupervisorStatus};
use crate::copy_name::CopyName;
use crate::guardian::Client;
use crate::process_facts::{ProcessTimes, memory_bytes};
use crate::supervision::copy::{CopyState, End, Progress};
use crate::supervision::event::Command;
use crate::supervision::process::ProcessState;
use gapless_agent::counters::descriptor::process_namespace;
use std::path::PathBuf;

impl Driver {
    pub fn serve_commands(&mut self) {
        let may_steer = self.config.group.as_ref().is_some_and(|group| group.may_steer);
        for (number, may, request) in self.connections.hear(now_ns(), may_steer) {
            if let Err(reason) = self.answer(number, may, request) {
                self.connections.refuse(number, &reason);
            }
        }
    }

    fn answer(&mut self, number: u64, may: May, request: Request) -> Result<(), String> {
        let needed = needed(&request);
        if may < needed {
            let reason = match needed {
                May::Own => "only the user who has started the supervisor may do that",
                _ => "the file allows you to look only; its user, or a group with `steer`, may do that",
            };
            return Err(reason.to_owned());
        }
        let is_to_keep = matches!(request, Request::Up { .. } | Request::TakeFile | Request::Change { .. });
        match request {
            Request::Up { path } => {
                self.take_file(path)?;
                self.is_dirty = true;
            }
            Request::TakeFile => {
                let path = self.file.clone().ok_or("no file is in force")?;
                self.take_changed_file(path)?;
                self.is_dirty = true;
            }
            Request::Down => {
                self.connections.await_end(number);
                self.stop_all();
                return Ok(());
            }
            Request::Change { .. } if self.is_ending => return Err("everything is being stopped".to_owned()),
            Request::Change { command } => {
                let changed = self.supervision.command(now_ns(), &command, &mut self.actions);
                changed.map_err(|error| error.to_string())?;
                self.is_dirty = true;
            }
            Request::Hello { .. } => {}
            Request::Status => self.tell_status(number),
            Request::Events => self.connections.subscribe(number),
        }
        // Persisted before the answer: a successor continues from there if this process dies now.
        self.remember();
        if is_to_keep && self.is_dirty {
            let why = self.problem.as_deref().unwrap_or("it cannot be written");
            return Err(format!(
                "it is done, and not written down, so that the next supervisor would not know of it: {why}"
            ));
        }
        self.connections.answer(number, &Answer::Done);
        Ok(())
    }

    /// Puts a configuration in force and starts its stopped processes. On an error the previous one stays in force.
    fn take_file(&mut self, path: PathBuf) -> Result<(), String> {
        self.take_changed_file(path)?;
        // Running, held and completed instances stay as they are.
        let named = self.supervision.processes().iter();
        let named = named.filter(|process| self.config.process(&process.config.name).is_some());
        let names: Vec<String> = named.flat_map(stopped).collect();
        if names.is_empty() {
            return Ok(());
        }
        let started = self.supervision.command(now_ns(), &Command::Start(names), &mut self.actions);
        started.map_err(|error| error.to_string())
    }

    fn tell_status(&mut self, number: u64) {
        let supervisor = SupervisorStatus {
            file: self.file.clone(),
            supervisor_process_id: Some(std::process::id()),
            guardian_process_id: self.guardian.as_ref().map(Client::guardian_process_id),
            process_namespace: Some(process_namespace()).filter(|namespace| *namespace != 0),
            without_control_groups: self.groups.as_ref().err().cloned(),
            is_ending: self.is_ending,
            domain: self.file.is_some().then(|| self.config.domain.clone()),
            problem: self.problems(),
        };
        self.connections.answer(number, &Answer::Supervisor { supervisor });
        let mut answers = Vec::new();
        for process in self.supervision.processes() {
            for (copy_number, copy) in process.copies() {
                // Instances beyond the current scale.
                let is_past = copy.progress() == Progress::Stopped && copy_number > process.scale();
                if let Ok(name) = CopyName::new(&process.config.name, copy_number)
                    && !is_past
                {
                    answers.push(Answer::Copy { copy: self.copy_status(name, copy) });
                }
            }
        }
        answers.iter().for_each(|answer| self.connections.answer(number, answer));
    }

    fn copy_status(&self, name: CopyName, copy: &CopyState) -> CopyStatus {
        let notes = self.notes.get(&key(&name));
        let times = copy.process_id.and_then(ProcessTimes::of);
        CopyStatus {
            state: condition(copy),
            process_id: copy.process_id,
            process_in_other_namespace: false,
            since_ms: since_ns(copy, notes) / 1_000_000,
            restarts: copy.memory.restarts,
            last_end: copy.memory.last_end.clone(),
            last_reason: copy.memory.last_reason.clone(),
            says: notes.map(|notes| notes.status.clone()).filter(|status| !status.is_empty()),
            last_lines: notes.map(|notes| notes.last_lines.clone()).unwrap_or_default(),
            log: self.config.process(name.process()).map(|process| log(process, &name)),
            cpu_ms: times.map(|times| times.cpu_ms),
            running_ms: times.map(|times| times.running_ms),
            memory_bytes: copy.process_id.and_then(memory_bytes),
            copy: name,
        }
    }
}

/// Names to start for a process that was stopped: its own, or those of its stopped instances.
fn stopped(process: &ProcessState) -> Vec<String> {
    let name = &process.config.name;
    if !process.is_wanted() {
        return vec![name.clone()];
    }
    let copies = (1..=process.scale()).filter(|number| process.is_stopped_alone(*number));
    copies.map(|number| format!("{name}.{number}")).collect()
}

const fn needed(request: &Request) -> May {
    match request {
        Request::Hello { .. } | Request::Status | Request::Events => May::Look,
        Request::Down | Request::Change { .. } | Request::TakeFile => May::Steer,
        Request::Up { .. } => May::Own,
    }
}

/// Time in the current state, suspend included.
fn since_ns(copy: &CopyState, notes: Option<&CopyNotes>) -> u64 {
    match notes.filter(|notes| notes.changed_ns == copy.memory.changed_ns) {
        Some(notes) => boot_ns().saturating_sub(notes.changed_boot_ns),
        None => now_ns().saturating_sub(copy.memory.changed_ns),
    }
}

fn condition(copy: &CopyState) -> CopyCondition {
    match copy.progress() {
        Progress::Stopped => CopyCondition::Stopped,
        Progress::Waiting => CopyCondition::Waiting,
        Progress::Starting { is_standby: true, .. } => CopyCondition::Standby,
        Progress::Starting { .. } => CopyCondition::Starting,
        Progress::Ready { .. } => CopyCondition::Ready,
        Progress::Stopping { .. } => CopyCondition::Stopping,
        Progress::BackingOff { .. } => CopyCondition::BackingOff,
        Progress::Held => CopyCondition::Held,
        Progress::Done if copy.memory.last_end.as_ref().is_some_and(End::is_success) => CopyCondition::Done,
        Progress::Done => CopyCondition::Failed,
    }
}
