//! `gapless counters`: reads the counters of a running node, once or at an interval.

use super::watch::sleep_until;
use super::{CommandResult, interrupt, is_printed};
use crate::printable::escaped;
use clap::Args;
use gapless_agent::CountersReader;
use gapless_client::stream_layout::StreamLayout;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Directory of a service, a stream or a member, or its counters file
    directory: PathBuf,

    /// Print one JSON object per sample, with the values by label
    #[arg(long)]
    json: bool,

    /// Print again every SECONDS, with the change per second, until Ctrl-C or the end of the process
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    watch: Option<Duration>,
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds is expected, such as 1 or 0.5".to_owned())?;
    if (0.01..=86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("0.01 to 86400 seconds are possible".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments) -> CommandResult {
    let is_directory = arguments.directory.is_dir();
    let path =
        if is_directory { StreamLayout::new(&arguments.directory).counters() } else { arguments.directory.clone() };
    if is_directory && !path.exists() {
        let directory = arguments.directory.display();
        return Err(format!(
            "{directory}: nothing runs there; the counters of a service, a stream or a member end with its process"
        )
        .into());
    }
    let reader = CountersReader::open(&path)?;
    // Left by a killed process.
    if !reader.is_owned() {
        let (path, process) = (path.display(), reader.owner_pid());
        return Err(format!(
            "{path}: the process that counted there, {process}, is gone; its last values mean nothing now"
        )
        .into());
    }
    let mut before: Option<(Instant, Vec<(String, u64)>)> = None;
    let interrupted = arguments.watch.map(|_| interrupt()).transpose()?;
    loop {
        let (now, values) = (Instant::now(), reader.read()?);
        if !is_printed(&if arguments.json { in_json(&values) } else { in_text(&values, before.as_ref(), now) })? {
            return Ok(());
        }
        let (Some(interval), Some(interrupted)) = (arguments.watch, &interrupted) else { return Ok(()) };
        before = Some((now, values));
        if !sleep_until(now + interval, || interrupted.load(Ordering::Relaxed) || !path.exists() || !reader.is_owned())
        {
            return Ok(());
        }
    }
}

fn in_json(values: &[(String, u64)]) -> String {
    let object: serde_json::Map<String, serde_json::Value> =
        values.iter().map(|(label, value)| (label.clone(), (*value).into())).collect();
    format!("{}\n", serde_json::Value::Object(object))
}

fn in_text(values: &[(String, u64)], before: Option<&(Instant, Vec<(String, u64)>)>, now: Instant) -> String {
    let shown: Vec<String> = values.iter().map(|(label, _)| escaped(label)).collect();
    let width = shown.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for ((label, value), shown) in values.iter().zip(shown) {
        let rate = before.and_then(|(since, old)| {
            let (_, old) = old.iter().find(|(old, _)| old == label)?;
            Some((*value as f64 - *old as f64) / now.duration_since(*since).as_secs_f64())
        });
        let _ = match rate {
            Some(rate) => writeln!(text, "{shown:width$} {value:>20} {rate:>15.0}/s"),
            None => writeln!(text, "{shown:width$} {value:>20}"),
        };
    }
    if before.is_some() {
        text.insert(0, '\n');
    }
    text
}
