//! `end_all`: shuts down all instances, and then the supervisor and its guardian.

use super::client::ControlClient;
use super::protocol::{SupervisorAnswer, SupervisorRequest};
use super::startup::is_any_role_running;
use crate::error::SupervisorError;
use crate::guardian;
use crate::role::RoleCommand;
use crate::state_directory::StateDirectory;
use std::path::Path;
use std::time::{Duration, Instant};

const POLL_TIMEOUT: Duration = Duration::from_millis(200);
const ASK_INTERVAL: Duration = Duration::from_secs(1);
const LOST_MAX: usize = 100;
const PAUSE: Duration = Duration::from_millis(2);

/// Stops all instances of a state directory in reverse order, then supervisor and guardian, and waits for their end;
/// false if none ran. Instances have their configured grace periods. `within` limits each answer of the supervisor, and
/// its own end.
///
/// # Errors
/// The request is refused. The end cannot be recorded. An instance survives its kill. No supervisor starts, answers or
/// ends in time. The state directory cannot be read.
pub fn end_all(path: &Path, roles: &RoleCommand, within: Duration) -> Result<bool, SupervisorError> {
    let directory = StateDirectory::open_to_read(path)?;
    if !directory.is_own() {
        // A member of a group with `steer` may only send the request.
        return ask(path, within).map(|()| true);
    }
    let directory = StateDirectory::open(path)?;
    // An unreadable configuration counts as present.
    let has_file = || !matches!(directory.read_config_in_force(), Ok(None));
    if !has_file() && !is_any_role_running(&directory)? {
        return Ok(false);
    }
    guardian::start_if_missing(&directory, roles, within)?;
    let mut lost = 0;
    while let Err(error) = ask(path, within) {
        if matches!(error, SupervisorError::Refused(_) | SupervisorError::Silent { .. }) {
            return Err(error);
        }
        if !has_file() {
            break;
        }
        lost += 1;
        if lost == LOST_MAX || !is_any_role_running(&directory)? {
            return Err(error);
        }
        std::thread::sleep(PAUSE);
    }
    let deadline = Instant::now() + within;
    while is_any_role_running(&directory)? {
        if Instant::now() >= deadline {
            let reason = "all instances have ended, and it or its guardian has not".to_owned();
            return Err(SupervisorError::Supervisor { directory: path.to_owned(), reason });
        }
        std::thread::sleep(PAUSE);
    }
    Ok(true)
}

fn ask(path: &Path, within: Duration) -> Result<(), SupervisorError> {
    let mut client = ControlClient::connect_within(path, within)?;
    client.ask(&SupervisorRequest::Down)?;
    let (mut answered_at, mut probed_at) = (Instant::now(), Instant::now());
    loop {
        if let Some(SupervisorAnswer::Done) = client.next(POLL_TIMEOUT)? {
            return Ok(());
        }
        if probed_at.elapsed() >= ASK_INTERVAL.min(within) {
            // Probes need a connection of their own: this one is silent until the end.
            let answers =
                |mut other: ControlClient| other.status_within(POLL_TIMEOUT).is_ok_and(|status| status.is_some());
            if ControlClient::connect_until(path, Instant::now() + POLL_TIMEOUT)
                .is_ok_and(|other| other.is_some_and(answers))
            {
                answered_at = Instant::now();
            }
            probed_at = Instant::now();
        }
        if answered_at.elapsed() >= within {
            return Err(client.silence(&SupervisorRequest::Down, within));
        }
    }
}
