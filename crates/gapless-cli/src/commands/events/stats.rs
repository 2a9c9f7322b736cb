//! `gapless events stats`.

use super::open;
use crate::commands::{CommandResult, print};
use crate::printable::escaped;
use clap::Args;
use gapless_cqrs::directory::EventStatistics;
use gapless_cqrs::{DeletedEvents, Position, TypeNames};
use gapless_stream::logger::utc;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a command bus, or of a member that runs one
    directory: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let directory = open(&arguments.directory)?;
    let statistics = directory.statistics()?;
    let deleted = DeletedEvents::read(directory.path())?;
    let names = &directory.names;
    match arguments.json {
        true => print(&format!("{}\n", serde_json::to_string_pretty(&object(&statistics, deleted.as_ref(), names))?)),
        false => print(&text(&statistics, deleted.as_ref(), names)),
    }
}

fn per(bytes: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { bytes as f64 / count as f64 }
}

fn text(statistics: &EventStatistics, deleted: Option<&DeletedEvents>, names: &TypeNames) -> String {
    let EventStatistics { events, transactions, payload_bytes, index, .. } = statistics;
    let each = per(*payload_bytes, *events);
    let mut text = format!("events {events} in {transactions} transactions, {each:.1} bytes each\n");
    for (what, point) in [("first", statistics.first), ("last", statistics.last)] {
        if let Some((position, time_ns)) = point {
            text += &format!("{what} {position} at {}\n", utc(time_ns));
        }
    }
    let all: u64 = statistics.aggregates.values().map(|of_type| of_type.aggregates).sum();
    text += &format!("aggregates {all}\n");
    for (key, of_type) in &statistics.aggregates {
        let name = escaped(&names.aggregate_name(*key));
        text += &format!("  {name}: {} with {} events\n", of_type.aggregates, of_type.events);
    }
    text += &format!("types {}\n", statistics.types.len());
    for ((key, version), events) in &statistics.types {
        text += &format!("  {} v{version}: {events}\n", escaped(&names.message_name(*key)));
    }
    text += &format!(
        "journal: sequences {}..={} in {} segments, {} bytes; {} segments are archived\n",
        statistics.first_sequence,
        statistics.last_sequence,
        statistics.segments,
        statistics.segment_bytes,
        statistics.archived_segments
    );
    if let Some(DeletedEvents { before, aggregates, file, file_bytes }) = deleted {
        text += &format!(
            "deleted: events before {before}; the states of {aggregates} aggregates stand for them in {}, {file_bytes} bytes\n",
            file.display()
        );
    }
    text += &match index.runs {
        0 => "index: no runs on disk; a running host has what is newest in memory\n".to_owned(),
        runs => format!(
            "index: {runs} runs up to sequence {}, {} positions of {} events, {} bytes, {:.1} an event\n",
            index.last_sequence,
            index.postings,
            index.events,
            index.bytes,
            per(index.bytes, index.events)
        ),
    };
    for (path, reason) in &index.unusable {
        text += &format!("  {}: is made anew by the next host, {}\n", path.display(), escaped(reason));
    }
    text
}

fn object(statistics: &EventStatistics, deleted: Option<&DeletedEvents>, names: &TypeNames) -> Value {
    let point = |point: Option<(Position, u64)>| {
        point.map(|(position, time_ns)| {
            json!({ "position": position.to_string(), "timestamp_ns": time_ns, "time": utc(time_ns) })
        })
    };
    let aggregates: Vec<Value> = statistics
        .aggregates
        .iter()
        .map(|(key, of_type)| {
            let name = names.aggregate_name(*key);
            json!({ "type": name, "aggregates": of_type.aggregates, "events": of_type.events })
        })
        .collect();
    let types: Vec<Value> = statistics
        .types
        .iter()
        .map(|((key, version), events)| {
            json!({ "type": names.message_name(*key), "version": version, "events": events })
        })
        .collect();
    let index = &statistics.index;
    let unusable: Vec<Value> = index
        .unusable
        .iter()
        .map(|(path, reason)| json!({ "path": path.display().to_string(), "reason": reason }))
        .collect();
    json!({
        "events": statistics.events,
        "transactions": statistics.transactions,
        "payload_bytes": statistics.payload_bytes,
        "first": point(statistics.first),
        "last": point(statistics.last),
        "aggregates": aggregates,
        "types": types,
        "first_sequence": statistics.first_sequence,
        "last_sequence": statistics.last_sequence,
        "segments": statistics.segments,
        "segment_bytes": statistics.segment_bytes,
        "archived_segments": statistics.archived_segments,
        "deleted": deleted.map(|deleted| json!({
            "before": deleted.before,
            "aggregates": deleted.aggregates,
            "file": deleted.file.display().to_string(),
            "bytes": deleted.file_bytes,
        })),
        "index": {
            "runs": index.runs,
            "last_sequence": index.last_sequence,
            "positions": index.postings,
            "events": index.events,
            "bytes": index.bytes,
            "bytes_per_event": per(index.bytes, index.events),
            "unusable": unusable,
        },
    })
}
