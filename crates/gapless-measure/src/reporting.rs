//! From a measurement to its report, interrupted or not.

use crate::floor::{FloorKind, FloorPlan};
use crate::output_file::is_same_file;
use crate::progress::BenchProgress;
use crate::statistics::{median, range};
use crate::table::{RowColumn, in_words};
use crate::{BenchError, Result};
use crate::{LatencyNs, Report, Row, RowConfig, output_file, plot};
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The option of a benchmark that may write its report.
#[derive(Debug, Clone, Default, Args)]
pub struct JsonArguments {
    /// Write the results as one JSON object; - is stdout, and then nothing else is printed there
    #[arg(long, value_name = "FILE", value_parser = output_path())]
    pub json: Option<PathBuf>,
}

impl JsonArguments {
    pub fn is_on_stdout(&self) -> bool {
        self.json.as_deref() == Some(Path::new("-"))
    }

    pub fn write(&self, report: &Report) -> Result<()> {
        self.json.as_ref().map_or(Ok(()), |target| report.write_json(target))
    }
}

/// The options of a benchmark that prints a table, and may write and draw its report.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputArguments {
    #[command(flatten)]
    pub json: JsonArguments,

    /// Draw the figures as a picture
    #[arg(long, value_name = "FILE.svg", value_parser = output_path())]
    pub plot: Option<PathBuf>,

    /// Little of everything, to see that it works
    #[arg(long)]
    pub quick: bool,
}

pub fn output_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(output_file)
}

impl OutputArguments {
    /// Checks before a long run.
    ///
    /// # Errors
    /// A place for the picture that is no file.
    pub fn check(&self) -> Result<()> {
        if let (Some(json), Some(plot)) = (&self.json.json, &self.plot)
            && is_same_file(json, plot)
        {
            return Err(BenchError::Option("--json and --plot name the same file".to_owned()));
        }
        match &self.plot {
            Some(path) if path.file_stem().is_none() || path.as_os_str() == "-" => {
                Err(BenchError::Option("--plot: expected the name of a file, as figures.svg".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

pub struct ReportLayout {
    pub benchmark: &'static str,
    pub steps: usize,
    pub notes: Vec<String>,
    pub text: fn(&Report) -> String,
    pub draw: fn(&Report, &Path) -> Result<()>,
}

pub struct BenchRun<'a> {
    pub report: Report,
    pub interrupted: &'a AtomicBool,
    benchmark: &'static str,
    progress: BenchProgress,
    /// Another measurement prints its rows.
    is_part: bool,
    step: u64,
}

impl<'a> BenchRun<'a> {
    /// Measures, and reports also the rows until an interrupt. Returns the report, and the text to print: none if the
    /// JSON goes to stdout.
    pub fn of(
        shown: ReportLayout,
        output: &OutputArguments,
        interrupted: &'a AtomicBool,
        measure: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<(Report, String)> {
        let ReportLayout { benchmark, steps, notes, text, draw } = shown;
        let is_quiet = output.json.is_on_stdout();
        let progress = BenchProgress::new(steps as u64, benchmark, is_quiet);
        let mut run =
            Self { report: Report::new(benchmark), interrupted, benchmark, progress, is_part: false, step: 0 };
        let measured = measure(&mut run);
        let BenchRun { mut report, progress, .. } = run;
        progress.finish();
        if let Err(error) = measured {
            if !is_set(interrupted) {
                return Err(error);
            }
            report.notes.push(INTERRUPTED.to_owned());
        }
        report.notes.extend(notes);
        let text = if is_quiet { String::new() } else { text(&report) };
        let draw = || output.plot.as_ref().map_or(Ok(()), |path| draw(&report, path));
        if let Err(error) = output.json.write(&report).and_then(|()| draw()) {
            // A failed write must not lose the figures.
            progress.line(&text);
            return Err(error);
        }
        Ok((report, text))
    }

    /// A part of another measurement, which prints the report and whose bar it moves.
    pub fn part(benchmark: &'static str, progress: &BenchProgress, interrupted: &'a AtomicBool) -> Self {
        let report = Report { benchmark: benchmark.to_owned(), ..Report::default() };
        Self { report, interrupted, benchmark, progress: progress.clone(), is_part: true, step: progress.position() }
    }

    pub fn next(&mut self, what: &str) -> Result<()> {
        self.progress.set_label(what);
        self.progress.set_position(self.step);
        self.step += 1;
        check_interrupted(self.benchmark, self.interrupted)
    }

    pub fn line(&self, text: &str) {
        if !self.is_part {
            self.progress.line(text);
        }
    }

    pub fn add(&mut self, row: Row, columns: &[RowColumn]) {
        self.line(&in_words(columns, &row));
        self.report.rows.push(row);
    }
}

pub const INTERRUPTED: &str = "interrupted: the rows that are missing were not measured";

pub fn is_set(interrupted: &AtomicBool) -> bool {
    interrupted.load(Ordering::Relaxed)
}

pub fn check_interrupted(benchmark: &'static str, interrupted: &AtomicBool) -> Result<()> {
    if is_set(interrupted) { Err(BenchError::measurement(benchmark, "interrupted")) } else { Ok(()) }
}

/// Curve over nines: 90 % is one, 99 % are two.
pub fn percentiles(name: String, latency: LatencyNs) -> plot::Curve {
    let of = [(50.0_f64, latency.p50), (90.0, latency.p90), (99.0, latency.p99), (99.9, latency.p99_9)];
    plot::Curve { name, points: of.map(|(percent, ns)| (nines(percent), ns as f64 / 1000.0)).into() }
}

/// 1 for 90 %, 2 for 99 %.
pub fn nines(percent: f64) -> f64 {
    -(1.0 - percent / 100.0).log10()
}

pub const PERCENTILE_LABEL: &str = "percentile, nines: 1 is 90 %, 2 is 99 %, 3 is 99.9 %";

pub fn draw(
    report: &Report,
    (title, x_label, y_label): (&str, &str, &str),
    curves: Vec<plot::Curve>,
    path: &Path,
) -> Result<()> {
    let machine = report.environment.summary();
    let curves = plot::Curves {
        title: title.to_owned(),
        subtitle: machine.lines().next().unwrap_or_default().to_owned(),
        x_label: x_label.to_owned(),
        y_label: y_label.to_owned(),
        curves,
    };
    plot::write_curves(&curves, path)
}

pub fn of_config<'row>(row: &'row Row, key: &str) -> &'row str {
    row.config.extra.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub fn config_number(row: &Row, key: &str) -> Option<u64> {
    row.config.extra.get(key).and_then(Value::as_u64)
}

pub fn keys(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(keys) => keys,
        _ => Map::new(),
    }
}

pub fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// `reason` says how a missing system is installed.
pub fn not_measured(config: RowConfig, reason: &str) -> Row {
    let mut row = Row { config, ..Row::default() };
    put(&mut row, NOT_MEASURED, reason);
    row
}

pub const NOT_MEASURED: &str = "not_measured";

/// Median, least and greatest.
pub fn put_rates(row: &mut Row, rates: &[f64]) {
    row.throughput_per_s = Some(median(rates).round());
    let (least, greatest) = range(rates);
    put(row, "throughput_min_per_s", least.round());
    put(row, "throughput_max_per_s", greatest.round());
}

/// A floor that could not be measured becomes a note.
pub fn measure_floors(report: &mut Report, directory: &Path, items: Vec<(FloorKind, u64)>, time_limit: Duration) {
    let measured = FloorPlan { time_limit, ..FloorPlan::new(directory, items) }.measure();
    report.floor.extend(measured.rows);
    report.notes.extend(measured.skipped);
}

pub fn compare(row: &mut Row, report: &Report, floor: FloorKind, payload_bytes: u64) {
    if let Some(floor) = report.floor_row(floor.name(), payload_bytes) {
        row.compare_with(floor);
    }
}

pub fn put(row: &mut Row, key: &str, value: impl Into<Value>) {
    row.extra.insert(key.to_owned(), value.into());
}

pub fn number(row: &Row, key: &str) -> Option<f64> {
    row.extra.get(key).and_then(Value::as_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_written_before_the_picture() {
        let folder = tempfile::tempdir().unwrap();
        let (json, nowhere) = (folder.path().join("run.json"), folder.path().join("gone/run.svg"));
        let output =
            OutputArguments { json: JsonArguments { json: Some(json.clone()) }, plot: Some(nowhere), quick: false };
        let shown = ReportLayout {
            benchmark: "test",
            steps: 1,
            notes: Vec::new(),
            text: |report| format!("{} rows", report.rows.len()),
            draw: |_, path| std::fs::write(path, "").map_err(|source| BenchError::io("write", path, source)),
        };
        let error = BenchRun::of(shown, &output, &AtomicBool::new(false), |run| run.next("a row")).unwrap_err();
        assert!(error.to_string().contains("run.svg"), "{error}");
        assert!(Report::from_json(&std::fs::read_to_string(json).unwrap()).unwrap().rows.is_empty());
    }
}
