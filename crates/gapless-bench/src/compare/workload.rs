//! The workload of both builds: a benchmark's command line, and how many messages it moves.

use super::started;
use crate::{BenchError, Result};
use gapless_measure::{Report, Row};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Workload {
    pub name: String,
    /// After `gapless bench`, without the number of messages.
    arguments: Vec<String>,
    /// Messages or samples, for `-c`.
    count: Option<u64>,
}

/// Name, benchmark and options, messages, description.
pub(super) const NAMED: [(&str, &str, u64, &str); 7] = [
    (
        "direct",
        "canonical --mode throughput --encoding sbe.serial --tier journal",
        2_000_000,
        "as fast as one driver can go",
    ),
    (
        "indirect",
        "canonical --mode throughput --encoding sbe.random --tier journal",
        1_000_000,
        "the same with objects",
    ),
    (
        "latency",
        "canonical --mode latency --encoding sbe.serial --tier journal --rate 10000",
        40_000,
        "10,000 messages a second",
    ),
    (
        "clustered",
        "canonical --mode throughput --encoding sbe.serial --enable-clustering",
        1_000_000,
        "primary and backup",
    ),
    (
        "clustered-latency",
        "canonical --mode latency --encoding sbe.serial --enable-clustering --rate 10000",
        40_000,
        "the same at 10,000 a second",
    ),
    ("messaging", "messaging", 5_000, "client and node, 72 bytes to 500 KB"),
    ("sequencer", "sequencer --quick", 0, "nodes and a sequencer over every transport"),
];

pub(super) const DEFAULT: [&str; 3] = ["direct", "indirect", "latency"];

impl Workload {
    pub(super) fn find(given: &str) -> Result<Self> {
        if let Some((name, arguments, count, _)) = NAMED.iter().find(|(name, ..)| *name == given) {
            let arguments = arguments.split(' ').map(str::to_owned).collect();
            return Ok(Self { name: (*name).to_owned(), arguments, count: Some(*count).filter(|count| *count > 0) });
        }
        let mut arguments: Vec<String> = given.split_whitespace().flat_map(option_and_value).collect();
        if arguments.len() < 2 && !["canonical", "serialization", "log", "link", "messaging"].contains(&given) {
            let names: Vec<&str> = NAMED.iter().map(|(name, ..)| *name).collect();
            let names = names.join(", ");
            return Err(BenchError::Option(format!(
                "--run {given:?}: expected one of {names}, or a benchmark with its options, as in \
                 --run \"canonical --mode throughput --tier memory\""
            )));
        }
        if arguments.first().is_some_and(|first| first == "compare") {
            return Err(BenchError::Option(format!("--run {given:?}: a comparison compares no comparisons")));
        }
        if let Some(option) = arguments.iter().find(|argument| argument.starts_with("--json")) {
            return Err(BenchError::Option(format!("--run {given:?}: {option} is this command's own")));
        }
        let mut count = None;
        if let Some(index) = arguments.iter().position(|argument| argument == "-c" || argument == "--count") {
            let digits = arguments.get(index + 1).cloned().unwrap_or_default();
            let expected =
                || BenchError::Option(format!("--run {given:?}: expected a number of messages, not {digits:?}"));
            count = Some(digits.parse().map_err(|_| expected())?);
            arguments.drain(index..index + 2);
        }
        Ok(Self { name: given.to_owned(), arguments, count })
    }

    /// Callgrind can count only one process, with a number of messages, where nothing waits for the next one to be due.
    pub(super) fn can_be_counted(&self) -> bool {
        let is = |words: &[&str]| self.arguments.iter().any(|argument| words.contains(&argument.as_str()));
        let is_paced = !is(&["throughput"]) || is(&["-r", "--rate"]);
        self.count.is_some() && self.arguments[0] == "canonical" && !is_paced && !is(&["-v", "--enable-clustering"])
    }

    /// `program` may be a wrapper with arguments of its own.
    pub(super) fn run(&self, program: &Path, scratch: &Path, interrupted: &AtomicBool) -> Result<Report> {
        let file = scratch.join("report.json");
        let _ = std::fs::remove_file(&file);
        let mut command = Command::new(program);
        self.complete(&mut command, self.count).arg("--json").arg(&file).stdout(Stdio::null()).stderr(Stdio::piped());
        let output =
            started::output(&mut command, interrupted).map_err(|source| BenchError::io("run", program, source))?;
        let about = format!("{}: {}", self.name, program.display());
        let failed = |reason: String| BenchError::Measurement { name: "compare", reason };
        let text = std::fs::read_to_string(&file);
        let report = text.as_ref().ok().and_then(|text| Report::from_json(text).ok());
        let is_slow = |row: &Row| row.rate_reached == Some(false) && row.verified != Some(false);
        if let Some(report) = report.filter(|report| report.rows.iter().any(is_slow)) {
            return Ok(report);
        }
        if !output.status.success() {
            let reason = format!("{about} ended with {}: {}", output.status, last_words(&output.stderr));
            let is_usage = output.status.code() == Some(2);
            return Err(if is_usage { BenchError::Option(reason) } else { failed(reason) });
        }
        let text = text.map_err(|error| failed(format!("{about} ended well and wrote no report: {error}")))?;
        let report = Report::from_json(&text).map_err(|error| failed(format!("{about}: {error}")))?;
        if let Some(row) = report.rows.iter().find(|row| row.verified == Some(false)) {
            return Err(failed(format!("{}: {} failed its check: {:?}", self.name, program.display(), row.notes)));
        }
        Ok(report)
    }

    pub(super) fn complete<'a>(&self, command: &'a mut Command, count: Option<u64>) -> &'a mut Command {
        command.arg("bench").args(&self.arguments);
        if let Some(count) = count {
            command.arg("-c").arg(count.to_string());
        }
        command.stdin(Stdio::null())
    }
}

fn option_and_value(word: &str) -> Vec<String> {
    let parts = match word.strip_prefix("-c") {
        Some(digits) if digits.starts_with(|first: char| first.is_ascii_digit()) => Some(("-c", digits)),
        _ if word.starts_with("--") => word.split_once('='),
        _ => None,
    };
    match parts {
        Some((option, value)) => vec![option.to_owned(), value.to_owned()],
        None => vec![word.to_owned()],
    }
}

pub(super) fn last_words(stderr: &[u8]) -> String {
    let said = String::from_utf8_lossy(stderr);
    let mut lines = said.lines().rev().map(str::trim);
    // Lines of valgrind's own begin so.
    let last = lines.find(|line| !line.is_empty() && !line.starts_with("=="));
    last.unwrap_or("it said nothing").to_owned()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparedFigure {
    Throughput,
    P50,
    Cpu,
}

impl ComparedFigure {
    pub(super) const ALL: [Self; 3] = [Self::Throughput, Self::P50, Self::Cpu];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::P50 => "p50",
            Self::Cpu => "CPU time",
        }
    }

    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "messages/s",
            Self::P50 => "ns",
            Self::Cpu => "ns/message",
        }
    }

    pub(super) const fn more_is_better(self) -> bool {
        matches!(self, Self::Throughput)
    }

    /// `None` where the figure says nothing: a row at a rate whose threads spin costs all of two cores whatever the
    /// path does.
    pub(super) fn of(self, row: &Row) -> Option<f64> {
        let value = match self {
            Self::Throughput => row.throughput_per_s,
            Self::P50 => row.latency_ns.map(|latency| latency.p50 as f64),
            Self::Cpu if row.throughput_per_s.is_none() => None,
            Self::Cpu => row.cpu_ns_per_message.map(|cpu| cpu.driver + cpu.service),
        };
        value.filter(|value| *value > 0.0)
    }
}

pub(super) fn row_name(row: &Row) -> String {
    let config = &row.config;
    let bytes = config.payload_bytes.map(|bytes| format!("{bytes} B"));
    let parts = [&config.name, &config.mode, &config.encoding, &config.tier, &config.transport, &bytes];
    parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_a_command_line() {
        for (name, ..) in NAMED {
            assert_eq!(Workload::find(name).unwrap().name, name);
        }
        assert!(DEFAULT.iter().all(|name| NAMED.iter().any(|(named, ..)| named == name)));
    }

    #[test]
    fn a_command_line_gives_its_count_away() {
        let workload = Workload::find("canonical -c 500 --tier memory").unwrap();
        assert_eq!(workload.count, Some(500));
        assert_eq!(workload.arguments, ["canonical", "--tier", "memory"]);
        for given in ["canonical -c500 --tier=memory", "canonical --count=500 --tier memory"] {
            assert_eq!(Workload::find(given).unwrap(), Workload { name: given.to_owned(), ..workload.clone() });
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for (given, part) in [
            ("fast", "expected one of direct, indirect"),
            ("canonical -c", "a number of messages"),
            ("canonical --json x", "this command's own"),
        ] {
            let error = Workload::find(given).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
