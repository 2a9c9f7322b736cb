//! The commands of a supervisor, which starts, watches and ends the processes of a file.

pub(crate) mod change;
pub(crate) mod down;
pub(crate) mod events;
mod foreground;
mod lines;
pub(crate) mod logs;
mod progress;
pub(crate) mod ps;
pub(crate) mod role;
mod status;
pub(crate) mod text;
pub(crate) mod up;
mod waiting;

use super::{ExitError, UsageError, to_stderr};
use clap::Args;
use gapless_agent::regular_file::read_text;
use gapless_config::ConfigErrors;
use gapless_supervisor::SupervisorConfig;
use gapless_supervisor::SupervisorError;
use gapless_supervisor::control::{ControlClient, connect_if_any};
use gapless_supervisor::state_directory::StateDirectory;
use std::path::{Path, PathBuf};
use std::time::Duration;
use waiting::WaitNotice;

/// Names now and in earlier versions.
const INSTANCES: [&str; 2] = ["instances", "copies"];

pub(crate) const RESTART_TIMEOUT: Duration = Duration::from_secs(10);

/// Reports keys with former names.
pub(crate) fn load(file: &Path) -> Result<SupervisorConfig, ConfigErrors> {
    let config = SupervisorConfig::load(file)?;
    if let Some(warning) = &config.warning {
        to_stderr!("note: {warning}");
    }
    Ok(config)
}

/// Selection of a supervisor.
#[derive(Args)]
pub(crate) struct SupervisorPath {
    /// File of the supervisor, or its state directory [default: the only state directory in this folder]
    #[arg(long, value_name = "PATH")]
    at: Option<PathBuf>,
}

impl SupervisorPath {
    pub(crate) fn directory(&self) -> Result<PathBuf, Box<dyn std::error::Error>> {
        let Some(path) = &self.at else { return Ok(only_directory_in(Path::new("."))?) };
        let directory = if path.is_dir() { path.clone() } else { directory_of_file(path)? };
        // Errors of access are reported when it is opened.
        if directory.is_dir() && matches!(StateDirectory::is_state_directory(&directory), Ok(false)) {
            let reason =
                format!("--at {}: {} is no state directory of a supervisor", path.display(), directory.display());
            return Err(Box::new(UsageError(reason)));
        }
        Ok(directory)
    }

    pub(crate) fn has_only_idle_directories(&self) -> bool {
        let found =
            if self.at.is_none() { state_directories_in(Path::new(".")).unwrap_or_default() } else { Vec::new() };
        found.len() > 1 && !found.iter().any(|path| is_in_force(path))
    }

    pub(crate) fn ask<T>(
        &self,
        ask: impl FnOnce(&mut ControlClient) -> Result<T, SupervisorError>,
    ) -> Result<T, Box<dyn std::error::Error>> {
        let directory = self.directory()?;
        let _notice = WaitNotice::of_answer(&directory);
        Ok(ask(&mut connect(&directory)?)?)
    }
}

pub(crate) fn connect(directory: &Path) -> Result<ControlClient, Box<dyn std::error::Error>> {
    // Members of a group cannot see whether a supervisor is starting.
    let is_own = StateDirectory::open(directory).is_ok();
    let found = if is_own { connect_if_any(directory, RESTART_TIMEOUT)? } else { ControlClient::connect(directory)? };
    if let Some(client) = found {
        return Ok(client);
    }
    let reason = format!("nobody supervises {}: `gapless up FILE` does", directory.display());
    Err(Box::new(ExitError { code: 1, reason }))
}

/// Falls back to the directory in which the file is in force if it is missing or invalid, with the errors as a note.
fn directory_of_file(path: &Path) -> Result<PathBuf, Box<dyn std::error::Error>> {
    let absolute = std::path::absolute(path)?;
    let (error, named): (Box<dyn std::error::Error>, _) = match read_text(path) {
        Ok(text) => match SupervisorConfig::parse_in_force(&text, &absolute) {
            Ok(config) => return Ok(config.directory),
            Err(errors) => (Box::new(errors), SupervisorConfig::directory_in(&text, &absolute)),
        },
        Err(error) => (Box::new(UsageError(format!("--at {}: {error}", path.display()))), None),
    };
    let named = named.filter(|directory| matches!(StateDirectory::is_state_directory(directory), Ok(true)));
    let is_in_force = |directory: &PathBuf| {
        let in_force = StateDirectory::open(directory).and_then(|directory| directory.read_config_in_force());
        in_force.ok().flatten().is_some_and(|in_force| in_force.path == absolute)
    };
    let nearby = absolute.parent().map(state_directories_in).transpose().ok().flatten().unwrap_or_default();
    let Some(directory) = named.or_else(|| nearby.into_iter().find(is_in_force)) else { return Err(error) };
    to_stderr!("note: {error}");
    Ok(directory)
}

fn only_directory_in(folder: &Path) -> Result<PathBuf, UsageError> {
    let mut found = state_directories_in(folder)?;
    let in_force: Vec<PathBuf> = found.iter().filter(|path| is_in_force(path)).cloned().collect();
    if !in_force.is_empty() {
        found = in_force;
    }
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => {
            let unreadable = unreadable_in(folder).map(|reason| format!(" that can be read ({reason})"));
            let unreadable = unreadable.unwrap_or_default();
            Err(UsageError(format!(
                "no supervisor has its state directory in this folder{unreadable}; --at names its file"
            )))
        }
        several => {
            let names: Vec<String> = several.iter().map(|path| path.display().to_string()).collect();
            Err(UsageError(format!("several supervisors have their state here, {}: --at names one", names.join(", "))))
        }
    }
}

fn state_directories_in(folder: &Path) -> Result<Vec<PathBuf>, UsageError> {
    let listed = std::fs::read_dir(folder).map_err(|error| UsageError(format!("{}: {error}", folder.display())))?;
    let is_one =
        |path: &PathBuf| path.join("guardian.lock").exists() && INSTANCES.iter().any(|name| path.join(name).is_dir());
    Ok(listed.flatten().map(|entry| entry.path()).filter(is_one).collect())
}

fn is_in_force(directory: &Path) -> bool {
    directory.join("config-in-force").exists()
}

fn unreadable_in(folder: &Path) -> Option<String> {
    let mut folders = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    folders.find_map(|path| Some(format!("{}: {}", path.display(), StateDirectory::is_state_directory(&path).err()?)))
}
