//! [`end_all`]: shuts down all instances, and then the supervisor and its guardian.

use super::client::ControlClient;
use super::protocol::{Answer, Request};
use super::starting::is_any_role_running;
use crate::error::SupervisorError;
use crate::guardian;
use crate::role::RoleCommand;
use crate::state_directory::StateDirectory;
use std::path::Path;
use std::time::{Duration, Instant};

/// Timeout of one wait for an answer.
const LOOK: Duration = Duration::from_millis(200);
/// Interval of liveness probes of the supervisor.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
const LOST_MAX: usize = 100;
/// Poll interval for the end of supervisor and guardian.
const PAUSE: Duration = Duration::from_millis(2);

/// Stops all instances of a state directory in reverse order, then supervisor and guardian, and waits for their end.
/// Returns false if none ran.
///
/// Instances may use their configured grace periods. `within` limits each answer of the supervisor, and its own end.
///
/// # Errors
/// The request is refused. The end cannot be recorded. An instance survives its kill. No supervisor starts, answers or
/// ends in time. The state directory cannot be read.
pub fn end_all(path: &Path, roles: &RoleCommand, within: Duration) -> Result<bool, SupervisorError> {
    let directory = StateDirectory::look(path)?;
    if !directory.is_own() {
        // This user is a member of a group with `steer`, and may only send the request.
        return ask(path, within).map(|()| true);
    }
    let directory = StateDirectory::open(path)?;
    // An unreadable configuration counts as present.
    let has_file = || !matches!(directory.read_config_in_force(), Ok(None));
    if !has_file() && !is_any_role_running(&directory)? {
        return Ok(false);
    }
    // Starts a supervisor for the shutdown if none runs.
    guardian::start_if_missing(&directory, roles, within)?;
    let mut lost = 0;
    while let Err(error) = ask(path, within) {
        if matches!(error, SupervisorError::Refused(_) | SupervisorError::Silent { .. }) {
            return Err(error);
        }
        if !has_file() {
            break;
        }
        // The supervisor was killed meanwhile; its successor continues.
        lost += 1;
        if lost == LOST_MAX || !is_any_role_running(&directory)? {
            return Err(error);
        }
        std::thread::sleep(PAUSE);
    }
    let deadline = Instant::now() + within;
    while is_any_role_running(&directory)? {
        if Instant::now() >= deadline {
            let reason = "all copies have ended, and it or its guardian has not".to_owned();
            return Err(SupervisorError::Supervisor { directory: path.to_owned(), reason });
        }
        std::thread::sleep(PAUSE);
    }
    Ok(true)
}

/// Requests the shutdown and waits for it while the supervisor answers probes.
fn ask(path: &Path, within: Duration) -> Result<(), SupervisorError> {
    let mut client = ControlClient::connect_within(path, within)?;
    client.ask(&Request::Down)?;
    let (mut heard, mut asked) = (Instant::now(), Instant::now());
    loop {
        if let Some(Answer::Done) = client.next(LOOK)? {
            return Ok(());
        }
        if asked.elapsed() >= ASK_INTERVAL.min(within) {
            // Probes need a connection of their own: this one is silent until the end.
            let answers = |mut other: ControlClient| other.status_within(LOOK).is_ok_and(|status| status.is_some());
            if ControlClient::connect_until(path, Instant::now() + LOOK).is_ok_and(|other| other.is_some_and(answers)) {
                heard = Instant::now();
            }
            asked = Instant::now();
        }
        if heard.elapsed() >= within {
            return Err(client.silence(&Request::Down, within));
        }
    }
}
