//! `gapless stream archive`: a relay that is there for its journal.

use super::location::StreamLocation;
use super::relaying;
use super::text_file::TextFile;
use crate::commands::{Outcome, Usage};
use clap::Args;
use gapless_stream::options::EventStreamOptions;
use gapless_transport::Tier;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    location: StreamLocation,
    /// The directory in which the copy is kept
    #[arg(long, value_name = "DIRECTORY")]
    to: PathBuf,
    /// Also write the stream down in this file, a readable line for each message
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Bring everything to the device before the nodes here see it
    #[arg(long)]
    sync: bool,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let upstream = arguments.location.config()?;
    if upstream.directory().is_some_and(|directory| directory == arguments.to) {
        return Err(
            Usage("--to is the directory of the stream itself, which keeps its journal already".to_owned()).into()
        );
    }
    let ours = EventStreamOptions::from_config(&upstream)?;
    let mut options = EventStreamOptions::in_directory(&arguments.to);
    options.tier = if arguments.sync { Tier::Sync } else { Tier::Journal };
    options.frame_length_max = ours.frame_length_max;
    options.message_length_max = ours.message_length_max;
    options.window_bytes = ours.window_bytes;
    options.persistence.segment_length_bytes = ours.persistence.segment_length_bytes;
    let mut text = arguments.text.as_deref().map(TextFile::open).transpose()?;
    relaying::run(&upstream, &options, text.as_mut())
}
