//! `take_charge`: puts a configuration in force and makes sure that it is supervised.

use super::client::ControlClient;
use super::protocol::SupervisorRequest;
use crate::config::SupervisorConfig;
use crate::error::{SupervisorError, check_proc};
use crate::guardian;
use crate::role::RoleCommand;
use crate::state_directory::{ConfigInForce, Holder, RoleLock, StateDirectory};
use gapless_agent::regular_file::read_text;
use std::path::Path;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(10);

/// Puts `config`, read from `path`, in force. Starts guardian and supervisor if none run; they take over running
/// instances. Afterwards all configured processes run or are being started.
///
/// # Errors
/// The state directory cannot be created. No supervisor starts in time. The supervisor rejects the configuration.
pub fn take_charge(
    path: &Path,
    config: &SupervisorConfig,
    roles: &RoleCommand,
    within: Duration,
) -> Result<ControlClient, SupervisorError> {
    check_proc()?;
    let path = std::path::absolute(path).map_err(SupervisorError::io(format!("finding {}", path.display())))?;
    let group = config.group.as_ref().map(|group| group.id);
    if !config.directory.exists()
        && let Some(pid) = guardian::find_orphaned(&config.directory)
    {
        let reason = format!(
            "it was removed while process {pid}, its guardian, looked after instances: they would run twice. That one ends when all \
             of its children have ended (`pkill -P {pid}`)"
        );
        return Err(SupervisorError::damaged(&config.directory, reason));
    }
    let directory = StateDirectory::create(&config.directory, group)?;
    if ControlClient::connect(directory.path())?.is_none() {
        let failed = SupervisorError::io(format!("reading {}", path.display()));
        let text = read_text(&path).map_err(failed)?;
        let in_force = ConfigInForce { path: path.clone(), text };
        // A full disk must not prevent a takeover with the same configuration.
        if directory.read_config_in_force().ok().flatten().as_ref() != Some(&in_force) {
            directory.write_config_in_force(&in_force)?;
        }
    }
    let deadline = Instant::now() + within;
    loop {
        let mut client = start_and_connect(&directory, roles, deadline, within)?;
        match client.request(&SupervisorRequest::Up { path: path.clone() }) {
            Ok(()) => return Ok(client),
            // The supervisor has just died; retry with its successor.
            Err(error) if !matches!(error, SupervisorError::Refused(_)) && Instant::now() < deadline => {}
            Err(error) => return Err(error),
        }
    }
}

fn start_and_connect(
    directory: &StateDirectory,
    roles: &RoleCommand,
    deadline: Instant,
    within: Duration,
) -> Result<ControlClient, SupervisorError> {
    loop {
        guardian::start_if_missing(directory, roles, deadline.saturating_duration_since(Instant::now()))?;
        if let Some(client) = ControlClient::connect_until(directory.path(), deadline)? {
            return Ok(client);
        }
        if Instant::now() >= deadline {
            return Err(ControlClient::not_started_in_time(directory.path(), within));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Starts guardian and supervisor if none run; they take over running instances with the configuration in force.
///
/// # Errors
/// The state directory cannot be opened. No supervisor starts in time.
pub fn take_over(path: &Path, roles: &RoleCommand, within: Duration) -> Result<ControlClient, SupervisorError> {
    start_and_connect(&StateDirectory::open(path)?, roles, Instant::now() + within, within)
}

/// Connects to the supervisor of a state directory, waiting for a starting one; `None` if neither it nor a guardian
/// runs.
///
/// # Errors
/// The state directory belongs to another user or cannot be read. A role runs, but no supervisor listens in time.
pub fn connect_if_any(path: &Path, within: Duration) -> Result<Option<ControlClient>, SupervisorError> {
    let directory = StateDirectory::open(path)?;
    let deadline = Instant::now() + within;
    loop {
        let connected = ControlClient::connect_until(path, deadline)?;
        if connected.is_some() {
            return Ok(connected);
        }
        // A process being killed holds its lock until its death.
        if !is_any_role_running(&directory)? {
            return Ok(None);
        }
        if Instant::now() >= deadline {
            return Err(ControlClient::not_started_in_time(path, within));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether a guardian or a supervisor runs; either starts the other.
///
/// # Errors
/// The locks cannot be read.
pub fn is_any_role_running(directory: &StateDirectory) -> Result<bool, SupervisorError> {
    for role_lock in [RoleLock::Guardian, RoleLock::Supervisor] {
        if !matches!(directory.role_holder(role_lock)?, Holder::Free { .. }) {
            return Ok(true);
        }
    }
    Ok(false)
}
