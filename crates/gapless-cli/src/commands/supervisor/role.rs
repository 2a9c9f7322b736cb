//! `gapless supervise`: the internal roles guardian, supervisor and launcher, started only by the program itself.

use crate::commands::{Ended, Outcome};
use gapless_supervisor::role::{Outcome as Ending, Role, RoleCommand};
use gapless_supervisor::{driver, guardian, launch};
use std::ffi::OsString;
use std::process::ExitCode;

/// Exit code if the role is taken, which is fine.
const ANOTHER_IS_THERE: u8 = 75;

pub(crate) const COMMAND: &str = "supervise";

pub(crate) fn run(arguments: &[OsString]) -> Outcome {
    let Some(role) = Role::from_arguments(arguments) else {
        return Err(Box::new(crate::commands::Usage("only the program itself starts its roles".to_owned())));
    };
    let roles = RoleCommand::default();
    let is_another = match role {
        Role::StartGuardian { directory } => {
            guardian::start_detached(&directory, &roles)?;
            false
        }
        Role::Guardian { directory } => guardian::run(&directory, &roles)? == Ending::AnotherIsThere,
        Role::Supervisor { directory } => driver::run(&directory, &roles)? == Ending::AnotherIsThere,
        Role::Launch { directory, copy, incarnation } => {
            let code = launch::run(&directory, &copy, incarnation);
            let already = ExitCode::from(launch::STATUS_ALREADY);
            let code = if code == already { launch::STATUS_ALREADY } else { launch::STATUS_FAILED };
            return Err(Box::new(Ended { code, reason: format!("{copy} was not started") }));
        }
    };
    if is_another {
        return Err(Box::new(Ended { code: ANOTHER_IS_THERE, reason: "another one runs".to_owned() }));
    }
    Ok(())
}
