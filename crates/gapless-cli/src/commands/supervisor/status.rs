//! `status`: instances as reported by the supervisor, or else by its files.

use gapless_supervisor::SupervisorError;
use gapless_supervisor::control::{ControlClient, SupervisionStatus, connect_if_any, status_of_files};
use gapless_supervisor::state_directory::{Holder, LockRecord, RoleLock, StateDirectory};
use rustix::io::Errno;
use std::path::Path;
use std::time::{Duration, Instant};

/// A healthy supervisor answers before, even while restarting.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// Reads the files if the supervisor is missing or does not answer.
pub(super) fn status(path: &Path) -> Result<SupervisionStatus, Box<dyn std::error::Error>> {
    let directory = StateDirectory::open_to_read(path)?;
    if !directory.is_own() {
        // Members of a group see no files, and cannot see whether a supervisor is starting.
        let ask = || ControlClient::connect_within(path, ANSWER_TIMEOUT)?.status();
        // The supervisor may just have been killed.
        return Ok(ask().or_else(|error| if is_silence(&error) { ask() } else { Err(error) })?);
    }
    let deadline = Instant::now() + ANSWER_TIMEOUT;
    let left = || deadline.saturating_duration_since(Instant::now());
    loop {
        let connected = connect_if_any(path, left());
        match connected.and_then(|client| client.map(|mut client| client.status_within(left())).transpose()) {
            Ok(None) => return Ok(status_of_files(&directory)?),
            Ok(Some(Some(status))) => return Ok(status),
            Err(error) if is_silence(&error) && !left().is_zero() => std::thread::sleep(PAUSE),
            Ok(Some(None)) => return without_answer(&directory),
            Err(error) if is_silence(&error) => return without_answer(&directory),
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_silence(error: &SupervisorError) -> bool {
    matches!(error, SupervisorError::Supervisor { .. } | SupervisorError::Silent { .. })
        || error.errno() == Some(Errno::AGAIN)
}

fn without_answer(directory: &StateDirectory) -> Result<SupervisionStatus, Box<dyn std::error::Error>> {
    let mut status = status_of_files(directory)?;
    let record = supervisor_record(directory.path());
    status.supervisor.supervisor_process_id = record.as_ref().map(|record| record.process.process_id);
    status.supervisor.process_namespace = record.map(|record| record.process.namespace).filter(|number| *number != 0);
    let supervisor_name = supervisor(directory.path());
    let problem =
        format!("{supervisor_name} does not answer within {} s; this is what its files say", ANSWER_TIMEOUT.as_secs());
    status.supervisor.problem = Some(problem);
    Ok(status)
}

pub(super) fn supervisor(directory: &Path) -> String {
    match supervisor_record(directory).map(|record| record.process) {
        Some(process) if process.is_of_this_namespace() => format!("the supervisor (process {})", process.process_id),
        Some(process) => format!("the supervisor (process {} of another process namespace)", process.process_id),
        None => "a supervisor".to_owned(),
    }
}

fn supervisor_record(directory: &Path) -> Option<LockRecord> {
    match StateDirectory::open(directory).ok()?.role_holder(RoleLock::Supervisor).ok()? {
        Holder::Recorded { record, .. } => Some(record),
        Holder::Hidden { record } => record,
        _ => None,
    }
}
