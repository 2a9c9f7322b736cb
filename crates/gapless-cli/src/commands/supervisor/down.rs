//! `gapless down`: ends all processes in reverse order, and then the supervisor.

use super::At;
use super::waiting::WaitNotice;
use crate::commands::{Outcome, print};
use clap::Args;
use gapless_supervisor::control::end_all;
use gapless_supervisor::role::RoleCommand;
use std::path::Path;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: At,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.at.is_any_of_several_at_rest() {
        return print("nothing runs\n");
    }
    end(&arguments.at.directory()?)
}

/// Ends all processes of a state directory, and waits for it.
pub(crate) fn end(path: &Path) -> Outcome {
    let _notice = WaitNotice::of_end(path);
    let has_run = end_all(path, &RoleCommand::default(), super::THERE_WITHIN)?;
    print(if has_run { "all has ended\n" } else { "nothing runs\n" })
}
