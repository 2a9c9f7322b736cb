//! [`end_all`]: everything is ended, and the supervisor behind it.

use super::client::ControlClient;
use super::protocol::{Answer, Request};
use super::starting::is_any_role_running;
use crate::error::SupervisorError;
use crate::guardian;
use crate::role::RoleCommand;
use crate::state_directory::StateDirectory;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long one look waits.
const LOOK: Duration = Duration::from_millis(200);
/// Between two questions whether the supervisor still answers.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// Supervisors that are lost one after the other before everything has ended.
const LOST_MAX: usize = 100;
/// Between two looks whether the last two have ended.
const PAUSE: Duration = Duration::from_millis(2);

/// Has all copies of a state directory ended, in reverse order, and guardian and supervisor behind them; waits for it. False if
/// nothing ran. Copies may take the time that their file gives them; `within` is that of a supervisor to answer, and to end.
///
/// # Errors
/// It is refused; all has ended and that cannot be written down; a copy does not end though it was killed; no supervisor starts,
/// answers, or ends within this time; the state directory cannot be read.
pub fn end_all(path: &Path, roles: &RoleCommand, within: Duration) -> Result<bool, SupervisorError> {
    let directory = StateDirectory::look(path)?;
    if !directory.is_own() {
        // Of a group that may steer: it can only ask.
        return ask(path, within).map(|()| true);
    }
    let directory = StateDirectory::open(path)?;
    // One that cannot be read is one.
    let has_file = || !matches!(directory.read_config_in_force(), Ok(None));
    if !has_file() && !is_any_role_running(&directory)? {
        return Ok(false);
    }
    // Without a supervisor, one is started that ends the copies.
    guardian::start_if_missing(&directory, roles, within)?;
    let mut lost = 0;
    while let Err(error) = ask(path, within) {
        if matches!(error, SupervisorError::Refused(_) | SupervisorError::Silent { .. }) {
            return Err(error);
        }
        if !has_file() {
            break;
        }
        // It was killed meanwhile; the next one goes on.
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

/// Asks a supervisor to end everything, and waits for that as long as it answers others.
fn ask(path: &Path, within: Duration) -> Result<(), SupervisorError> {
    let mut client = ControlClient::connect_within(path, within)?;
    client.ask(&Request::Down)?;
    let (mut heard, mut asked) = (Instant::now(), Instant::now());
    loop {
        if let Some(Answer::Done) = client.next(LOOK)? {
            return Ok(());
        }
        if asked.elapsed() >= ASK_INTERVAL.min(within) {
            // This connection is silent until the end.
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
