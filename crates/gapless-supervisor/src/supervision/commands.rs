//! What a person asks for, and another file.

use super::Supervision;
use super::event::{Action, Command, CommandError};
use super::process::{ProcessMemory, ProcessState};
use crate::config::SupervisorConfig;
use crate::config::process::ProcessConfig;
use crate::copy_name::CopyName;

impl Supervision {
    /// Does what a person asks for; what is to be done then is added to `actions`.
    ///
    /// # Errors
    /// Names that are not there, and numbers that the file does not allow; then nothing has changed.
    pub fn command(&mut self, now_ns: u64, command: &Command, actions: &mut Vec<Action>) -> Result<(), CommandError> {
        match command {
            Command::Start(names) => self.each(names, |process, number| {
                process.want(number);
                for copy in process.meant(number) {
                    copy.start_again(now_ns);
                }
            })?,
            Command::Stop(names) => self.each(names, stop)?,
            Command::Restart(names) => self.each(names, |process, number| {
                process.want(number);
                if number.is_none() {
                    process.memory.was_up = false;
                    process.memory.generation += 1;
                }
                for copy in process.meant(number) {
                    copy.memory.restart_requested |= copy.start_again(now_ns);
                }
            })?,
            Command::Reload(names) => self.each(names, reload)?,
            Command::Scale(scales) => {
                for (name, copies) in scales {
                    let process = self.known(name)?;
                    let (min, max) = (process.config.copies_min, process.config.copies_max);
                    if !(min..=max).contains(copies) {
                        return Err(CommandError::Copies { name: name.clone(), copies: *copies, min, max });
                    }
                }
                for (name, copies) in scales {
                    self.known(name)?.memory.scale = Some(*copies);
                }
            }
        }
        self.actions.push(Action::Remember);
        self.settle(now_ns, actions);
        Ok(())
    }

    /// Another file is in force. What it does not name any more ends; what it says otherwise about a process holds from its
    /// next start, which is now, copy by copy, where the file says so and `starts_otherwise`, of its old and its new definition,
    /// says that it makes a difference.
    pub fn replace(
        &mut self,
        now_ns: u64,
        config: &SupervisorConfig,
        starts_otherwise: impl Fn(&ProcessConfig, &ProcessConfig) -> bool,
        actions: &mut Vec<Action>,
    ) {
        for process in &mut self.processes {
            match config.process(&process.config.name) {
                Some(new) => {
                    let is_another_start = starts_otherwise(&process.config, new);
                    process.config = new.clone();
                    process.is_removed = false;
                    if is_another_start && new.reload.on_file {
                        process.memory.generation += 1;
                    }
                }
                None => {
                    process.memory.is_wanted = false;
                    process.is_removed = true;
                }
            }
        }
        let mut old = std::mem::take(&mut self.processes);
        for new in &config.processes {
            let index = old.iter().position(|process| process.config.name == new.name);
            let process = index.map(|index| old.remove(index));
            self.processes.push(process.unwrap_or_else(|| ProcessState::new(new.clone(), ProcessMemory::default())));
        }
        self.processes.append(&mut old);
        self.actions.push(Action::Remember);
        self.settle(now_ns, actions);
    }

    /// Changes what is named: processes, or copies by their numbers.
    fn each(&mut self, names: &[String], change: impl Fn(&mut ProcessState, Option<u32>)) -> Result<(), CommandError> {
        let named = names.iter().map(|name| self.meant(name)).collect::<Result<Vec<_>, _>>()?;
        for (index, number) in named {
            change(&mut self.processes[index], number);
        }
        if names.is_empty() {
            self.processes.iter_mut().filter(|process| !process.is_removed).for_each(|process| change(process, None));
        }
        Ok(())
    }

    /// The process that a name means, and the number of its copy if it means only one.
    fn meant(&self, name: &str) -> Result<(usize, Option<u32>), CommandError> {
        // No name of a process has a point.
        let Ok(copy) = name.parse::<CopyName>() else { return Ok((self.index(name, name)?, None)) };
        let index = self.index(copy.process(), name)?;
        let copies = self.processes[index].scale();
        if copy.number() > copies {
            let process = copy.process().to_owned();
            return Err(CommandError::NoCopy { name: name.to_owned(), process, copies });
        }
        Ok((index, Some(copy.number())))
    }

    fn known(&mut self, name: &str) -> Result<&mut ProcessState, CommandError> {
        let index = self.index(name, name)?;
        Ok(&mut self.processes[index])
    }

    /// Where a process stands; `asked` is what the refusal names.
    fn index(&self, process: &str, asked: &str) -> Result<usize, CommandError> {
        let found = self.processes.iter().position(|found| found.config.name == process && !found.is_removed);
        found.ok_or_else(|| {
            let known = self.processes.iter().filter(|process| !process.is_removed);
            let known = known.map(|process| process.config.name.as_str()).collect::<Vec<_>>().join(", ");
            CommandError::Unknown { name: asked.to_owned(), known }
        })
    }
}

/// It shall not run, or this copy shall not: that stays one of its scale, and no other takes its place.
fn stop(process: &mut ProcessState, number: Option<u32>) {
    match number {
        Some(number) => process.copies.entry(number).or_default().memory.is_stopped = true,
        None => {
            process.memory.is_wanted = false;
            process.memory.was_up = false;
        }
    }
}

/// Its copies, or this one, are older than its definition from now on.
fn reload(process: &mut ProcessState, number: Option<u32>) {
    let before = process.memory.generation;
    process.memory.generation += 1;
    let generation = process.memory.generation;
    for (other, copy) in &mut process.copies {
        // The others are as new as they were.
        if number.is_some_and(|number| number != *other) && copy.memory.generation == before {
            copy.memory.generation = generation;
        }
    }
}
