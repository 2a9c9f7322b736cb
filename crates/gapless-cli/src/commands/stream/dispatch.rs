//! `gapless stream dispatch`.

use super::location::StreamLocation;
use super::relaying;
use crate::commands::{Outcome, Usage};
use clap::Args;
use gapless_stream::options::EventStreamOptions;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    location: StreamLocation,
    /// The directory in which nodes of this machine find the stream
    #[arg(long, value_name = "DIRECTORY")]
    to: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let upstream = arguments.location.config()?;
    if upstream.directory().is_some_and(|directory| directory == arguments.to) {
        return Err(Usage("--to is the directory of the stream itself; its nodes need no dispatcher".to_owned()).into());
    }
    let ours = EventStreamOptions::from_config(&upstream)?;
    let mut options = EventStreamOptions::in_directory(&arguments.to);
    // The same limits as the stream's, and its nodes' throttle: to the sequencer all nodes here are one.
    options.frame_length_max = ours.frame_length_max;
    options.message_length_max = ours.message_length_max;
    options.window_bytes = ours.window_bytes;
    options.persistence = ours.persistence;
    options.throttle = ours.throttle;
    relaying::run(&upstream, &options, None)
}
