//! The commands around a supervisor: what a file names is started, looked after and ended. What they share: [`At`], which
//! supervisor is meant, [`lines`], how a log is read, and [`text`], how copies are shown.

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

use super::{Ended, Usage};
use clap::Args;
use gapless_agent::regular_file::read_text;
use gapless_supervisor::SupervisorConfig;
use gapless_supervisor::SupervisorError;
use gapless_supervisor::control::{ControlClient, connect_if_any};
use gapless_supervisor::state_directory::StateDirectory;
use std::path::{Path, PathBuf};
use std::time::Duration;
use waiting::WaitNotice;

/// A supervisor that is being started again is there within this time.
pub(crate) const THERE_WITHIN: Duration = Duration::from_secs(10);

/// Which supervisor is meant.
#[derive(Args)]
pub(crate) struct At {
    /// The file of the supervisor, or its state directory; without it the only one whose state directory is in this folder
    #[arg(long, value_name = "PATH")]
    at: Option<PathBuf>,
}

impl At {
    /// Its state directory.
    pub(crate) fn directory(&self) -> Result<PathBuf, Box<dyn std::error::Error>> {
        match &self.at {
            Some(path) if path.is_dir() => Ok(path.clone()),
            Some(path) => {
                let failed = |error| Usage(format!("--at {}: {error}", path.display()));
                let text = read_text(path).map_err(failed)?;
                // Whatever is wrong in it by now: what runs is found all the same.
                Ok(SupervisorConfig::parse_in_force(&text, &std::path::absolute(path)?)?.directory)
            }
            None => Ok(only_one_in(Path::new("."))?),
        }
    }

    /// Asks it for something, also one that is being started; while it does not answer, it is said who is waited for.
    pub(crate) fn ask<T>(
        &self,
        ask: impl FnOnce(&mut ControlClient) -> Result<T, SupervisorError>,
    ) -> Result<T, Box<dyn std::error::Error>> {
        let directory = self.directory()?;
        let _notice = WaitNotice::of_answer(&directory);
        Ok(ask(&mut connect(&directory)?)?)
    }
}

/// A connection to the supervisor of a state directory; waits for one that is being started again.
pub(crate) fn connect(directory: &Path) -> Result<ControlClient, Box<dyn std::error::Error>> {
    // Of a group that may look or steer: it cannot see whether somebody is just being started.
    let is_own = StateDirectory::open(directory).is_ok();
    let found = if is_own { connect_if_any(directory, THERE_WITHIN)? } else { ControlClient::connect(directory)? };
    if let Some(client) = found {
        return Ok(client);
    }
    let reason = format!("nobody supervises {}: `gapless up FILE` does", directory.display());
    Err(Box::new(Ended { code: 1, reason }))
}

/// The state directory in a folder; one whose file is in force before others.
fn only_one_in(folder: &Path) -> Result<PathBuf, Usage> {
    let listed = std::fs::read_dir(folder).map_err(|error| Usage(format!("{}: {error}", folder.display())))?;
    let is_one = |path: &PathBuf| path.join("guardian.lock").exists() && path.join("copies").is_dir();
    let mut found: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).filter(is_one).collect();
    let in_force: Vec<PathBuf> = found.iter().filter(|path| path.join("config-in-force").exists()).cloned().collect();
    if !in_force.is_empty() {
        found = in_force;
    }
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => Err(Usage("no supervisor has its state directory in this folder; --at names its file".to_owned())),
        several => {
            let names: Vec<String> = several.iter().map(|path| path.display().to_string()).collect();
            Err(Usage(format!("several supervisors have their state here, {}: --at names one", names.join(", "))))
        }
    }
}
