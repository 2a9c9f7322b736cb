//! [`StoredRuns`]: the JSON files of benchmarks, in the order in which they answer a published figure.

use crate::Result;
use gapless_measure::reporting::config_number;
use gapless_measure::{BenchError, Report, Row};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const BENCHMARKS: [&str; 19] = [
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
    "network",
    "rpc faults",
    "rpc payloads",
    "rpc scenarios",
    "sequencer",
    "serialization",
    "storage",
    "supervisor",
    "time",
];

const CURVE_SIZES: usize = 8;

/// The largest of ours has 1 MiB.
const FILE_BYTES_MAX: u64 = 64 << 20;
const NAME_CHARS_MAX: usize = 80;

/// Overview runs answer last: they are short.
const OVERVIEW: &str = "overview";

pub(super) struct StoredRun {
    pub(super) path: String,
    /// Day of the nearest folder named `YYYY-MM-DD`.
    pub(super) date: Option<String>,
    pub(super) report: Report,
}

/// The best answer first: newest, then most turns, most rows, shortest name; short runs last.
pub(super) struct StoredRuns {
    runs: Vec<StoredRun>,
    files: Vec<PathBuf>,
    warnings: Vec<String>,
}

impl StoredRuns {
    /// Reads files, and every JSON file in directories.
    ///
    /// # Errors
    /// A path that cannot be read, a file that is no JSON of a benchmark or is too long, a directory without one; no known benchmark.
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
        let resolved = files.iter().map(|file| std::fs::canonicalize(file).unwrap_or_else(|_| file.clone()));
        let mut files: Vec<(PathBuf, PathBuf)> = resolved.zip(files.iter().cloned()).collect();
        files.sort();
        files.dedup_by(|(one, _), (other, _)| one == other);
        let files: Vec<_> = files.into_iter().map(|(_, file)| file).collect();
        let mut found = Self { runs: Vec::new(), files: Vec::new(), warnings: Vec::new() };
        for file in &files {
            found.add(file)?;
        }
        if found.runs.is_empty() {
            return Err(BenchError::Option(format!("no known benchmark: {}", found.warnings.join("; "))));
        }
        found.files = files;
        found.sort();
        Ok(found)
    }

    fn add(&mut self, file: &Path) -> Result<()> {
        let invalid =
            |reason: String| BenchError::io("read", file, std::io::Error::new(std::io::ErrorKind::InvalidData, reason));
        let mut text = String::new();
        let opened = File::open(file).and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
        if opened.map_err(|source| BenchError::io("read", file, source))? as u64 > FILE_BYTES_MAX {
            return Err(invalid(format!("it is longer than {} MiB", FILE_BYTES_MAX >> 20)));
        }
        let report = Report::from_json(&text).map_err(|error| invalid(error.to_string()))?;
        if BENCHMARKS.contains(&report.benchmark.as_str()) {
            self.runs.push(StoredRun::new(file, report));
        } else {
            let name: String = report.benchmark.escape_debug().take(NAME_CHARS_MAX).collect();
            let file = file.to_string_lossy();
            self.warnings.push(format!("{}: left out, its benchmark \"{name}\" is unknown", file.escape_debug()));
        }
        Ok(())
    }

    fn sort(&mut self) {
        self.runs.sort_by_cached_key(|run| {
            let turns = run.report.rows.iter().map(turns).max().unwrap_or(0);
            let order = (run.date.clone(), turns, run.report.rows.len());
            let is_short = run.report.benchmark == OVERVIEW || run.report.is_quick();
            (is_short, Reverse(order), run.path.len(), run.path.clone())
        });
    }

    pub(super) fn all(&self) -> &[StoredRun] {
        &self.runs
    }

    /// Compares files, not names.
    pub(super) fn has_read(&self, file: &Path) -> bool {
        let number_of = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
        number_of(file).is_some_and(|number| self.files.iter().any(|read| number_of(read) == Some(number)))
    }

    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(super) fn newest(
        &self,
        benchmark: &str,
        rows_min: usize,
        is_kind: impl Fn(&Row) -> bool,
    ) -> Option<&StoredRun> {
        let has_enough = |run: &&StoredRun| run.sound_rows().filter(|row| is_kind(row)).count() >= rows_min;
        self.runs.iter().filter(|run| run.report.benchmark == benchmark).find(has_enough)
    }

    /// Enough sizes for a curve; failing that, two.
    pub(super) fn newest_curve(&self, benchmark: &str, is_kind: impl Fn(&Row) -> bool) -> Option<&StoredRun> {
        let has_sizes = |run: &&StoredRun, least: usize| {
            let sizes = run.sound_rows().filter(|row| is_kind(row)).filter_map(|row| row.config.payload_bytes);
            sizes.collect::<BTreeSet<_>>().len() >= least
        };
        let of_benchmark = || self.runs.iter().filter(|run| run.report.benchmark == benchmark);
        of_benchmark().find(|run| has_sizes(run, CURVE_SIZES)).or_else(|| of_benchmark().find(|run| has_sizes(run, 2)))
    }
}

impl StoredRun {
    pub(super) fn new(file: &Path, report: Report) -> Self {
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let resolved = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let file_name = name(&resolved).unwrap_or_default();
        let folder = resolved.parent().and_then(name);
        let path = folder.map_or_else(|| file_name.clone(), |folder| format!("{folder}/{file_name}"));
        let date = resolved.ancestors().skip(1).filter_map(name).find(|folder| is_day(folder));
        Self { path, date, report }
    }

    pub(super) fn extent(&self) -> &'static str {
        match (self.report.is_quick(), self.report.is_interrupted()) {
            (true, true) => "short, interrupted",
            (true, false) => "short",
            (false, true) => "interrupted",
            (false, false) => "whole",
        }
    }

    pub(super) fn sound_rows(&self) -> impl Iterator<Item = &Row> {
        self.report.rows.iter().filter(|row| row.failure().is_none() && row.missed_rate_per_s().is_none())
    }
}

fn turns(row: &Row) -> usize {
    let of_turns = row.extra.get("turns").and_then(|turns| turns["throughput_per_s"].as_array());
    of_turns.map_or(0, Vec::len)
}

fn is_day(name: &str) -> bool {
    let parts: Vec<_> = name.split('-').collect();
    let is_number = |part: &str, digits: usize, range: RangeInclusive<u16>| {
        part.len() == digits && part.parse().is_ok_and(|number| range.contains(&number))
    };
    matches!(parts[..], [year, month, day]
        if is_number(year, 4, 2000..=2999) && is_number(month, 2, 1..=12) && is_number(day, 2, 1..=31))
}

/// Links to directories are not followed, because of loops. Only files are read: reading a pipe would block.
fn find(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |source| BenchError::io("read", directory, source);
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        if kind.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            let target = std::fs::metadata(&path).map_err(|source| BenchError::io("read", &path, source))?;
            if !target.is_file() {
                return Err(BenchError::Option(format!("{}: it is no file", path.display())));
            }
            files.push(path);
        }
    }
    Ok(())
}

/// Many commands in flight, and for Axon our load. Axon's rows without a setup are of an older program, which was no
/// fair comparison.
pub(super) fn has_our_load(row: &Row) -> bool {
    if is_axon(row) {
        return config(row, "setup") == "ours";
    }
    config_number(row, "in_flight") != Some(1)
}

pub(super) fn is_axon(row: &Row) -> bool {
    row.config.name.as_deref().is_some_and(|name| name.starts_with("axon"))
}

pub(super) fn config(row: &Row, key: &str) -> String {
    match row.config.value(key) {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}
