//! Counters are read from the directory, without writing; nodes are asked for at the stream's socket.

use super::location::StreamLocation;
use super::nodes;
use super::waiting::print_wait_note;
use crate::commands::counters::seconds;
use crate::commands::watch::{clear, sleep_until};
use crate::commands::{CommandResult, ExitError, NOT_RUNNING, UNHEALTHY, interrupt, is_printed};
use clap::Args;
use gapless_agent::CountersReader;
use gapless_client::ClientError;
use gapless_client::control::{Controller, NodeReading, StatusFeed, StatusReading};
use gapless_client::control_messages::StreamState;
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::ClusterError;
use gapless_cluster::member::{
    self,
    control::{AdminAnswer, AdminRequest},
};
use gapless_journal::{JournalError, JournalReader};
use gapless_stream::directory_record::DirectoryRecord;
use gapless_transport::peer_process::PeerProcess;
use serde_json::{Map, Value, json};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    location: StreamLocation,
    /// Print one JSON object per sample
    #[arg(long)]
    json: bool,
    /// Print again every SECONDS, 1 without a value, until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds)]
    watch: Option<Duration>,
}

/// Shortest time for a rate; nodes over networks report every 200 ms.
const SAMPLE: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(5);

struct CounterSample {
    at: Instant,
    process: u32,
    /// The process id belongs to this namespace.
    is_visible: bool,
    values: Vec<(String, u64)>,
}

impl CounterSample {
    fn value(&self, name: &str) -> Option<u64> {
        self.values.iter().find(|(label, _)| label == name).map(|(_, value)| *value)
    }
}

pub(super) fn run(arguments: &Arguments) -> CommandResult {
    let config = arguments.location.config()?;
    let Some(directory) = config.directory() else {
        return Err("a stream without a directory keeps no counters that another process could read".into());
    };
    let layout = StreamLayout::new(directory);
    if !directory.is_dir() {
        let reason = format!("{}: no stream was ever there", directory.display());
        return Err(ExitError { code: NOT_RUNNING, reason }.into());
    }
    let interrupted = interrupt()?;
    let mut feed = StatusFeed::new(Controller::new(directory).with_wait_reporter(print_wait_note));
    let is_interrupted = || interrupted.load(Ordering::Relaxed);
    let clear = clear(arguments.watch.is_some() && !arguments.json);
    let mut before = sample(&layout)?;
    // A fault is reported at the second read; a single look asks a silent process only once.
    let mut first = before.as_ref().map(|before| StatusAnswer::ask(&layout, &mut feed, before));
    loop {
        let silent = first.take_if(|answer| matches!(answer, StatusAnswer::Silent(_)) && arguments.watch.is_none());
        let interval = arguments.watch.unwrap_or(SAMPLE);
        let is_rated = before.is_some() && silent.is_none();
        let until = Instant::now() + if is_rated { interval } else { Duration::ZERO };
        if !sleep_until(until, is_interrupted) {
            return Ok(());
        }
        let now = sample(&layout)?;
        let mut status = status(&layout, before.as_ref(), now.as_ref())?;
        let answer = now.as_ref().map(|now| silent.unwrap_or_else(|| StatusAnswer::ask(&layout, &mut feed, now)));
        let nodes = answer.as_ref().map(|answer| answer.write_status(&mut status)).unwrap_or_default();
        let illness = now
            .as_ref()
            .filter(|_| matches!(answer, Some(StatusAnswer::Read(_))))
            .and_then(|now| illness(directory, now));
        status.extend(illness.as_ref().map(|illness| ("illness".to_owned(), json!(illness))));
        let is_read = is_printed(&if arguments.json {
            status.insert("nodes".to_owned(), nodes::in_json(nodes));
            format!("{}\n", Value::Object(status))
        } else {
            format!("{clear}{}{}", text(directory, &status), nodes::in_text(nodes))
        })?;
        if !is_read {
            return Ok(());
        }
        let Some(interval) = arguments.watch else {
            let place = directory.display();
            let absent = || ExitError { code: NOT_RUNNING, reason: format!("no sequencer or relay runs in {place}") };
            return match answer.ok_or_else(absent)? {
                StatusAnswer::Silent(why) => {
                    Err(ExitError { code: UNHEALTHY, reason: format!("{place}: {why}") }.into())
                }
                StatusAnswer::Failed(error) => {
                    Err(ExitError { code: UNHEALTHY, reason: format!("{place}: {error}") }.into())
                }
                StatusAnswer::Closed => Ok(()),
                StatusAnswer::Read(_) => illness.map_or(Ok(()), |illness| {
                    Err(ExitError { code: UNHEALTHY, reason: format!("{place}: {illness}") }.into())
                }),
            };
        };
        let pause = if now.is_none() { interval } else { Duration::ZERO };
        if !sleep_until(Instant::now() + pause, is_interrupted) {
            return Ok(());
        }
        before = now;
    }
}

enum StatusAnswer {
    Read(StatusReading),
    Silent(String),
    Failed(ClientError),
    /// A service or a command bus has no socket.
    Closed,
}

impl StatusAnswer {
    fn ask(layout: &StreamLayout, feed: &mut StatusFeed, sample: &CounterSample) -> Self {
        if !layout.socket().exists() {
            let record = DirectoryRecord::read(layout).ok().flatten();
            if record.is_some_and(|record| ["service", "bus"].contains(&&*record.kind)) {
                return Self::Closed;
            }
        }
        let process = sample.is_visible.then(|| PeerProcess::numbered(sample.process));
        if let Some(process) = process.filter(|process| process.standstill().is_some()) {
            // A stopped process is not waited for.
            return Self::Silent(process.silence());
        }
        match feed.read(TIMEOUT) {
            Ok(reading) => Self::Read(reading),
            Err(ClientError::TimedOut { .. }) => Self::Silent(process.map_or_else(
                || format!("process {} of another namespace is there and does not answer", sample.process),
                PeerProcess::silence,
            )),
            Err(error) => Self::Failed(error),
        }
    }

    fn write_status(&self, status: &mut Map<String, Value>) -> &[NodeReading] {
        status.insert("answers".to_owned(), json!(matches!(self, Self::Read(_))));
        match self {
            Self::Read(reading) => {
                write_stream(&reading.stream, status);
                return &reading.nodes;
            }
            Self::Silent(why) => {
                status.insert("silence".to_owned(), json!(why));
            }
            Self::Closed => {}
            Self::Failed(error) => _ = status.insert("silence".to_owned(), json!(error.to_string())),
        }
        &[]
    }
}

fn illness(directory: &Path, now: &CounterSample) -> Option<String> {
    if now.value("relay.connected") == Some(0) {
        return Some("its stream is not there; it looks for it".to_owned());
    }
    match member::control::ask(directory, &AdminRequest::Status) {
        Ok(AdminAnswer::Status(report)) => report.illness().map(str::to_owned),
        Ok(AdminAnswer::Refused(reason)) => Some(reason),
        Ok(_) => None,
        Err(ClusterError::System { source, .. }) if source.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(error.to_string()),
    }
}

fn write_stream(stream: &StreamState, status: &mut Map<String, Value>) {
    let transports: Vec<_> = stream.transports.iter().map(|transport| transport.name()).collect();
    let feed_session = Some(stream.feed_session.as_str()).filter(|name| !name.is_empty());
    status.insert("tier".to_owned(), json!(stream.tier.name()));
    status.insert("transports".to_owned(), json!(transports));
    status.insert("halted".to_owned(), json!(stream.is_halted));
    status.insert("feed_session".to_owned(), json!(feed_session));
    status.insert("feed_ended".to_owned(), json!(stream.has_feed_ended));
}

/// `None` also for the file of a killed process.
fn sample(layout: &StreamLayout) -> Result<Option<CounterSample>, Box<dyn std::error::Error>> {
    if !layout.counters().exists() {
        return Ok(None);
    }
    let reader = CountersReader::open(layout.counters())?;
    let process = reader.owner_pid();
    // The process id may belong to another namespace, and there to another process.
    if !reader.is_owned() {
        return Ok(None);
    }
    if layout.journal().is_dir() && gapless_journal::lock_holder(&layout.journal())?.is_none() {
        crate::commands::to_stderr!(
            "note: the lock file of {} was removed while process {process} has the journal; restart it before anything else is \
             started there",
            layout.journal().display()
        );
    }
    let is_visible = reader.is_owner_of_this_namespace();
    Ok(Some(CounterSample { at: Instant::now(), process, is_visible, values: reader.read()? }))
}

fn status(
    layout: &StreamLayout,
    before: Option<&CounterSample>,
    now: Option<&CounterSample>,
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
    status.insert("process".to_owned(), json!(now.process));
    if !now.is_visible {
        status.insert("process_in_other_namespace".to_owned(), json!(true));
    }
    let last = now.value("sequencer.last_sequence").or_else(|| now.value("relay.last_sequence"));
    status.insert("last_sequence".to_owned(), json!(last));
    for (name, counter) in [("journal_lag", "journaler.last_sequence"), ("sync_lag", "sync.last_sequence")] {
        if let (Some(last), Some(reached)) = (last, now.value(counter)) {
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
        if let Some((before, new)) = before.and_then(|before| Some((before, now.value(counter)?))) {
            let old = before.value(counter).unwrap_or(0);
            let seconds = now.at.duration_since(before.at).as_secs_f64();
            status.insert(name.to_owned(), json!((new.saturating_sub(old) as f64 / seconds).round()));
        }
    }
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
    let state = match (&status["running"], status.get("silence").and_then(Value::as_str)) {
        (_, Some(silence)) => silence,
        (Value::Bool(true), None) => "running",
        _ => "no sequencer runs",
    };
    let mut text = format!("{}: {state}\n", directory.display());
    let width = status.keys().map(String::len).max().unwrap_or(0);
    for (name, value) in status.iter().filter(|(name, _)| !["running", "answers", "silence"].contains(&name.as_str())) {
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
