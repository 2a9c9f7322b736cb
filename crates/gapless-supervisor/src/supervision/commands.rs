//! Commands of an operator, and replacement of the configuration.

use super::Supervision;
use super::event::{Action, Command, CommandError};
use super::process::{ProcessMemory, ProcessState};
use crate::config::SupervisorConfig;
use crate::config::process::ProcessConfig;
use crate::copy_name::CopyName;

impl Supervision {
    /// Applies a command and adds the resulting actions to `actions`.
    ///
    /// # Errors
    /// Unknown names, and instance counts outside the configured range; nothing has changed then.
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

    /// Applies a new configuration. Processes that it no longer names are stopped. Changes to a process take effect at
    /// its next start.
    ///
    /// A process with `reload.on_file` is reloaded now, instance by instance, if `starts_otherwise(old, new)` says that
    /// the change matters.
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

    /// Applies `change` to the named processes or instances; to all processes if `names` is empty.
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

    /// Resolves a name to the index of its process, and to an instance number if it names one instance.
    fn meant(&self, name: &str) -> Result<(usize, Option<u32>), CommandError> {
        // Names of processes contain no dot.
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

    /// Index of a process. `asked` is the name for the error.
    fn index(&self, process: &str, asked: &str) -> Result<usize, CommandError> {
        let found = self.processes.iter().position(|found| found.config.name == process && !found.is_removed);
        found.ok_or_else(|| {
            let known = self.processes.iter().filter(|process| !process.is_removed);
            let known = known.map(|process| process.config.name.as_str()).collect::<Vec<_>>().join(", ");
            CommandError::Unknown { name: asked.to_owned(), known }
        })
    }
}

/// Stops the process or one of its instances. A stopped instance still counts towards the scale: no other replaces it.
fn stop(process: &mut ProcessState, number: Option<u32>) {
    match number {
        Some(number) => process.copies.entry(number).or_default().memory.is_stopped = true,
        None => {
            process.memory.is_wanted = false;
            process.memory.was_up = false;
        }
    }
}

/// Marks the process or one of its instances as older than the current definition.
fn reload(process: &mut ProcessState, number: Option<u32>) {
    let before = process.memory.generation;
    process.memory.generation += 1;
    let generation = process.memory.generation;
    for (other, copy) in &mut process.copies {
        // Other instances that are up to date stay up to date.
        if number.is_some_and(|number| number != *other) && copy.memory.generation == before {
            copy.memory.generation = generation;
        }
    }
}
