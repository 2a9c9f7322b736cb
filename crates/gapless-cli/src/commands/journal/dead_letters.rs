//! `gapless journal dead-letters`.

use super::directory::layout_of;
use crate::commands::{CommandResult, print, to_stderr};
use crate::printable::escaped;
use clap::Args;
use gapless_agent::checked_file;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::JournalReader;
use gapless_stream::logger::utc;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::PathBuf;

/// A reason is the text of a panic.
const LINE_BYTES_MAX: u64 = 1 << 20;

#[derive(Args)]
pub(super) struct Arguments {
    /// Directory of a service or a member
    directory: PathBuf,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

fn text(letter: &Value) -> Option<String> {
    let number = |key| letter.get(key).and_then(Value::as_u64);
    let (sequence, session, session_seq) = (number("sequence")?, number("session")?, number("session_seq")?);
    let (schema_id, template_id) = (number("schema_id")?, number("template_id")?);
    let reason = escaped(letter.get("reason")?.as_str()?);
    let time = letter.get("time").and_then(Value::as_str).unwrap_or("-");
    Some(format!("{sequence} {time} session {session} seq {session_seq} schema {schema_id}:{template_id} {reason}"))
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let layout = layout_of(&arguments.directory).unwrap_or_else(|| StreamLayout::new(&arguments.directory));
    let path = layout.dead_letters();
    let file = match checked_file::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound && layout.journal().is_dir() => {
            to_stderr!("note: no dead letters");
            return Ok(());
        }
        Err(error) => return Err(format!("reading {}: {error}", path.display()).into()),
    };
    let reader = JournalReader::open(layout.journal()).ok();
    let mut torn = 0u64;
    each_line(file, |line| {
        let mut letter: Value = serde_json::from_slice(line).unwrap_or_default();
        let timestamp_ns =
            letter.get("sequence").and_then(Value::as_u64).and_then(|sequence| time_of(reader.as_ref()?, sequence));
        if let Some(fields) = letter.as_object_mut() {
            fields.insert("timestamp_ns".to_owned(), json!(timestamp_ns));
            fields.insert("time".to_owned(), json!(timestamp_ns.map(utc)));
        }
        match text(&letter) {
            Some(_) if arguments.json => print(&format!("{letter}\n")),
            Some(text) => print(&format!("{text}\n")),
            None => {
                torn += 1;
                Ok(())
            }
        }
    })
    .map_err(|error| format!("reading {}: {error}", path.display()))?;
    if torn > 0 {
        return Err(format!("{torn} lines of {} are damaged or cut short, and left out", path.display()).into());
    }
    Ok(())
}

fn each_line(file: File, mut take: impl FnMut(&[u8]) -> CommandResult) -> CommandResult {
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    while lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? > 0 {
        take(&line)?;
        line.clear();
    }
    Ok(())
}

fn time_of(reader: &JournalReader, sequence: u64) -> Option<u64> {
    let mut replay = reader.replay_until(sequence, sequence).ok()?;
    Some(replay.next_frame().ok()??.timestamp_ns())
}
