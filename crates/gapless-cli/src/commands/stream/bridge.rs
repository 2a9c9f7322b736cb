//! `gapless stream bridge`.

use super::location::StreamLocation;
use super::relaying;
use crate::commands::{CommandResult, UsageError};
use clap::Args;
use gapless_client::StreamConfig;
use gapless_stream::options::EventStreamOptions;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    location: StreamLocation,
    /// Configuration file for nodes of the other network: directory, transport and addresses
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let upstream = arguments.location.config()?;
    let options = EventStreamOptions::from_config(&StreamConfig::load(&arguments.to)?)?;
    if upstream.directory().is_some() && upstream.directory() == options.directory.as_deref() {
        return Err(UsageError("both files name the same directory; a bridge needs one of its own".to_owned()).into());
    }
    relaying::run(&upstream, &options, None)
}
