//! `gapless events archive`.

use crate::commands::{CommandResult, print};
use clap::Args;
use gapless_cqrs::EventDirectory;
use gapless_journal::{ArchiveFormat, ArchiveOptions, ArchivedSegment};
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a command bus, or of a member that runs one
    directory: PathBuf,
    /// Directory for the segments; created if missing
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Compress the segments
    #[arg(long)]
    compress: bool,
    /// Archive only segments that end before this sequence
    #[arg(long, value_name = "SEQUENCE")]
    before: Option<u64>,
    /// Print one JSON object per line, one for each segment
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let directory = EventDirectory::open(&arguments.directory)?;
    let form = if arguments.compress { ArchiveFormat::Lz4 } else { ArchiveFormat::Plain };
    let options = ArchiveOptions { place: arguments.to.clone(), form, before_sequence: arguments.before };
    let mut printed = Ok(());
    let (report, may_go) = directory.archive(options, |segment| {
        if printed.is_ok() {
            printed = print(&line(segment, arguments.json));
        }
    })?;
    printed?;
    if arguments.json {
        return Ok(());
    }
    let count = report.archived.len();
    let mut text = format!("archived {count} segments\n");
    if let Some((path, reason)) = report.not_archived {
        text += &format!("{} stays: {reason}\n", path.display());
        text += &format!("index and snapshots on disk reach to sequence {may_go}: what is behind it stays, too\n");
    }
    print(&text)
}

fn line(segment: &ArchivedSegment, is_json: bool) -> String {
    let ArchivedSegment { first_sequence, last_sequence, path, stored_bytes, segment_bytes } = segment;
    let path = path.display().to_string();
    match is_json {
        true => format!(
            "{}\n",
            json!({
                "path": path,
                "first_sequence": first_sequence,
                "last_sequence": last_sequence,
                "stored_bytes": stored_bytes,
                "segment_bytes": segment_bytes,
            })
        ),
        false => format!(
            "{path}: sequences {first_sequence}..={last_sequence}, {stored_bytes} bytes, before {segment_bytes}\n"
        ),
    }
}
