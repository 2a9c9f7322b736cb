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
/// Between two looks whether the last two have ended.
const PAUSE: Duration = Duration::from_millis(2);

/// Has all copies of a state directory ended, in reverse order, and guardian and supervisor behind them; waits for it. False if
/// nothing ran. Copies may take the time that their file gives them; `within` is that of a supervisor to answer, and to end.
///
/// # Errors
/// It is refused; none starts, or stays, within this time; the state directory cannot be read.
pub fn end_all(path: &Path, roles: &RoleCommand, within: Duration) -> Result<bool, SupervisorError> {
    let directory = StateDirectory::look(path)?;
    if !directory.is_own() {
        // Of a group that may steer: it can only ask.
        return ask(ControlClient::connect_within(path, within)?).map(|()| true);
    }
    let directory = StateDirectory::open(path)?;
    if directory.read_config_in_force()?.is_none() && !is_any_role_running(&directory)? {
        return Ok(false);
    }
    // Without a supervisor, one is started that ends the copies.
    guardian::start_if_missing(&directory, roles, within)?;
    while let Err(error) = ask(ControlClient::connect_within(path, within)?) {
        if matches!(error, SupervisorError::Refused(_)) {
            return Err(error);
        }
        if directory.read_config_in_force()?.is_none() {
            break;
        }
        // It was killed meanwhile; the next one goes on.
        if !is_any_role_running(&directory)? {
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

fn ask(mut client: ControlClient) -> Result<(), SupervisorError> {
    client.ask(&Request::Down)?;
    loop {
        if let Some(Answer::Done) = client.next(LOOK)? {
            return Ok(());
        }
    }
}
