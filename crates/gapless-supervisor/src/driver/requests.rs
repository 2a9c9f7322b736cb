//! Answers the requests of commands.

use super::connections::Permission;
use super::launch_plans::log;
use super::persistence::{InstanceNotes, key};
use super::service::SupervisorDriver;
use crate::clock::{boot_ns, now_ns};
use crate::control::protocol::{
    InstanceCondition, InstanceStatus, SupervisorAnswer, SupervisorRequest, SupervisorStatus,
};
use crate::guardian::GuardianClient;
use crate::instance_name::InstanceName;
use crate::process_facts::{ProcessTimes, memory_bytes};
use crate::supervision::event::OperatorCommand;
use crate::supervision::instance::{InstanceEnd, InstanceProgress, InstanceState};
use crate::supervision::process::SupervisedProcess;
use gapless_agent::counters::descriptor::process_namespace;
use std::path::PathBuf;

impl SupervisorDriver {
    pub fn serve_commands(&mut self) {
        let may_steer = self.config.group.as_ref().is_some_and(|group| group.may_steer);
        for (number, permission, request) in self.connections.receive(now_ns(), may_steer) {
            if let Err(reason) = self.answer(number, permission, request) {
                self.connections.refuse(number, &reason);
            }
        }
    }

    fn answer(&mut self, number: u64, permission: Permission, request: SupervisorRequest) -> Result<(), String> {
        let needed = needed(&request);
        if permission < needed {
            let reason = match needed {
                Permission::Owner => "only the user who has started the supervisor may do that",
                _ => "the file allows you to look only; its user, or a group with `steer`, may do that",
            };
            return Err(reason.to_owned());
        }
        let is_to_keep = matches!(
            request,
            SupervisorRequest::Up { .. } | SupervisorRequest::TakeFile | SupervisorRequest::Change { .. }
        );
        match request {
            SupervisorRequest::Up { path } => {
                self.take_file(path)?;
                self.is_dirty = true;
            }
            SupervisorRequest::TakeFile => {
                let path = self.file.clone().ok_or("no file is in force")?;
                self.take_changed_file(path)?;
                self.is_dirty = true;
            }
            SupervisorRequest::Down => {
                self.connections.await_end(number);
                self.stop_all();
                return Ok(());
            }
            SupervisorRequest::Change { .. } if self.is_ending => return Err("everything is being stopped".to_owned()),
            SupervisorRequest::Change { command } => {
                let changed = self.supervision.command(now_ns(), &command, &mut self.actions);
                changed.map_err(|error| error.to_string())?;
                self.is_dirty = true;
            }
            SupervisorRequest::Hello { .. } => {}
            SupervisorRequest::Status => self.send_status(number),
            SupervisorRequest::Events => self.connections.subscribe(number),
        }
        // Persisted before the answer: a successor continues from there.
        self.persist();
        if is_to_keep && self.is_dirty {
            let why = self.problem.as_deref().unwrap_or("it cannot be written");
            return Err(format!(
                "it is done, and not written down, so that the next supervisor would not know of it: {why}"
            ));
        }
        self.connections.answer(number, &SupervisorAnswer::Done);
        Ok(())
    }

    /// On an error the previous configuration stays in force.
    fn take_file(&mut self, path: PathBuf) -> Result<(), String> {
        self.take_changed_file(path)?;
        let named = self.supervision.processes().iter();
        let named = named.filter(|process| self.config.process(&process.config.name).is_some());
        let names: Vec<String> = named.flat_map(stopped).collect();
        if names.is_empty() {
            return Ok(());
        }
        let started = self.supervision.command(now_ns(), &OperatorCommand::Start(names), &mut self.actions);
        started.map_err(|error| error.to_string())
    }

    fn send_status(&mut self, number: u64) {
        let supervisor = SupervisorStatus {
            file: self.file.clone(),
            supervisor_process_id: Some(std::process::id()),
            guardian_process_id: self.guardian.as_ref().map(GuardianClient::guardian_process_id),
            process_namespace: Some(process_namespace()).filter(|namespace| *namespace != 0),
            without_control_groups: self.groups.as_ref().err().cloned(),
            is_ending: self.is_ending,
            domain: self.file.is_some().then(|| self.config.domain.clone()),
            problem: self.problems(),
        };
        self.connections.answer(number, &SupervisorAnswer::Supervisor { supervisor });
        let mut answers = Vec::new();
        for process in self.supervision.processes() {
            for (instance_number, instance) in process.instances() {
                let is_past = instance.progress() == InstanceProgress::Stopped && instance_number > process.scale();
                if let Ok(name) = InstanceName::new(&process.config.name, instance_number)
                    && !is_past
                {
                    answers.push(SupervisorAnswer::Instance { instance: self.instance_status(name, instance) });
                }
            }
        }
        answers.iter().for_each(|answer| self.connections.answer(number, answer));
    }

    fn instance_status(&self, name: InstanceName, instance: &InstanceState) -> InstanceStatus {
        let notes = self.notes.get(&key(&name));
        let times = instance.process_id.and_then(ProcessTimes::of);
        InstanceStatus {
            state: condition(instance),
            process_id: instance.process_id,
            process_in_other_namespace: false,
            since_ms: since_ns(instance, notes) / 1_000_000,
            restarts: instance.persistent.restarts,
            last_end: instance.persistent.last_end.clone(),
            last_reason: instance.persistent.last_reason.clone(),
            says: notes.map(|notes| notes.status.clone()).filter(|status| !status.is_empty()),
            last_lines: notes.map(|notes| notes.last_lines.clone()).unwrap_or_default(),
            log: self.config.process(name.process()).map(|process| log(process, &name)),
            cpu_ms: times.map(|times| times.cpu_ms),
            running_ms: times.map(|times| times.running_ms),
            memory_bytes: instance.process_id.and_then(memory_bytes),
            instance: name,
        }
    }
}

fn stopped(process: &SupervisedProcess) -> Vec<String> {
    let name = &process.config.name;
    if !process.is_wanted() {
        return vec![name.clone()];
    }
    let instances = (1..=process.scale()).filter(|number| process.is_stopped_alone(*number));
    instances.map(|number| format!("{name}.{number}")).collect()
}

const fn needed(request: &SupervisorRequest) -> Permission {
    match request {
        SupervisorRequest::Hello { .. } | SupervisorRequest::Status | SupervisorRequest::Events => Permission::Read,
        SupervisorRequest::Down | SupervisorRequest::Change { .. } | SupervisorRequest::TakeFile => Permission::Control,
        SupervisorRequest::Up { .. } => Permission::Owner,
    }
}

fn since_ns(instance: &InstanceState, notes: Option<&InstanceNotes>) -> u64 {
    match notes.filter(|notes| notes.changed_ns == instance.persistent.changed_ns) {
        Some(notes) => boot_ns().saturating_sub(notes.changed_boot_ns),
        None => now_ns().saturating_sub(instance.persistent.changed_ns),
    }
}

fn condition(instance: &InstanceState) -> InstanceCondition {
    match instance.progress() {
        InstanceProgress::Stopped => InstanceCondition::Stopped,
        InstanceProgress::Waiting => InstanceCondition::Waiting,
        InstanceProgress::Starting { is_standby: true, .. } => InstanceCondition::Standby,
        InstanceProgress::Starting { .. } => InstanceCondition::Starting,
        InstanceProgress::Ready { .. } => InstanceCondition::Ready,
        InstanceProgress::Stopping { .. } => InstanceCondition::Stopping,
        InstanceProgress::BackingOff { .. } => InstanceCondition::BackingOff,
        InstanceProgress::Held => InstanceCondition::Held,
        InstanceProgress::Done if instance.persistent.last_end.as_ref().is_some_and(InstanceEnd::is_success) => {
            InstanceCondition::Done
        }
        InstanceProgress::Done => InstanceCondition::Failed,
    }
}
