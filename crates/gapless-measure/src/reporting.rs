//! From a measurement to its report, interrupted or not.

use crate::progress::Progress;
use crate::{BenchError, Result};
use crate::{LatencyNs, Report, Row, plot};
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The options of a benchmark that prints a table, and may write and draw its report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct OutputArguments {
    /// Write the results as one JSON object; - is stdout, and then nothing else is printed there
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(crate::output_file))]
    pub json: Option<PathBuf>,

    /// Draw the figures as a picture
    #[arg(long, value_name = "FILE.svg", value_parser = PathBufValueParser::new().try_map(crate::output_file))]
    pub plot: Option<PathBuf>,

    /// Little of everything, to see that it works
    #[arg(long)]
    pub quick: bool,
}

impl OutputArguments {
    /// Checks, before a long run, that a picture can be drawn there.
    ///
    /// # Errors
    /// A place for the picture that is no file.
    pub fn check(&self) -> Result<()> {
        refuse_same_file(&self.json, &self.plot)?;
        match &self.plot {
            Some(path) if path.file_stem().is_none() => {
                Err(BenchError::Option("--plot: expected the name of a file, as figures.svg".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// Refuses one file for the report and the picture.
///
/// # Errors
/// They are the same.
pub fn refuse_same_file(json: &Option<PathBuf>, plot: &Option<PathBuf>) -> Result<()> {
    let is_same = json.is_some() && json == plot;
    if is_same { Err(BenchError::Option("--json and --plot name the same file".to_owned())) } else { Ok(()) }
}

/// What a benchmark is called, and how its report is shown.
pub struct Shown {
    pub benchmark: &'static str,
    /// Of the measurement, for its progress.
    pub steps: usize,
    pub notes: Vec<String>,
    pub text: fn(&Report) -> String,
    pub draw: fn(&Report, &Path) -> Result<()>,
}

/// A measurement under way.
pub struct Run<'a> {
    pub report: Report,
    pub interrupted: &'a AtomicBool,
    benchmark: &'static str,
    progress: Progress,
    step: u64,
}

impl<'a> Run<'a> {
    /// Measures and reports, what was measured until an interrupt, too. Returns the report, and the text to print: none if the JSON
    /// goes to stdout.
    pub fn of(
        shown: Shown,
        output: &OutputArguments,
        interrupted: &'a AtomicBool,
        measure: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<(Report, String)> {
        let Shown { benchmark, steps, notes, text, draw } = shown;
        let is_quiet = output.json.as_deref() == Some(Path::new("-"));
        let progress = Progress::new(steps as u64, benchmark, is_quiet);
        let mut run = Self { report: Report::new(benchmark), interrupted, benchmark, progress, step: 0 };
        let measured = measure(&mut run);
        run.progress.finish();
        let mut report = run.report;
        if let Err(error) = measured {
            if !is_set(interrupted) {
                return Err(error);
            }
            report.notes.push("interrupted: the rows that are missing were not measured".to_owned());
        }
        report.notes.extend(notes);
        if let Some(path) = &output.plot {
            draw(&report, path)?;
        }
        if let Some(target) = &output.json {
            report.write_json(target)?;
        }
        let text = if is_quiet { String::new() } else { text(&report) };
        Ok((report, text))
    }

    /// The next step begins.
    ///
    /// # Errors
    /// The benchmark was interrupted.
    pub fn next(&mut self, what: &str) -> Result<()> {
        self.progress.set_label(what);
        self.progress.set_position(self.step);
        self.step += 1;
        check_interrupted(self.benchmark, self.interrupted)
    }
}

fn is_set(interrupted: &AtomicBool) -> bool {
    // Relaxed: the flag guards no data (pairs with the store of the signal handler).
    interrupted.load(Ordering::Relaxed)
}

/// An error if the benchmark was interrupted.
///
/// # Errors
/// That.
pub fn check_interrupted(benchmark: &'static str, interrupted: &AtomicBool) -> Result<()> {
    if is_set(interrupted) { Err(BenchError::measurement(benchmark, "interrupted")) } else { Ok(()) }
}

/// A latency against its percentile: 90 % is one nine, 99 % are two.
pub fn percentiles(name: String, latency: LatencyNs) -> plot::Curve {
    let of = [(50.0_f64, latency.p50), (90.0, latency.p90), (99.0, latency.p99), (99.9, latency.p99_9)];
    let points = of.map(|(percent, ns)| (-(1.0 - percent / 100.0).log10(), ns as f64 / 1000.0));
    plot::Curve { name, points: points.into() }
}

/// What [`percentiles`] stand on.
pub const PERCENTILE_LABEL: &str = "percentile, nines: 1 is 90 %, 2 is 99 %, 3 is 99.9 %";

/// Draws curves of a report under a title, with what its axes are.
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

/// A text of the row's configuration.
pub fn of_config<'row>(row: &'row Row, key: &str) -> &'row str {
    row.config.extra.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Adds a figure to a row beside the usual ones.
pub fn put(row: &mut Row, key: &str, value: impl Into<Value>) {
    row.extra.insert(key.to_owned(), value.into());
}

/// A number that the row has beside the usual ones.
pub fn number(row: &Row, key: &str) -> Option<f64> {
    row.extra.get(key).and_then(Value::as_f64)
}
