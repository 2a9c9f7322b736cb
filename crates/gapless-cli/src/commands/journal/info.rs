//! `gapless journal info`.

use super::directory::{journal_of, snapshot_sequences};
use crate::commands::{CommandResult, print};
use clap::Args;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{JournalInfo, JournalReader, info};
use gapless_stream::StreamError;
use gapless_stream::directory_record::DirectoryRecord;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a service, a stream or a member, or of its journal
    directory: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let directory = journal_of(&arguments.directory);
    let info = info(&directory)?;
    let root = directory.parent().unwrap_or(&directory);
    let found = JournalSummary {
        snapshots: snapshot_sequences(&arguments.directory)?,
        holder: gapless_journal::lock_holder(&directory)?,
        record: DirectoryRecord::read(&StreamLayout::new(root)),
        info,
    };
    if arguments.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&found.object())?))?;
    } else {
        print(&found.text())?;
    }
    JournalReader::open_complete(directory)?;
    Ok(())
}

struct JournalSummary {
    info: JournalInfo,
    snapshots: Vec<u64>,
    holder: Option<String>,
    record: Result<Option<DirectoryRecord>, StreamError>,
}

impl JournalSummary {
    fn text(&self) -> String {
        let info = &self.info;
        let snapshots: Vec<String> = self.snapshots.iter().map(u64::to_string).collect();
        let mut text = format!("journal {}\n", info.directory.display());
        match &self.record {
            Ok(Some(DirectoryRecord { kind, format, program })) => {
                text += &format!("directory of a {kind}, format {format}, last written by {program}\n");
            }
            Ok(None) => {}
            Err(error) => text += &format!("{error}\n"),
        }
        text += &format!("stream {:032x}, incarnation {:016x}\n", info.stream_id, info.incarnation);
        text += &format!("sequences {}..={}\n", info.first_sequence(), info.journaled_sequence());
        text += &format!("journaled mark {}, synced mark {}\n", info.journaled_sequence(), info.synced_sequence());
        let (name, sequence) = &info.good_mark;
        let boot = if info.is_same_boot { "on this boot of this machine" } else { "on another boot" };
        text += &format!("last written {boot}; the {name} mark counts, and vouches for sequences to {sequence}\n");
        text += &format!("longest frame {} bytes\n", info.frame_length_max);
        text += &format!("snapshots {}\n", if snapshots.is_empty() { "none".to_owned() } else { snapshots.join(", ") });
        text += &format!(
            "lock {}\n",
            self.holder.as_deref().map_or("held by nobody".to_owned(), |by| format!("held by {by}"))
        );
        text += &format!("segments {}, {} bytes\n", info.segments.len(), info.file_bytes());
        for segment in &info.segments {
            text += &format!("  {segment}\n");
        }
        for leftover in &info.leftovers {
            text += &format!("  {}: prepared, never used\n", leftover.display());
        }
        for (cut, bytes) in &info.removed_tail_files {
            text += &format!("  {}: was cut at a start, {bytes} bytes\n", cut.display());
        }
        text
    }

    fn object(&self) -> Value {
        let info = &self.info;
        let segments: Vec<Value> = info
            .segments
            .iter()
            .map(|segment| {
                json!({
                    "path": segment.path.display().to_string(),
                    "number": segment.number,
                    "first_sequence": segment.first_sequence,
                    "journaled_sequence": segment.journaled_sequence,
                    "damaged_slot_position": segment.damaged_slot_position,
                    "synced_sequence": segment.synced_sequence,
                    "file_bytes": segment.file_bytes,
                    "length_bytes": segment.length_bytes,
                    "used_bytes": segment.used_bytes,
                    "records": segment.has_records,
                    "checkpoint_position": segment.checkpoint_position,
                    "sealed": segment.is_sealed,
                    "opened_ns": segment.opened_ns,
                    "sync_failed": segment.sync_failed,
                    "archived": segment.archived.as_ref().map(|place| place.display().to_string()),
                })
            })
            .collect();
        let record = self.record.as_ref().ok().and_then(Option::as_ref);
        let leftovers: Vec<String> = info.leftovers.iter().map(|path| path.display().to_string()).collect();
        let cut = |(path, bytes): &(PathBuf, u64)| json!({ "path": path.display().to_string(), "bytes": bytes });
        let cuts: Vec<Value> = info.removed_tail_files.iter().map(cut).collect();
        json!({
            "directory": info.directory.display().to_string(),
            "kind": record.map(|record| &record.kind),
            "format": record.map(|record| record.format),
            "written_by": record.map(|record| &record.program),
            "record_damage": self.record.as_ref().err().map(ToString::to_string),
            // Hexadecimal: JSON readers cannot hold a number of 128 bits.
            "stream_id": format!("{:032x}", info.stream_id),
            "incarnation": format!("{:016x}", info.incarnation),
            "first_sequence": info.first_sequence(),
            "journaled_sequence": info.journaled_sequence(),
            "synced_sequence": info.synced_sequence(),
            "same_boot": info.is_same_boot,
            "good_mark": { "name": info.good_mark.0.to_string(), "sequence": info.good_mark.1 },
            "frame_length_max": info.frame_length_max,
            "file_bytes": info.file_bytes(),
            "segments": segments,
            "leftovers": leftovers,
            "cuts": cuts,
            "snapshots": self.snapshots,
            "lock_holder": self.holder,
        })
    }
}
