//! [`Runs`]: the JSON files of benchmarks, found, read, and put in the order in which they answer a published figure.

use crate::Result;
use gapless_measure::reporting::config_number;
use gapless_measure::{BenchError, Report, Row};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Every benchmark that writes JSON.
const BENCHMARKS: [&str; 18] = [
    "canonical",
    "commands",
    "compare",
    "failover",
    "link",
    "log",
    "messaging",
    OVERVIEW,
    "persistence",
    "rpc curve",
    "rpc faults",
    "rpc payloads",
    "rpc scenarios",
    "sequencer",
    "serialization",
    "storage",
    "supervisor",
    "time",
];

/// Sizes that make a curve.
const CURVE_SIZES: usize = 8;

/// The run of a little of everything, whose rows answer where no other run does.
const OVERVIEW: &str = "overview";

/// One JSON file.
pub(super) struct Run {
    /// Its folder and name.
    pub(super) path: String,
    /// The day of its folder, `YYYY-MM-DD`, where the folder is one.
    pub(super) date: Option<String>,
    pub(super) report: Report,
}

/// All files, the best answer first: newest, then most turns, most rows, shortest name.
pub(super) struct Runs {
    runs: Vec<Run>,
    warnings: Vec<String>,
}

impl Runs {
    /// Reads files, and every JSON file in directories.
    ///
    /// # Errors
    /// A path that cannot be read, a file that is no JSON of a benchmark, a directory without one.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut files = Vec::new();
        for path in paths {
            let metadata = std::fs::metadata(path).map_err(|source| BenchError::io("read", path, source))?;
            if !metadata.is_dir() {
                files.push(path.clone());
                continue;
            }
            let before = files.len();
            find(path, &mut files)?;
            if files.len() == before {
                let message = format!("{}: no JSON of a benchmark is there", path.display());
                return Err(BenchError::Option(message));
            }
        }
        files.sort();
        files.dedup();
        let mut found = Self { runs: Vec::new(), warnings: Vec::new() };
        for file in &files {
            found.add(file)?;
        }
        found.sort();
        Ok(found)
    }

    fn add(&mut self, file: &Path) -> Result<()> {
        let text = std::fs::read_to_string(file).map_err(|source| BenchError::io("read", file, source))?;
        let report = Report::from_json(&text).map_err(|error| {
            BenchError::io("read", file, std::io::Error::new(std::io::ErrorKind::InvalidData, error.to_string()))
        })?;
        if BENCHMARKS.contains(&report.benchmark.as_str()) {
            self.runs.push(Run::new(file, report));
        } else {
            let name = report.benchmark.escape_debug();
            self.warnings.push(format!("{}: left out, its benchmark \"{name}\" is unknown", file.display()));
        }
        Ok(())
    }

    fn sort(&mut self) {
        self.runs.sort_by_cached_key(|run| {
            let turns = run.report.rows.iter().map(turns).max().unwrap_or(0);
            let order = (run.date.clone(), turns, run.report.rows.len());
            (run.report.benchmark == OVERVIEW, Reverse(order), run.path.len(), run.path.clone())
        });
    }

    /// All runs, the best answer first.
    pub(super) fn all(&self) -> &[Run] {
        &self.runs
    }

    /// Files that were left out.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The newest run of a benchmark with enough rows of a kind.
    pub(super) fn newest(&self, benchmark: &str, rows_min: usize, is_kind: impl Fn(&Row) -> bool) -> Option<&Run> {
        let has_enough = |run: &&Run| run.report.rows.iter().filter(|row| is_kind(row)).count() >= rows_min;
        self.runs.iter().filter(|run| run.report.benchmark == benchmark).find(has_enough)
    }

    /// The newest run of a benchmark with rows of a kind in enough sizes for a curve; failing that, in two sizes.
    pub(super) fn newest_curve(&self, benchmark: &str, is_kind: impl Fn(&Row) -> bool) -> Option<&Run> {
        let has_sizes = |run: &&Run, least: usize| {
            let sizes = run.sound_rows().filter(|row| is_kind(row)).filter_map(|row| row.config.payload_bytes);
            sizes.collect::<BTreeSet<_>>().len() >= least
        };
        let of_benchmark = || self.runs.iter().filter(|run| run.report.benchmark == benchmark);
        of_benchmark().find(|run| has_sizes(run, CURVE_SIZES)).or_else(|| of_benchmark().find(|run| has_sizes(run, 2)))
    }
}

impl Run {
    fn new(file: &Path, report: Report) -> Self {
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let folder = file.parent().and_then(name);
        let file_name = name(file).unwrap_or_default();
        let path = folder.as_ref().map_or_else(|| file_name.clone(), |folder| format!("{folder}/{file_name}"));
        Self { path, date: folder.filter(|folder| is_day(folder)), report }
    }

    /// The rows that are results.
    pub(super) fn sound_rows(&self) -> impl Iterator<Item = &Row> {
        self.report.rows.iter().filter(|row| row.failure().is_none() && row.missed_rate_per_s().is_none())
    }
}

/// Turns that a row is the median of.
fn turns(row: &Row) -> usize {
    let of_turns = row.extra.get("turns").and_then(|turns| turns["throughput_per_s"].as_array());
    of_turns.map_or(0, Vec::len)
}

fn is_day(name: &str) -> bool {
    name.len() == 10
        && name
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() })
}

/// Adds the JSON files in a directory and below it. Links are not followed, so that no loop is entered.
fn find(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |source| BenchError::io("read", directory, source);
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        if kind.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether a row has many commands in flight, and a bus of Axon's the load that ours has. Older runs state no setup.
pub(super) fn has_our_load(row: &Row) -> bool {
    config_number(row, "in_flight") != Some(1) && matches!(config(row, "setup").as_str(), "" | "ours")
}

/// A value of the configuration of a row, as a word.
pub(super) fn config(row: &Row, key: &str) -> String {
    let value = match key {
        "program" => row.config.program.clone().map(Value::String),
        "mode" => row.config.mode.clone().map(Value::String),
        "access" => row.config.access.clone().map(Value::String),
        "encoding" => row.config.encoding.clone().map(Value::String),
        "tier" => row.config.tier.clone().map(Value::String),
        "cpu" => row.config.cpu.clone().map(Value::String),
        "transport" => row.config.transport.clone().map(Value::String),
        "name" => row.config.name.clone().map(Value::String),
        "clustered" => row.config.clustered.map(Value::Bool),
        "payload_bytes" => row.config.payload_bytes.map(Value::from),
        "rate_per_s" => row.config.rate_per_s.map(Value::from),
        other => row.config.extra.get(other).cloned(),
    };
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    }
}
