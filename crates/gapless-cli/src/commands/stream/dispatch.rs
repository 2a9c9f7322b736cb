//! `gapless stream dispatch`.

use super::location::StreamLocation;
use super::relaying;
use crate::commands::CommandResult;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    location: StreamLocation,
    /// Directory of the stream for nodes of this machine
    #[arg(long, value_name = "DIRECTORY")]
    to: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let upstream = arguments.location.config()?;
    let (ours, mut options) = relaying::options(&upstream, &arguments.to, "; its nodes need no dispatcher")?;
    options.persistence = ours.persistence;
    // All nodes here are one to the sequencer.
    options.throttle = ours.throttle;
    relaying::run(&upstream, &options, None)
}
