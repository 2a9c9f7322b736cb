//! `gapless journal skip`.

use super::directory::layout_of;
use crate::commands::{CommandResult, print};
use clap::Args;
use gapless_client::stream_layout::StreamLayout;
use gapless_engine::skips::{self, SkippedCommand};
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a service
    directory: PathBuf,
    /// Sequence of the command or timer, as named by the failed start
    #[arg(value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    sequence: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let layout = layout_of(&arguments.directory).unwrap_or_else(|| StreamLayout::new(&arguments.directory));
    let SkippedCommand { sequence, mark, is_repeated } = skips::skip(layout.root(), arguments.sequence)?;
    let directory = layout.root().display().to_string();
    if arguments.json {
        let object = json!({ "directory": directory, "sequence": sequence, "mark": mark, "repeated": is_repeated });
        return print(&format!("{object}\n"));
    }
    let said = if is_repeated { "was skipped already" } else { "is skipped from the next start on" };
    print(&format!("sequence {sequence} of {directory} {said}; the stream says so at sequence {mark}\n"))
}
