//! `gapless down`: ends all processes in reverse order, and then the supervisor.

use super::SupervisorPath;
use super::waiting::WaitNotice;
use crate::commands::{CommandResult, print};
use clap::Args;
use gapless_supervisor::control::end_all;
use gapless_supervisor::role::RoleCommand;
use std::path::Path;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: SupervisorPath,
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    if arguments.at.has_only_idle_directories() {
        return print("nothing runs\n");
    }
    end(&arguments.at.directory()?)
}

pub(crate) fn end(path: &Path) -> CommandResult {
    let _notice = WaitNotice::of_end(path);
    let has_run = end_all(path, &RoleCommand::default(), super::RESTART_TIMEOUT)?;
    print(if has_run { "all has ended\n" } else { "nothing runs\n" })
}
