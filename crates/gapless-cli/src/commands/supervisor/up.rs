//! `gapless up`: starts the processes of a file in its order, and supervises them from then on.

use super::progress::ProgressPrinter;
use super::{RESTART_TIMEOUT, foreground, load};
use crate::commands::{CommandResult, interrupt};
use clap::Args;
use gapless_supervisor::control::take_charge;
use gapless_supervisor::role::RoleCommand;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Supervisor file that names the processes
    file: PathBuf,

    /// Run in the foreground, for systemd and containers: SIGTERM or Ctrl-C ends everything, SIGHUP reloads the file
    #[arg(long)]
    foreground: bool,

    /// Seconds to wait for readiness; then unready instances are listed, and the supervisor continues
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    within: u32,
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    if arguments.foreground {
        return foreground::run(&arguments.file, Duration::from_secs(arguments.within.into()));
    }
    let config = load(&arguments.file)?;
    let interrupted = interrupt()?;
    let mut client = take_charge(&arguments.file, &config, &RoleCommand::default(), RESTART_TIMEOUT)?;
    ProgressPrinter::default().follow(&mut client, &config.directory, arguments.within, &interrupted)
}
