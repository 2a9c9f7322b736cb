//! From a measurement to its report, interrupted or not.

use super::failed;
use gapless_measure::{BenchError, Result};
use gapless_report::progress::Progress;
use gapless_report::{Report, ReportError, Row, plot};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A measurement under way.
pub(crate) struct Run<'a> {
    pub(crate) report: Report,
    pub(crate) interrupted: &'a AtomicBool,
    progress: Progress,
    step: u64,
}

impl<'a> Run<'a> {
    /// Measures; what was measured until an interrupt is reported. `json` as in the options of the benchmark: on stdout
    /// nothing else is printed, and then there is no report to print.
    pub(crate) fn of(
        benchmark: &str,
        steps: usize,
        (json, interrupted): (Option<&Path>, &'a AtomicBool),
        measure: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<(Report, bool)> {
        let is_quiet = json == Some(Path::new("-"));
        let progress = Progress::new(steps as u64, benchmark, is_quiet);
        let mut run = Self { report: Report::new(benchmark), interrupted, progress, step: 0 };
        let measured = measure(&mut run);
        run.progress.finish();
        if let Err(error) = measured {
            if !is_set(interrupted) {
                return Err(error);
            }
            run.report.notes.push("interrupted: the rows that are missing were not measured".to_owned());
        }
        Ok((run.report, is_quiet))
    }

    /// The next step begins.
    ///
    /// # Errors
    /// The benchmark was interrupted.
    pub(crate) fn next(&mut self, what: &str) -> Result<()> {
        self.progress.set_label(what);
        self.progress.set_position(self.step);
        self.step += 1;
        check_interrupted(self.interrupted)
    }
}

fn is_set(interrupted: &AtomicBool) -> bool {
    // Relaxed: the flag guards no data (pairs with the store of the signal handler).
    interrupted.load(Ordering::Relaxed)
}

/// An error if the benchmark was interrupted.
pub(crate) fn check_interrupted(interrupted: &AtomicBool) -> Result<()> {
    if is_set(interrupted) { Err(failed("interrupted")) } else { Ok(()) }
}

/// Checks, before a long run, that a picture can be drawn there.
pub(crate) fn check_plot(path: Option<&PathBuf>) -> Result<()> {
    match path {
        Some(path) if path.file_stem().is_none() => {
            Err(BenchError::Option("--plot: expected the name of a file, as rpc.svg".to_owned()))
        }
        Some(_) => Ok(plot::check()?),
        None => Ok(()),
    }
}

/// Draws the curves.
pub(crate) fn draw(curves: &plot::Curves, path: &Path) -> Result<()> {
    plot::write_curves(curves, path).map_err(|error| match error {
        ReportError::Plot(_) => failed(error.to_string()),
        error => error.into(),
    })
}

/// A text of the row's configuration.
pub(crate) fn of_config<'row>(row: &'row Row, key: &str) -> &'row str {
    row.config.extra.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A number that the row has beside the usual ones.
pub(crate) fn number(row: &Row, key: &str) -> Option<f64> {
    row.extra.get(key).and_then(Value::as_f64)
}
