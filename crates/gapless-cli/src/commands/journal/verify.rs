//! `gapless journal verify`.

use super::directory::{journal_of, layout_of};
use crate::commands::{CommandResult, ExitError, print};
use clap::Args;
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::ClusterError;
use gapless_cluster::member::member_check::check_member_files;
use gapless_cqrs::{BaseFileError, DeletedEvents, DerivedFiles, EventDirectory};
use gapless_engine::directory_consistency::{self, DirectoryReport};
use gapless_journal::inspect::VerifyVerdict;
use gapless_journal::{VerifyReport, verify};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Exit code if intact frames were found after the end of the journal.
const FRAMES_BEYOND_END: u8 = 3;
/// Exit code if nothing proves that the journal was not longer.
const NOTHING_VOUCHES: u8 = 4;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a service, a stream or a member, or of a journal
    directory: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let journal = journal_of(&arguments.directory);
    let derived = layout_of(&arguments.directory).map(|layout| inspect_derived_files(layout.root()));
    let derived = derived.transpose()?.flatten();
    let deleted = layout_of(&arguments.directory).map_or(Ok(None), |layout| DeletedEvents::check(layout.root()));
    let report = match layout_of(&arguments.directory) {
        Some(layout) => directory_consistency::verify(&layout)?,
        None => DirectoryReport { journal: verify(&journal)?, files: Vec::new(), skips: Vec::new(), foreign: None },
    };
    // A journal named by itself may be a copy.
    let is_whole_directory = journal != arguments.directory;
    let of_member = layout_of(&arguments.directory).filter(|_| is_whole_directory);
    let of_member = of_member.map_or_else(Vec::new, |layout| member_errors(&layout));
    let (foreign, of_member): (Vec<_>, Vec<_>) =
        of_member.into_iter().partition(|error| matches!(error, ClusterError::EarlierFormat { .. }));
    let foreign = report.foreign.clone().or_else(|| foreign.first().map(ToString::to_string));
    let of_member = of_member.iter().map(ToString::to_string);
    let problems: Vec<String> = report.journal.problems.iter().map(ToString::to_string).chain(of_member).collect();
    let is_damaged = problems.len() > report.journal.problems.len() || deleted.is_err();
    let verdict = if is_damaged { VerifyVerdict::Damaged } else { report.verdict() };
    let seen = VerifyResult { report: &report, verdict, foreign: foreign.as_deref(), problems: &problems };
    if arguments.json {
        let object = object(&seen, derived.as_ref(), &deleted);
        print(&format!("{}\n", serde_json::to_string_pretty(&object)?))?;
    } else {
        print(&text(&seen, derived.as_ref(), &deleted))?;
    }
    if let Some(foreign) = foreign.filter(|_| verdict != VerifyVerdict::Damaged) {
        return Err(foreign.into());
    }
    let damages = report.files.iter().filter_map(|file| {
        let reason = file.damage.as_ref()?;
        Some(format!("{}: {reason}", file.path.display()))
    });
    let base = deleted.as_ref().err().map(ToString::to_string);
    let found: Vec<String> = problems.into_iter().chain(damages).chain(base).collect();
    match verdict {
        VerifyVerdict::Whole => Ok(()),
        VerifyVerdict::Damaged => {
            let count = if found.len() == 1 { "1 damage".to_owned() } else { format!("{} damages", found.len()) };
            Err(format!("{count}; the first: {}", found.first().map_or("", String::as_str)).into())
        }
        VerifyVerdict::FramesBeyondEnd => Err(Box::new(ExitError {
            code: FRAMES_BEYOND_END,
            reason: format!(
                "{} intact frames stand behind the end of the journal, where {}; a start cuts them, and keeps their bytes",
                report.journal.intact_after_end,
                report.journal.stop.as_ref().map_or_else(|| "something is damaged".to_owned(), ToString::to_string),
            ),
        })),
        VerifyVerdict::NothingVouchesForEnd => Err(Box::new(ExitError {
            code: NOTHING_VOUCHES,
            reason: format!(
                "what there is is whole, but the machine has started again since, and nothing vouches for what followed \
                 sequence {}: frames behind it may be lost",
                report.journal.vouched_sequence
            ),
        })),
    }
}

fn member_errors(layout: &StreamLayout) -> Vec<ClusterError> {
    if directory_consistency::is_member(layout) { check_member_files(layout.root()) } else { Vec::new() }
}

#[derive(Clone, Copy)]
struct VerifyResult<'a> {
    report: &'a DirectoryReport,
    verdict: VerifyVerdict,
    /// Refusal without damage: another format.
    foreign: Option<&'a str>,
    problems: &'a [String],
}

const fn word(seen: &VerifyResult<'_>) -> &'static str {
    match seen.verdict {
        VerifyVerdict::Damaged => "damaged",
        _ if seen.foreign.is_some() => "another format",
        VerifyVerdict::Whole => "whole",
        VerifyVerdict::FramesBeyondEnd => "frames beyond the end",
        VerifyVerdict::NothingVouchesForEnd => "nothing vouches for the end",
    }
}

type DeletedRecord = Result<Option<DeletedEvents>, BaseFileError>;

/// Damage of a command bus's files is reported as the journal's.
fn inspect_derived_files(directory: &Path) -> Result<Option<DerivedFiles>, Box<dyn std::error::Error>> {
    if !DerivedFiles::exist(directory) {
        return Ok(None);
    }
    match EventDirectory::open(directory) {
        Ok(directory) => Ok(DerivedFiles::read(&directory)?),
        Err(_) => Ok(None),
    }
}

fn derived_text(derived: &DerivedFiles) -> String {
    let DerivedFiles { index_files, positions, last_sequence, unusable, states } = derived;
    let index = match index_files {
        0 => "no file that can be used; a host writes them as its index grows, and when it stops".to_owned(),
        _ => format!("{index_files} files with {positions} positions, up to sequence {last_sequence}"),
    };
    let mut text = format!("index of events: {index}; states of aggregates: {states}\n");
    for (path, reason) in unusable {
        text += &format!("note: {} is made anew by the next host, {reason}\n", path.display());
    }
    text
}

fn text(seen: &VerifyResult<'_>, derived: Option<&DerivedFiles>, deleted: &DeletedRecord) -> String {
    let VerifyResult { report, verdict, foreign, problems } = *seen;
    let mut text = journal_text(&report.journal);
    text += &derived.map(derived_text).unwrap_or_default();
    text += &match deleted {
        Ok(None) => String::new(),
        Ok(Some(DeletedEvents { before, aggregates, file, .. })) => {
            let file = file.display();
            format!("{file}: the states of {aggregates} aggregates, for deleted events before {before}, whole\n")
        }
        Err(error) => format!("{}: DAMAGED, {}\n", error.path.display(), error.reason),
    };
    for (sequence, mark) in &report.skips {
        text += &format!("sequence {sequence} is skipped, as the stream says at {mark}\n");
    }
    for file in &report.files {
        let state = file.damage.as_deref().map_or_else(|| "whole".to_owned(), |reason| format!("DAMAGED, {reason}"));
        text += &format!("{}: to sequence {}, {state}\n", file.path.display(), file.sequence);
    }
    for problem in problems {
        text += &format!("damage: {problem}\n");
    }
    if let Some(foreign) = foreign {
        text += &format!("note: {foreign}\n");
    }
    text += &if verdict == VerifyVerdict::Damaged { "DAMAGED\n".to_owned() } else { format!("{}\n", word(seen)) };
    text
}

fn journal_text(report: &VerifyReport) -> String {
    let info = &report.info;
    let mut text = format!(
        "journal {}\nframes {} ({} bytes)\nsequences {}..={}, vouched for up to {}\nsegments {}\n",
        info.directory.display(),
        report.frames,
        report.frame_bytes,
        info.first_sequence(),
        report.last_sequence,
        report.vouched_sequence,
        info.segments.len(),
    );
    for segment in &info.segments {
        text += &format!("  {segment}\n");
    }
    for (cut, bytes) in &info.removed_tail_files {
        text += &format!("  {}: was cut, {bytes} bytes\n", cut.display());
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
    text
}

fn derived_object(derived: &DerivedFiles) -> Value {
    let unusable: Vec<Value> = derived
        .unusable
        .iter()
        .map(|(path, reason)| json!({ "path": path.display().to_string(), "reason": reason }))
        .collect();
    json!({
        "files": derived.index_files,
        "positions": derived.positions,
        "last_sequence": derived.last_sequence,
        "unusable": unusable,
        "states": derived.states,
    })
}

fn object(seen: &VerifyResult<'_>, derived: Option<&DerivedFiles>, deleted: &DeletedRecord) -> Value {
    let VerifyResult { report, foreign, problems, .. } = *seen;
    let deleted = match deleted {
        Ok(deleted) => deleted.as_ref().map(|deleted| {
            let file = deleted.file.display().to_string();
            json!({ "path": file, "before": deleted.before, "aggregates": deleted.aggregates, "damage": null })
        }),
        Err(error) => Some(json!({ "path": error.path.display().to_string(), "damage": error.reason })),
    };
    let (journal, info) = (&report.journal, &report.journal.info);
    let files: Vec<Value> = report
        .files
        .iter()
        .map(
            |file| json!({ "path": file.path.display().to_string(), "sequence": file.sequence, "damage": file.damage }),
        )
        .collect();
    let skipped: Vec<Value> =
        report.skips.iter().map(|(sequence, mark)| json!({ "sequence": sequence, "mark": mark })).collect();
    let cuts: Vec<Value> = info
        .removed_tail_files
        .iter()
        .map(|(path, bytes)| json!({ "path": path.display().to_string(), "bytes": bytes }))
        .collect();
    json!({
        "verdict": word(seen),
        "refused": foreign,
        "directory": info.directory.display().to_string(),
        "first_sequence": info.first_sequence(),
        "last_sequence": journal.last_sequence,
        "vouched_sequence": journal.vouched_sequence,
        "frames": journal.frames,
        "frame_bytes": journal.frame_bytes,
        "records": journal.records,
        "segments": info.segments.len(),
        "intact_beyond": journal.intact_after_end,
        "stop": journal.stop.as_ref().map(ToString::to_string),
        "problems": problems,
        "skipped": skipped,
        "files": files,
        "index": derived.map(derived_object),
        "deleted": deleted,
        "cuts": cuts,
        "same_boot": info.is_same_boot,
    })
}
