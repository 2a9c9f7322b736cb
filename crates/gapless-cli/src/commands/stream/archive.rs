//! `gapless stream archive`: a relay run for its journal.

use super::location::StreamLocation;
use super::relaying;
use super::text_archive::TextArchive;
use crate::commands::CommandResult;
use clap::Args;
use gapless_transport::Tier;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    location: StreamLocation,
    /// Directory for the copy
    #[arg(long, value_name = "DIRECTORY")]
    to: PathBuf,
    /// Write the stream also to this text file, one line per message
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Sync frames to the device before local nodes see them
    #[arg(long)]
    sync: bool,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let upstream = arguments.location.config()?;
    let (ours, mut options) = relaying::options(&upstream, &arguments.to, ", which keeps its journal already")?;
    options.tier = if arguments.sync { Tier::Sync } else { Tier::Journal };
    options.persistence.segment_length_bytes = ours.persistence.segment_length_bytes;
    let mut text = arguments.text.as_deref().map(TextArchive::open).transpose()?;
    relaying::run(&upstream, &options, text.as_mut())
}
