//! [`take_charge`]: a file is put in force, and what it names is supervised; [`connect_if_any`]: to whoever supervises it.

use super::client::ControlClient;
use super::protocol::Request;
use crate::config::SupervisorConfig;
use crate::error::{SupervisorError, check_proc};
use crate::guardian;
use crate::role::RoleCommand;
use crate::state_directory::{ConfigInForce, Holder, RoleLock, StateDirectory};
use gapless_agent::regular_file::read_text;
use std::path::Path;
use std::time::{Duration, Instant};

/// Between two looks whether anybody is there.
const PAUSE: Duration = Duration::from_millis(10);

/// Puts a file in force that was read from `path` as `config`. Starts a guardian, and it a supervisor, where there is none;
/// they take over what runs. Then all that the file names runs or is being started, and this says to whom to listen.
///
/// # Errors
/// The state directory cannot be made; none starts within this time; the supervisor refuses the file.
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
        && let Some(pid) = guardian::find_lost(&config.directory)
    {
        let reason = format!(
            "it was removed while process {pid}, its guardian, looked after copies: they would run twice. That one ends when all \
             of its children have ended (`pkill -P {pid}`)"
        );
        return Err(SupervisorError::damaged(&config.directory, reason));
    }
    let directory = StateDirectory::create(&config.directory, group)?;
    // A supervisor that is there reads it itself; one that is not begins with it.
    if ControlClient::connect(directory.path())?.is_none() {
        let failed = SupervisorError::io(format!("reading {}", path.display()));
        let text = read_text(&path).map_err(failed)?;
        let in_force = ConfigInForce { path: path.clone(), text };
        // A full disk keeps nobody from taking over with the file of before.
        if directory.read_config_in_force().ok().flatten().as_ref() != Some(&in_force) {
            directory.write_config_in_force(&in_force)?;
        }
    }
    let deadline = Instant::now() + within;
    loop {
        let mut client = start_and_connect(&directory, roles, deadline, within)?;
        match client.request(&Request::Up { path: path.clone() }) {
            Ok(()) => return Ok(client),
            // It has died just now; another one follows.
            Err(error) if !matches!(error, SupervisorError::Refused(_)) && Instant::now() < deadline => {}
            Err(error) => return Err(error),
        }
    }
}

/// A connection to the supervisor, of whom one is started if need be, also if the last one and its guardian die only now.
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
            return Err(ControlClient::none_has_come(directory.path(), within));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Starts a guardian, and it a supervisor, where there is none; they take over what runs, with the file that is in force.
///
/// # Errors
/// The state directory cannot be opened; none starts within this time.
pub fn take_over(path: &Path, roles: &RoleCommand, within: Duration) -> Result<ControlClient, SupervisorError> {
    start_and_connect(&StateDirectory::open(path)?, roles, Instant::now() + within, within)
}

/// A connection to the supervisor of a state directory, also to one that is being started; `None` as soon as neither it nor a
/// guardian runs, which would start one.
///
/// # Errors
/// The state directory is not that of this user, or cannot be read; somebody runs, and no supervisor listens within this time.
pub fn connect_if_any(path: &Path, within: Duration) -> Result<Option<ControlClient>, SupervisorError> {
    let directory = StateDirectory::open(path)?;
    let deadline = Instant::now() + within;
    loop {
        let connected = ControlClient::connect_until(path, deadline)?;
        if connected.is_some() {
            return Ok(connected);
        }
        // Again each time: what is just being killed holds its lock until it is dead.
        if !is_any_role_running(&directory)? {
            return Ok(None);
        }
        if Instant::now() >= deadline {
            return Err(ControlClient::none_has_come(path, within));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether a guardian or a supervisor runs, which then starts what is missing.
///
/// # Errors
/// The locks cannot be read.
pub fn is_any_role_running(directory: &StateDirectory) -> Result<bool, SupervisorError> {
    for role_lock in [RoleLock::Guardian, RoleLock::Supervisor] {
        if !matches!(directory.role_holder(role_lock)?, Holder::Nobody { .. }) {
            return Ok(true);
        }
    }
    Ok(false)
}
