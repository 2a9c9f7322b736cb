//! `gapless bench compare A B`: whether one build is slower than another, on a machine whose clock cannot be trusted.
//!
//! | module | what lives there |
//! |---|---|
//! | this | pairs of runs until the intervals are narrow |
//! | `build` | programs, or git revisions that are built |
//! | `workload` | the workload of both, and which figures of a row are compared |
//! | `verdict` | the pairs of one figure, and the verdict on them |
//! | `instructions` | the counts of callgrind where the clock cannot decide |
//! | `started` | a program that runs until its end or until the comparison is interrupted |
//! | `table` | the table, the JSON and the help |
//!
//! Each pair runs both builds one after the other, alternating which goes first, each with the floors that the benchmark
//! measures in the same run: if these differ between the builds, it was the machine.

mod build;
mod instructions;
mod started;
mod table;
mod verdict;
mod workload;

use crate::own_directory::OwnDirectory;
use crate::statistics::{RatioInterval, interval, pairs_min};
use crate::{BenchError, Result};
use build::{Build, BuildSource};
use clap::{Args, ValueEnum};
use gapless_measure::progress::BenchProgress;
use gapless_measure::reporting::JsonArguments;
use gapless_measure::{Report, Row};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
pub use table::help;
use verdict::{BuildVerdict, Series};
use workload::{ComparedFigure, DEFAULT, Workload, row_name};

const NAME: &str = "compare";
/// Greatest probability that any verdict of a comparison is wrong.
const ERROR: f64 = 0.05;
const FLOOR: &str = "shm_ping_pong";

/// Options of the benchmark.
#[derive(Debug, Clone, Args)]
pub struct CompareArguments {
    /// Build to compare with: path of a program, or a git revision, which is built below target/compare
    #[arg(value_name = "A")]
    pub a: String,

    /// Build to compare, given as A is
    #[arg(value_name = "B")]
    pub b: String,

    /// Runs of both: direct, indirect, latency, clustered, clustered-latency, messaging, sequencer, or a benchmark with its
    /// options in quotes; may be given again [default: direct, indirect and latency]
    #[arg(long = "run", value_name = "WHAT")]
    pub runs: Vec<String>,

    /// Maximum number of pairs of runs; fewer once each interval is narrow
    #[arg(long, value_name = "PAIRS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(6..=1_000))]
    pub pairs_max: u32,

    /// An interval is narrow once its ends are no farther from its middle, percent; with 0 all pairs are run
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, value_parser = percent)]
    pub width: f64,

    /// B is slower, which ends the program with 3, if it is slower for certain and by more than this, percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub tolerance: f64,

    /// Count instructions by callgrind, if it is installed, of each run that can be counted: where the clock does not decide,
    /// always, or never
    #[arg(long, value_name = "WHEN", default_value = "undecided", default_missing_value = "always", num_args = 0..=1,
        require_equals = true)]
    pub instructions: CountingMode,

    #[command(flatten)]
    pub json: JsonArguments,
}

/// The runs that callgrind counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CountingMode {
    /// Runs with a figure that the clock cannot decide.
    Undecided,
    /// All.
    Always,
    /// No run.
    Never,
}

fn percent(text: &str) -> std::result::Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number of percent, such as 3 or 0.5")?;
    if (0.0..=100.0).contains(&number) { Ok(number) } else { Err("expected 0 to 100 percent".to_owned()) }
}

struct InstructionCounts {
    workload: String,
    a: Vec<f64>,
    b: Vec<f64>,
}

const PAIRS_COUNTED: u32 = 3;

fn failed(reason: impl ToString) -> BenchError {
    BenchError::measurement(NAME, reason)
}

/// Returns the text to print, and the end of the comparison: [`BenchError::Slower`] if B is slower, another error if it
/// was cut short.
///
/// # Errors
/// Builds that are not there or cannot be built, a report that cannot be written.
pub fn run(arguments: &CompareArguments, interrupted: &AtomicBool) -> Result<(String, Result<()>)> {
    let given: Vec<&str> = match arguments.runs.is_empty() {
        true => DEFAULT.to_vec(),
        false => arguments.runs.iter().map(String::as_str).collect(),
    };
    let workloads = given.into_iter().map(Workload::find).collect::<Result<Vec<_>>>()?;
    let (a, b) = (BuildSource::find(&arguments.a)?, BuildSource::find(&arguments.b)?);
    let (a, b) = (a.build(interrupted)?, b.build(interrupted)?);
    let quiet = arguments.json.is_on_stdout();
    let progress = BenchProgress::new(workloads.len() as u64 * u64::from(arguments.pairs_max), NAME, quiet);
    let mut report = Report::new(NAME);
    report.extra.insert("a".to_owned(), json!(a.name));
    report.extra.insert("b".to_owned(), json!(b.name));
    let is_interrupted = || interrupted.load(Ordering::Relaxed);
    let mut comparison = BuildComparison { arguments, a: &a, b: &b, error: ERROR / workloads.len() as f64, report };
    let (mut all, mut counted) = (Vec::new(), Vec::new());
    let mut outcome = Ok(());
    for (index, workload) in workloads.iter().enumerate() {
        progress.set_position(index as u64 * u64::from(arguments.pairs_max));
        progress.set_label(&workload.name);
        let mut found = Vec::new();
        outcome = comparison.pairs(workload, &mut found, &progress, interrupted);
        // A later failure does not lose the results so far.
        found.iter().for_each(|series| progress.line(&series.summary()));
        let is_open = found.iter().any(|series| series.verdict() == BuildVerdict::Undecided);
        all.extend(found);
        if outcome.is_err() || is_interrupted() {
            break;
        }
        let is_counted = match arguments.instructions {
            CountingMode::Undecided => is_open,
            CountingMode::Always => true,
            CountingMode::Never => false,
        };
        if is_counted && workload.can_be_counted() {
            progress.set_label(&format!("{}, instructions", workload.name));
            counted.extend(comparison.count(workload, interrupted));
        }
    }
    progress.finish();
    if is_interrupted() && outcome.is_ok() {
        outcome = Err(failed("interrupted; what stands above are the pairs that were complete"));
    }
    let mut report = comparison.report;
    note_machine(&all, &mut report);
    if let Err(error) = &outcome {
        report.notes.push(format!("not measured to its end: {error}"));
    }
    report.rows = all.iter().map(table::json_row).chain(counted.iter().map(table::json_counted)).collect();
    let has_nothing_to_say = quiet || all.is_empty();
    let text = if has_nothing_to_say { String::new() } else { table::text(&report, &a, &b, &all, &counted) };
    if outcome.is_ok() && all.iter().any(|series| series.verdict() == BuildVerdict::Slower) {
        outcome = Err(BenchError::Slower(arguments.b.clone(), arguments.a.clone()));
    }
    if let Err(error) = arguments.json.write(&report) {
        outcome = Err(error);
    }
    Ok((text, outcome))
}

struct BuildComparison<'a> {
    arguments: &'a CompareArguments,
    a: &'a Build,
    b: &'a Build,
    error: f64,
    report: Report,
}

impl BuildComparison<'_> {
    fn pairs(
        &mut self,
        workload: &Workload,
        all: &mut Vec<Series>,
        progress: &BenchProgress,
        interrupted: &AtomicBool,
    ) -> Result<()> {
        let is_interrupted = || interrupted.load(Ordering::Relaxed);
        let scratch = scratch()?;
        let begun = progress.position();
        let mut left_out = 0;
        for pair in 0..self.arguments.pairs_max {
            if is_interrupted() {
                break;
            }
            // The first of a pair meets another state of the machine: A and B take turns.
            let run = |build: &Build| workload.run(&build.program, scratch.path(), interrupted);
            let ran = if pair % 2 == 0 {
                run(self.a).and_then(|first| Ok((first, run(self.b)?)))
            } else {
                run(self.b).and_then(|first| Ok((run(self.a)?, first)))
            };
            if is_interrupted() {
                break;
            }
            let (of_a, of_b) = ran?;
            progress.set_position(begun + u64::from(pair) + 1);
            if of_a.rows.iter().chain(&of_b.rows).any(Row::has_missed_rate) {
                left_out += 1;
                continue;
            }
            self.add(all, workload, &of_a, &of_b)?;
            if let Err(error) = self.are_enough(all) {
                all.clear();
                return Err(error);
            }
            if all.iter().all(Series::is_narrow) {
                break;
            }
        }
        if left_out > 0 {
            self.report.notes.push(format!(
                "{}: {left_out} pairs are left out: the asked rate was not reached, their latencies are no result",
                workload.name
            ));
        }
        match all.is_empty() && !is_interrupted() {
            true => Err(failed(format!("{}: the asked rate was never reached", workload.name))),
            false => Ok(()),
        }
    }

    /// Refuses fewer pairs than an interval takes, as soon as the number of figures that share the error is known.
    fn are_enough(&self, all: &[Series]) -> Result<()> {
        let least = all.iter().filter_map(|series| pairs_min(series.error)).max().unwrap_or_default();
        match usize::try_from(self.arguments.pairs_max) {
            Ok(most) if most < least => Err(BenchError::Option(format!(
                "--pairs-max {most}: the intervals of so many figures take {least} pairs at least"
            ))),
            _ => Ok(()),
        }
    }

    fn add(&self, all: &mut Vec<Series>, workload: &Workload, of_a: &Report, of_b: &Report) -> Result<()> {
        let names = |report: &Report| report.rows.iter().map(row_name).collect::<Vec<_>>();
        if names(of_a) != names(of_b) {
            let (a, b) = (names(of_a), names(of_b));
            return Err(failed(format!("{}: the builds measure different rows: {a:?} and {b:?}", workload.name)));
        }
        let rows = of_a.rows.iter().zip(&of_b.rows);
        let figures = rows.flat_map(|(row_a, row_b)| {
            let values = move |figure: ComparedFigure| Some((row_a, figure, figure.of(row_a)?, figure.of(row_b)?));
            ComparedFigure::ALL.into_iter().filter_map(values)
        });
        let figures: Vec<_> = figures.collect();
        if figures.is_empty() {
            return Err(failed(format!("{}: it has no figure that could be compared", workload.name)));
        }
        if all.is_empty() {
            let (width, tolerance) = (self.arguments.width / 100.0, self.arguments.tolerance / 100.0);
            let error = self.error / figures.len() as f64;
            all.extend(figures.iter().map(|(row, figure, ..)| Series {
                workload: workload.name.clone(),
                row: Row { config: row.config.clone(), ..Row::default() },
                figure: *figure,
                width,
                tolerance,
                error,
                a: Vec::new(),
                b: Vec::new(),
                floor_a: Vec::new(),
                floor_b: Vec::new(),
            }));
        }
        if all.len() != figures.len() || all.iter().zip(&figures).any(|(series, found)| series.figure != found.1) {
            return Err(failed(format!("{}: a figure is missing in one run", workload.name)));
        }
        let floor =
            |report: &Report| report.floor.iter().find(|floor| floor.name == FLOOR).and_then(|floor| floor.p50_ns);
        for (series, (.., value_a, value_b)) in all.iter_mut().zip(figures) {
            series.a.push(value_a);
            series.b.push(value_b);
            if let (Some(floor_a), Some(floor_b)) = (floor(of_a), floor(of_b)) {
                series.floor_a.push(floor_a.max(1) as f64);
                series.floor_b.push(floor_b.max(1) as f64);
            }
        }
        Ok(())
    }

    fn count(&mut self, workload: &Workload, interrupted: &AtomicBool) -> Option<InstructionCounts> {
        let count = || {
            if !instructions::can_be_counted() {
                return Err(failed("valgrind is not installed"));
            }
            let scratch = scratch()?;
            let mut counted = InstructionCounts { workload: workload.name.clone(), a: Vec::new(), b: Vec::new() };
            for _ in 0..PAIRS_COUNTED {
                for (build, counts) in [(self.a, &mut counted.a), (self.b, &mut counted.b)] {
                    if interrupted.load(Ordering::Relaxed) {
                        return Err(failed("interrupted"));
                    }
                    counts.push(instructions::per_message(build, workload, scratch.path(), interrupted)?);
                }
            }
            Ok(counted)
        };
        let counted = count();
        match counted {
            Ok(counted) => Some(counted),
            Err(error) => {
                self.report.notes.push(format!("{}: instructions were not counted: {error}", workload.name));
                None
            }
        }
    }
}

/// Differing floors mean that it was the machine.
fn note_machine(all: &[Series], report: &mut Report) {
    let mut noted: Vec<&str> = Vec::new();
    for series in all {
        let ratios: Vec<f64> = series.floor_a.iter().zip(&series.floor_b).map(|(a, b)| b / a).collect();
        let differs = interval(&ratios, ERROR).filter(|interval| interval.low > 1.0 || interval.high < 1.0);
        if let Some(RatioInterval { ratio, .. }) = differs
            && !noted.contains(&&*series.workload)
        {
            noted.push(&series.workload);
            report.notes.push(format!(
                "{}: the bare ping-pong beside B took {ratio:.2} of the time of that beside A: the machine was not the same \
                 for both",
                series.workload
            ));
        }
    }
}

fn scratch() -> Result<OwnDirectory> {
    OwnDirectory::create(&std::env::temp_dir(), &format!("gapless-compare-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_measure::RowConfig;

    #[test]
    fn different_rows_are_an_error() {
        let report = |encoding: &str, figure: Option<f64>| {
            let config = RowConfig { encoding: Some(encoding.to_owned()), ..RowConfig::default() };
            let row = Row { config, throughput_per_s: figure, ..Row::default() };
            Report { rows: vec![row], ..Report::default() }
        };
        let build = Build { name: "x".to_owned(), program: std::path::PathBuf::new() };
        let arguments = CompareArguments {
            a: String::new(),
            b: String::new(),
            runs: Vec::new(),
            pairs_max: 20,
            width: 3.0,
            tolerance: 0.0,
            instructions: CountingMode::Never,
            json: JsonArguments::default(),
        };
        let comparison =
            BuildComparison { arguments: &arguments, a: &build, b: &build, error: ERROR, report: Report::default() };
        let workload = Workload::find("direct").expect("it has a name");
        let mut all = Vec::new();
        let some = report("x", Some(1.0));
        assert!(comparison.add(&mut all, &workload, &some, &some).is_ok());
        for (other, expected) in
            [(report("y", Some(1.0)), "different rows"), (report("x", None), "no figure that could be compared")]
        {
            let error = comparison.add(&mut all, &workload, &some, &other).expect_err("they differ").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
