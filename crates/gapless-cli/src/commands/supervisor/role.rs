//! `gapless supervise`: the internal roles guardian, supervisor and launcher, started only by the program itself.

use crate::commands::{CommandResult, ExitError};
use gapless_supervisor::role::{ProcessRole, RoleCommand, RoleOutcome};
use gapless_supervisor::{driver, guardian, launch};
use std::ffi::OsString;
use std::process::ExitCode;

/// Exit code; not an error.
const ALREADY_RUNNING: u8 = 75;

pub(crate) const COMMAND: &str = "supervise";

pub(crate) fn run(arguments: &[OsString]) -> CommandResult {
    let Some(role) = ProcessRole::from_arguments(arguments) else {
        return Err(Box::new(crate::commands::UsageError("only the program itself starts its roles".to_owned())));
    };
    let roles = RoleCommand::default();
    let is_another = match role {
        ProcessRole::StartGuardian { directory } => {
            guardian::start_detached(&directory, &roles)?;
            false
        }
        ProcessRole::Guardian { directory } => guardian::run(&directory, &roles)? == RoleOutcome::AlreadyRunning,
        ProcessRole::Supervisor { directory } => driver::run(&directory, &roles)? == RoleOutcome::AlreadyRunning,
        ProcessRole::Launch { directory, instance, incarnation } => {
            let code = launch::run(&directory, &instance, incarnation);
            let already = ExitCode::from(launch::STATUS_ALREADY);
            let code = if code == already { launch::STATUS_ALREADY } else { launch::STATUS_FAILED };
            return Err(Box::new(ExitError { code, reason: format!("{instance} was not started") }));
        }
    };
    if is_another {
        return Err(Box::new(ExitError { code: ALREADY_RUNNING, reason: "another one runs".to_owned() }));
    }
    Ok(())
}
