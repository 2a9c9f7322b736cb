//! Commands of an operator, and replacement of the configuration.

use super::Supervision;
use super::event::{OperatorCommand, OperatorCommandError, ProcessAction};
use super::process::{PersistentProcess, SupervisedProcess};
use crate::config::SupervisorConfig;
use crate::config::process::ProcessConfig;
use crate::instance_name::InstanceName;

impl Supervision {
    /// Applies a command.
    ///
    /// # Errors
    /// Unknown names, and instance counts outside the configured range; nothing has changed then.
    pub fn command(
        &mut self,
        now_ns: u64,
        command: &OperatorCommand,
        actions: &mut Vec<ProcessAction>,
    ) -> Result<(), OperatorCommandError> {
        match command {
            OperatorCommand::Start(names) => self.each(names, |process, number| {
                process.want(number);
                for instance in process.selected(number) {
                    instance.start_again(now_ns);
                }
            })?,
            OperatorCommand::Stop(names) => self.each(names, stop)?,
            OperatorCommand::Restart(names) => self.each(names, |process, number| {
                process.want(number);
                if number.is_none() {
                    process.persistent.was_up = false;
                    process.persistent.generation += 1;
                }
                for instance in process.selected(number) {
                    instance.persistent.restart_requested |= instance.start_again(now_ns);
                }
            })?,
            OperatorCommand::Reload(names) => self.each(names, reload)?,
            OperatorCommand::Scale(scales) => {
                for (name, instances) in scales {
                    let process = self.known(name)?;
                    let (min, max) = (process.config.instances_min, process.config.instances_max);
                    if !(min..=max).contains(instances) {
                        return Err(OperatorCommandError::Instances {
                            name: name.clone(),
                            instances: *instances,
                            min,
                            max,
                        });
                    }
                }
                for (name, instances) in scales {
                    self.known(name)?.persistent.scale = Some(*instances);
                }
            }
        }
        self.actions.push(ProcessAction::Persist);
        self.reconcile(now_ns, actions);
        Ok(())
    }

    /// Applies a new configuration: stops processes it no longer names; other changes take effect at a process's next
    /// start. A process with `reload.on_file` is reloaded now, instance by instance, if `launch_differs(old, new)`.
    pub fn replace(
        &mut self,
        now_ns: u64,
        config: &SupervisorConfig,
        launch_differs: impl Fn(&ProcessConfig, &ProcessConfig) -> bool,
        actions: &mut Vec<ProcessAction>,
    ) {
        for process in &mut self.processes {
            match config.process(&process.config.name) {
                Some(new) => {
                    let is_another_start = launch_differs(&process.config, new);
                    process.config = new.clone();
                    process.is_removed = false;
                    if is_another_start && new.reload.on_file {
                        process.persistent.generation += 1;
                    }
                }
                None => {
                    process.persistent.is_wanted = false;
                    process.is_removed = true;
                }
            }
        }
        let mut old = std::mem::take(&mut self.processes);
        for new in &config.processes {
            let index = old.iter().position(|process| process.config.name == new.name);
            let process = index.map(|index| old.remove(index));
            self.processes
                .push(process.unwrap_or_else(|| SupervisedProcess::new(new.clone(), PersistentProcess::default())));
        }
        self.processes.append(&mut old);
        self.actions.push(ProcessAction::Persist);
        self.reconcile(now_ns, actions);
    }

    fn each(
        &mut self,
        names: &[String],
        change: impl Fn(&mut SupervisedProcess, Option<u32>),
    ) -> Result<(), OperatorCommandError> {
        let named = names.iter().map(|name| self.selected(name)).collect::<Result<Vec<_>, _>>()?;
        for (index, number) in named {
            change(&mut self.processes[index], number);
        }
        if names.is_empty() {
            self.processes.iter_mut().filter(|process| !process.is_removed).for_each(|process| change(process, None));
        }
        Ok(())
    }

    fn selected(&self, name: &str) -> Result<(usize, Option<u32>), OperatorCommandError> {
        // Names of processes contain no dot.
        let Ok(instance) = name.parse::<InstanceName>() else { return Ok((self.index(name, name)?, None)) };
        let index = self.index(instance.process(), name)?;
        let instances = self.processes[index].scale();
        if instance.number() > instances {
            let process = instance.process().to_owned();
            return Err(OperatorCommandError::NoInstance { name: name.to_owned(), process, instances });
        }
        Ok((index, Some(instance.number())))
    }

    fn known(&mut self, name: &str) -> Result<&mut SupervisedProcess, OperatorCommandError> {
        let index = self.index(name, name)?;
        Ok(&mut self.processes[index])
    }

    fn index(&self, process: &str, asked: &str) -> Result<usize, OperatorCommandError> {
        let found = self.processes.iter().position(|found| found.config.name == process && !found.is_removed);
        found.ok_or_else(|| {
            let known = self.processes.iter().filter(|process| !process.is_removed);
            let known = known.map(|process| process.config.name.as_str()).collect::<Vec<_>>().join(", ");
            OperatorCommandError::Unknown { name: asked.to_owned(), known }
        })
    }
}

/// A stopped instance counts towards the scale.
fn stop(process: &mut SupervisedProcess, number: Option<u32>) {
    match number {
        Some(number) => process.instances.entry(number).or_default().persistent.is_stopped = true,
        None => {
            process.persistent.is_wanted = false;
            process.persistent.was_up = false;
        }
    }
}

fn reload(process: &mut SupervisedProcess, number: Option<u32>) {
    let before = process.persistent.generation;
    process.persistent.generation += 1;
    let generation = process.persistent.generation;
    for (other, instance) in &mut process.instances {
        if number.is_some_and(|number| number != *other) && instance.persistent.generation == before {
            instance.persistent.generation = generation;
        }
    }
}
