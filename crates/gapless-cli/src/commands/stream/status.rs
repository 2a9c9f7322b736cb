//! `gapless stream status`: from the counters of the stream's directory, which it only reads, and by the stream's socket
//! what is known of each node.

use super::location::StreamLocation;
use super::nodes;
use crate::commands::counters::seconds;
use crate::commands::watch::{clear, sleep_until};
use crate::commands::{Ended, Outcome, interrupt, is_printed};
use clap::Args;
use gapless_agent::CountersReader;
use gapless_client::control::{Controller, StatusFeed, StatusReading};
use gapless_client::control_messages::StreamState;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{JournalError, JournalReader};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    location: StreamLocation,
    /// Print one JSON object, a line each time
    #[arg(long)]
    json: bool,
    /// Print again every second, or every so many, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds)]
    watch: Option<Duration>,
}

/// Rates are those of so long a time, at least; nodes over networks say every 200 ms how they are.
const SAMPLE: Duration = Duration::from_millis(500);
/// The exit code where nothing runs, as of other programs' `status`.
const NOT_RUNNING: u8 = 3;
/// The time that the sequencer may take to name the connected nodes.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The counters at one moment.
struct Sample {
    at: Instant,
    process: u32,
    values: Vec<(String, u64)>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let config = arguments.location.config()?;
    let Some(directory) = config.directory() else {
        return Err("a stream without a directory keeps no counters that another process could read".into());
    };
    let layout = StreamLayout::new(directory);
    if !directory.is_dir() {
        return Err(format!("{}: no stream was ever there", directory.display()).into());
    }
    let interrupted = interrupt()?;
    let mut feed = StatusFeed::new(Controller::new(directory));
    // Relaxed: the flag guards no data (pairs with the store of the signal handler).
    let is_interrupted = || interrupted.load(Ordering::Relaxed);
    let clear = clear(arguments.watch.is_some() && !arguments.json);
    let mut before = sample(&layout)?;
    if before.is_some() {
        // A fault is reported at the second read.
        let _ = feed.read(TIMEOUT);
    }
    loop {
        let interval = arguments.watch.unwrap_or(SAMPLE);
        let until = Instant::now() + if before.is_some() { interval } else { Duration::ZERO };
        if !sleep_until(until, is_interrupted) {
            return Ok(());
        }
        let now = sample(&layout)?;
        let mut status = status(&layout, before.as_ref(), now.as_ref())?;
        let reading = now.as_ref().and_then(|_| reading(&mut feed));
        if let Some(reading) = &reading {
            tell_stream(&reading.stream, &mut status);
        }
        let nodes = reading.map(|reading| reading.nodes).unwrap_or_default();
        let is_read = is_printed(&if arguments.json {
            status.insert("nodes".to_owned(), nodes::in_json(&nodes));
            format!("{}\n", Value::Object(status))
        } else {
            format!("{clear}{}{}", text(directory, &status), nodes::in_text(&nodes))
        })?;
        if !is_read {
            return Ok(());
        }
        let Some(interval) = arguments.watch else {
            let absent =
                || Ended { code: NOT_RUNNING, reason: format!("no sequencer runs in {}", directory.display()) };
            return if now.is_some() { Ok(()) } else { Err(absent().into()) };
        };
        let pause = if now.is_none() { interval } else { Duration::ZERO };
        if !sleep_until(Instant::now() + pause, is_interrupted) {
            return Ok(());
        }
        before = now;
    }
}

/// The stream's state and its nodes. A failure of this is reported and ends nothing: the counters are of use, too.
fn reading(feed: &mut StatusFeed) -> Option<StatusReading> {
    match feed.read(TIMEOUT) {
        Ok(reading) => Some(reading),
        Err(error) => {
            crate::commands::to_stderr!("note: state and nodes are not known: {error}");
            None
        }
    }
}

/// What the sequencer says of the stream as a whole.
fn tell_stream(stream: &StreamState, status: &mut Map<String, Value>) {
    let transports: Vec<_> = stream.transports.iter().map(|transport| transport.name()).collect();
    let feed_session = Some(stream.feed_session.as_str()).filter(|name| !name.is_empty());
    status.insert("tier".to_owned(), json!(stream.tier.name()));
    status.insert("transports".to_owned(), json!(transports));
    status.insert("halted".to_owned(), json!(stream.is_halted));
    status.insert("feed_session".to_owned(), json!(feed_session));
    status.insert("feed_ended".to_owned(), json!(stream.has_feed_ended));
}

/// The counters of the sequencer that runs there; none if none does. A process that was killed leaves its file behind.
fn sample(layout: &StreamLayout) -> Result<Option<Sample>, Box<dyn std::error::Error>> {
    if !layout.counters().exists() {
        return Ok(None);
    }
    let reader = CountersReader::open(layout.counters())?;
    let process = reader.owner_pid();
    if !Path::new("/proc").join(process.to_string()).exists() {
        return Ok(None);
    }
    if layout.journal().is_dir() && gapless_journal::lock_holder(&layout.journal())?.is_none() {
        // Nobody else has the counters' lock, whatever became of the journal's.
        if !reader.is_owned() {
            return Ok(None);
        }
        crate::commands::to_stderr!(
            "note: the lock file of {} was removed while process {process} has the journal; restart it before anything else is \
             started there",
            layout.journal().display()
        );
    }
    Ok(Some(Sample { at: Instant::now(), process, values: reader.read()? }))
}

fn status(
    layout: &StreamLayout,
    before: Option<&Sample>,
    now: Option<&Sample>,
) -> Result<Map<String, Value>, Box<dyn std::error::Error>> {
    let mut status = Map::new();
    status.insert("running".to_owned(), json!(now.is_some()));
    let Some(now) = now else {
        match JournalReader::open_complete(layout.journal()) {
            Ok(reader) => status.insert("last_sequence".to_owned(), json!(reader.last_sequence()?)),
            Err(JournalError::NoJournal { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        return Ok(status);
    };
    let value =
        |sample: &Sample, name: &str| sample.values.iter().find(|(label, _)| label == name).map(|(_, value)| *value);
    status.insert("process".to_owned(), json!(now.process));
    // A relay has no sequencer, and passes on the order of another.
    let last = value(now, "sequencer.last_sequence").or_else(|| value(now, "relay.last_sequence"));
    status.insert("last_sequence".to_owned(), json!(last));
    for (name, counter) in [("journal_lag", "journaler.last_sequence"), ("sync_lag", "sync.last_sequence")] {
        if let (Some(last), Some(reached)) = (last, value(now, counter)) {
            status.insert(name.to_owned(), json!(last.saturating_sub(reached)));
        }
    }
    let before = before.filter(|before| before.process == now.process && before.at < now.at);
    for (name, counter) in [
        ("frames_per_s", "sequencer.last_sequence"),
        ("frames_per_s", "relay.last_sequence"),
        ("journal_bytes_per_s", "journaler.bytes"),
        ("feed_packets_per_s", "feed.packets"),
        ("frames_sent_again_per_s", "replayer.frames"),
        ("rewind_frames_per_s", "rewind.frames"),
    ] {
        if let Some((before, new)) = before.and_then(|before| Some((before, value(now, counter)?))) {
            let old = value(before, counter).unwrap_or(0);
            let seconds = now.at.duration_since(before.at).as_secs_f64();
            status.insert(name.to_owned(), json!((new.saturating_sub(old) as f64 / seconds).round()));
        }
    }
    // The connected nodes and the errors, by the labels that the counters have.
    for (label, value) in &now.values {
        if !matches!(
            &**label,
            "sequencer.last_sequence" | "relay.last_sequence" | "journaler.last_sequence" | "sync.last_sequence"
        ) {
            status.insert(label.clone(), json!(value));
        }
    }
    Ok(status)
}

fn text(directory: &Path, status: &Map<String, Value>) -> String {
    let is_running = status["running"] == json!(true);
    let mut text = format!("{}: {}\n", directory.display(), if is_running { "running" } else { "no sequencer runs" });
    let width = status.keys().map(String::len).max().unwrap_or(0);
    for (name, value) in status.iter().filter(|(name, _)| *name != "running") {
        let value = match value {
            Value::Null => "-".to_owned(),
            Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
            Value::String(text) => text.clone(),
            Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            _ => value
                .as_u64()
                .map_or_else(|| format!("{:.0}", value.as_f64().unwrap_or(0.0)), |whole| whole.to_string()),
        };
        text += &format!("{name:width$} {value:>16}\n");
    }
    text
}
