//! Applies replaced configurations, programs and inputs.

use super::changed_files::{FileChange, FileVersion, StartedVersions};
use super::connections::REASON_CHARACTERS_MAX;
use super::launch_plans;
use super::service::SupervisorDriver;
use crate::clock::now_ns;
use crate::config::SupervisorConfig;
use crate::control::protocol::SupervisorEvent;
use crate::state_directory::{ConfigInForce, StateDirectory};
use gapless_agent::regular_file::read_text;
use std::path::{Path, PathBuf};

impl SupervisorDriver {
    pub fn check_files(&mut self) {
        for changed in self.changed_files.poll(now_ns()) {
            if self.is_ending {
                return;
            }
            let (process, event) = match changed {
                FileChange::File => {
                    self.apply_changed_file();
                    continue;
                }
                FileChange::Program(process) => (process.clone(), SupervisorEvent::ProgramReplaced { process }),
                FileChange::Input(process) => (process.clone(), SupervisorEvent::InputReplaced { process }),
            };
            self.report_supervisor_event(event);
            self.supervision.file_changed(now_ns(), &process, &mut self.actions);
            self.is_dirty = true;
        }
    }

    fn apply_changed_file(&mut self) {
        let Some(path) = self.file.clone() else { return };
        let in_force = self.directory.read_config_in_force().ok().flatten().map(|in_force| in_force.text);
        if read_text(&path).ok() == in_force {
            self.refused_file = None;
        } else {
            let _ = self.take_changed_file(path);
        }
    }

    /// Puts a configuration in force; a rejection is reported, and the previous one stays.
    pub fn take_changed_file(&mut self, path: PathBuf) -> Result<(), String> {
        if self.is_ending {
            return Err("everything is being stopped; begin again when it has ended".to_owned());
        }
        match self.try_take_file(&path) {
            Ok(is_other) => {
                self.refused_file = None;
                if is_other {
                    self.report_supervisor_event(SupervisorEvent::FileTaken { path });
                }
                Ok(())
            }
            Err(refusal) => {
                if refusal.may_pass {
                    self.changed_files.poll_again(&path);
                }
                let reason: String = refusal.reason.chars().take(REASON_CHARACTERS_MAX).collect();
                let event = SupervisorEvent::FileRefused { reason: reason.clone() };
                let before = self.refused_file.replace(event.to_string());
                if before != self.refused_file {
                    self.report_supervisor_event(event);
                }
                Err(reason)
            }
        }
    }

    fn try_take_file(&mut self, path: &Path) -> Result<bool, FileRefusal> {
        // Taken before the read, so that a later replacement is noticed.
        let identity = FileVersion::of(path);
        let text = read_text(path).map_err(|error| FileRefusal::passing(format!("{}: {error}", path.display())))?;
        let config = SupervisorConfig::parse(&text, &path.display().to_string(), path);
        let config = config.map_err(|error| FileRefusal::of_text(error.to_string()))?;
        config.warning.iter().for_each(|warning| tracing::warn!("{warning}"));
        if !is_same_directory(&config.directory, self.directory.path()) {
            let (found, own) = (config.directory.display(), self.directory.path().display());
            let path = path.display();
            let reason = format!("{path}: its state directory is {found}, and this supervisor's is {own}");
            return Err(FileRefusal::of_text(reason));
        }
        if config.group != self.config.group {
            self.take_group(&config).map_err(FileRefusal::passing)?;
        }
        let in_force = ConfigInForce { path: path.to_owned(), text };
        let written = self.directory.write_config_in_force(&in_force);
        written.map_err(|error| FileRefusal::passing(error.to_string()))?;
        self.file = Some(path.to_owned());
        let is_other = !config.is_equivalent(&self.config);
        if is_other {
            let launch_differs = |old: &_, new: &_| launch_plans::launch_differs((&self.config, old), (&config, new));
            self.supervision.replace(now_ns(), &config, launch_differs, &mut self.actions);
            self.config = config;
            self.logs.set_limits(self.config.log_bytes_max, self.config.logs_kept);
        }
        self.changed_files.follow(Some((path, identity)), &self.config, &StartedVersions::default());
        Ok(is_other)
    }

    fn take_group(&mut self, config: &SupervisorConfig) -> Result<(), String> {
        let group = config.group.as_ref().map(|group| group.id);
        let taken = StateDirectory::create(self.directory.path(), group);
        let taken = taken.and_then(|_| self.connections.listen_again(&self.directory, config));
        taken.map_err(|error| error.to_string())
    }
}

struct FileRefusal {
    reason: String,
    may_pass: bool,
}

impl FileRefusal {
    const fn passing(reason: String) -> Self {
        Self { reason, may_pass: true }
    }

    const fn of_text(reason: String) -> Self {
        Self { reason, may_pass: false }
    }
}

fn is_same_directory(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}
