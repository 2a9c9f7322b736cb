//! `gapless journal verify`.

use super::place::journal_of;
use crate::commands::{Outcome, print};
use clap::Args;
use gapless_journal::{VerifyReport, verify};
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// A node's directory, or its journal's
    directory: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let report = verify(journal_of(&arguments.directory))?;
    print(&text(&report))?;
    match report.problems.as_slice() {
        [] => Ok(()),
        [first, ..] => {
            let count = report.problems.len();
            let segments = if count == 1 { "1 segment is" } else { &format!("{count} segments are") };
            Err(format!("{segments} damaged; the first damage: {first}").into())
        }
    }
}

fn text(report: &VerifyReport) -> String {
    let info = &report.info;
    let mut text = format!(
        "journal {}\nframes {} ({} bytes)\nsequences {}..={}\nsegments {}\n",
        info.directory.display(),
        report.frames,
        report.frame_bytes,
        info.first_sequence(),
        report.last_sequence,
        info.segments.len(),
    );
    for segment in &info.segments {
        text += &format!("  {segment}\n");
    }
    if report.records > 0 {
        text += &format!("records of consensus {} ({} bytes), ", report.records, report.record_bytes);
        text += &match &report.newest_checkpoint {
            Some((path, position)) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                format!("the newest checkpoint at byte {position} of {name}\n")
            }
            None => "no checkpoint\n".to_owned(),
        };
    }
    if report.bad_index_entries > 0 {
        text += &format!("note: {} entries of the index lead nowhere, which harms nothing\n", report.bad_index_entries);
    }
    if let Some(stop) = &report.stop {
        text += &format!("note: {stop}\n");
    }
    for problem in &report.problems {
        text += &format!("damage: {problem}\n");
    }
    text += if report.problems.is_empty() { "sound\n" } else { "DAMAGED\n" };
    text
}
