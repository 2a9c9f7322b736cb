//! `gapless bench compare A B`: whether one build is slower than another, on a machine whose clock cannot be trusted.
//!
//! | module | what lives there |
//! |---|---|
//! | this | pairs of runs until the intervals are narrow; the verdicts, the table, the JSON |
//! | `build` | programs, or git revisions that are built |
//! | `workload` | what both run, and which figures of a row are compared |
//! | `instructions` | what callgrind counts where the clock cannot decide |
//!
//! Each pair runs both builds one after the other, in turns which of them first, each with the floors that the benchmark
//! measures in the same run: if these differ between the builds, it was the machine.

mod build;
mod instructions;
mod workload;

use crate::statistics::{Interval, interval, median};
use crate::{BenchError, Result};
use build::Build;
use clap::Args;
use gapless_report::progress::Progress;
use gapless_report::table::{Table, TableStyle, rate};
use gapless_report::{Report, Row, RowConfig};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use workload::{DEFAULT, Figure, NAMED, Workload, row_name};

/// The benchmark's name.
const NAME: &str = "compare";
/// All verdicts of a comparison together are wrong in at most this part of all comparisons, and so is each interval.
const ERROR: f64 = 0.05;
/// The floor that stands beside each run.
const FLOOR: &str = "shm_ping_pong";

/// What it takes.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct CompareArguments {
    /// The build to compare with: the path of a program, or a git revision, which is built below target/compare
    #[arg(value_name = "A")]
    pub a: String,

    /// The build that is compared: as A
    #[arg(value_name = "B")]
    pub b: String,

    /// What both run: direct, indirect, latency, clustered, clustered-latency, messaging, sequencer, or a benchmark with its
    /// options in quotes; may be given again [default: direct, indirect and latency]
    #[arg(long = "run", value_name = "WHAT")]
    pub runs: Vec<String>,

    /// Pairs of runs, at most; fewer once each interval is narrow
    #[arg(long, value_name = "PAIRS", default_value_t = 20, value_parser = clap::value_parser!(u32).range(6..=1_000))]
    pub pairs_max: u32,

    /// An interval is narrow once its ends are no farther from its middle, percent
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, value_parser = percent)]
    pub width: f64,

    /// B is slower, which ends the program with 3, if it is slower for certain and by more than this, percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
    pub tolerance: f64,

    /// Count instructions by callgrind for each run that can be counted, not only where the clock does not decide
    #[arg(long)]
    pub instructions: bool,

    /// Write the report as one JSON object; - is stdout, and then nothing else is printed there
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

fn percent(text: &str) -> std::result::Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number of percent, such as 3 or 0.5")?;
    if (0.0..=100.0).contains(&number) { Ok(number) } else { Err("expected 0 to 100 percent".to_owned()) }
}

/// What is said of B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Faster,
    Slower,
    /// The interval is narrow and holds 1.
    Same,
    /// It holds 1 and is wide.
    Undecided,
}

impl Verdict {
    const fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "no difference",
            Self::Undecided => "the clock cannot decide",
        }
    }
}

/// One figure of one row, of both builds, a value for each pair.
struct Series {
    workload: String,
    row: Row,
    figure: Figure,
    a: Vec<f64>,
    b: Vec<f64>,
    floor_a: Vec<f64>,
    floor_b: Vec<f64>,
}

impl Series {
    fn ratios(&self) -> Vec<f64> {
        self.a.iter().zip(&self.b).map(|(a, b)| b / a).collect()
    }

    fn is_narrow(&self, width: f64) -> bool {
        interval(&self.ratios(), ERROR).is_some_and(|interval| interval.half_width() <= width)
    }

    /// Ratio and interval in a line.
    fn summary(&self) -> String {
        let (run, figure, pairs) = (&self.workload, self.figure.name(), self.a.len());
        match interval(&self.ratios(), ERROR) {
            Some(Interval { low, ratio, high }) => {
                format!("{run}, {figure}: B / A {ratio:.3}, {low:.3}–{high:.3}, {pairs} pairs")
            }
            None => format!("{run}, {figure}: {pairs} pairs are too few"),
        }
    }

    /// `error` is this figure's share of being wrong.
    fn verdict(&self, width: f64, tolerance: f64, error: f64) -> Verdict {
        // Too few pairs for a certain verdict: as wide as can be.
        let Some(Interval { low, high, .. }) = interval(&self.ratios(), error) else { return Verdict::Undecided };
        let (is_more, is_less) = (low > 1.0, high < 1.0);
        let (is_better, is_worse) = if self.figure.more_is_better() {
            (is_more, high < 1.0 - tolerance)
        } else {
            (is_less, low > 1.0 + tolerance)
        };
        match (is_better, is_worse) {
            (true, _) => Verdict::Faster,
            (_, true) => Verdict::Slower,
            _ if self.is_narrow(width) => Verdict::Same,
            _ => Verdict::Undecided,
        }
    }
}

/// Instructions of one workload, of both builds, a value for each pair.
struct Counted {
    workload: String,
    a: Vec<f64>,
    b: Vec<f64>,
}

/// Pairs of counts: they differ little.
const PAIRS_COUNTED: u32 = 3;

fn failed(reason: impl Into<String>) -> BenchError {
    BenchError::Measurement { name: NAME, reason: reason.into() }
}

/// Compares; what to print, and whether B is slower.
///
/// # Errors
/// Builds that are not there or cannot be built, a benchmark that fails in one of them, a report that cannot be written.
pub fn run(arguments: &CompareArguments, interrupted: &AtomicBool) -> Result<(String, bool)> {
    let given: Vec<&str> = match arguments.runs.is_empty() {
        true => DEFAULT.to_vec(),
        false => arguments.runs.iter().map(String::as_str).collect(),
    };
    let workloads = given.into_iter().map(Workload::find).collect::<Result<Vec<_>>>()?;
    let (a, b) = (Build::find(&arguments.a)?, Build::find(&arguments.b)?);
    let quiet = arguments.json.as_deref() == Some(Path::new("-"));
    let progress = Progress::new(workloads.len() as u64 * u64::from(arguments.pairs_max), NAME, quiet);
    let mut report = Report::new(NAME);
    let mut all = Vec::new();
    for (index, workload) in workloads.iter().enumerate() {
        // Relaxed: the flag guards no data.
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        progress.set_position(index as u64 * u64::from(arguments.pairs_max));
        progress.set_label(&workload.name);
        let found = series(arguments, workload, &a, &b, &progress, interrupted)?;
        // What is known already is not lost with what comes behind it.
        found.iter().for_each(|series| progress.line(&series.summary()));
        all.extend(found);
    }
    let (width, tolerance) = (arguments.width / 100.0, arguments.tolerance / 100.0);
    let error = ERROR / all.len().max(1) as f64;
    let verdicts: Vec<Verdict> = all.iter().map(|series| series.verdict(width, tolerance, error)).collect();
    let is_open = |workload: &&Workload| {
        let of = all.iter().zip(&verdicts).filter(|(series, _)| series.workload == workload.name);
        arguments.instructions || of.into_iter().any(|(_, verdict)| *verdict == Verdict::Undecided)
    };
    let mut counted = Vec::new();
    for workload in workloads.iter().filter(is_open).filter(|workload| workload.can_be_counted()) {
        // Relaxed: the flag guards no data.
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        if !instructions::can_be_counted() {
            report.notes.push("instructions were not counted: valgrind is not installed".to_owned());
            break;
        }
        progress.set_label(&format!("{}, instructions", workload.name));
        match count(workload, &a, &b, interrupted) {
            Ok(found) => counted.push(found),
            Err(error) => report.notes.push(format!("{}: instructions were not counted: {error}", workload.name)),
        }
    }
    progress.finish();
    if interrupted.load(Ordering::Relaxed) {
        report.notes.push("interrupted: what stands here are the pairs that were complete".to_owned());
    }
    note_machine(&all, &mut report);
    report.extra.insert("a".to_owned(), json!(a.name));
    report.extra.insert("b".to_owned(), json!(b.name));
    report.rows = all.iter().zip(&verdicts).map(|(series, verdict)| json_row(series, *verdict)).collect();
    report.rows.extend(counted.iter().map(json_counted));
    let slower: Vec<String> = all
        .iter()
        .zip(&verdicts)
        .filter(|(_, verdict)| **verdict == Verdict::Slower)
        .map(|(series, _)| format!("{} of {}", series.figure.name(), series.workload))
        .collect();
    if let Some(target) = &arguments.json {
        report.write_json(target)?;
    }
    let text = if quiet { String::new() } else { text(&report, &a, &b, &all, &verdicts, &counted) };
    Ok((text, !slower.is_empty()))
}

/// Runs pairs of a workload until each interval is narrow, there are enough, or it is interrupted.
fn series(
    arguments: &CompareArguments,
    workload: &Workload,
    a: &Build,
    b: &Build,
    progress: &Progress,
    interrupted: &AtomicBool,
) -> Result<Vec<Series>> {
    let scratch = Scratch::new()?;
    let mut all: Vec<Series> = Vec::new();
    let begun = progress.position();
    for pair in 0..arguments.pairs_max {
        // Whoever runs first meets another machine than who runs second: by turns.
        let run = |build: &Build| workload.run(&build.program, &scratch.0);
        let ran = if pair % 2 == 0 {
            run(a).and_then(|first| Ok((first, run(b)?)))
        } else {
            run(b).and_then(|first| Ok((run(a)?, first)))
        };
        // A run that was cut short by the same Ctrl-C is no error. Relaxed: the flag guards no data.
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        let (of_a, of_b) = ran?;
        add(&mut all, workload, &of_a, &of_b)?;
        progress.set_position(begun + u64::from(pair) + 1);
        if all.iter().all(|series| series.is_narrow(arguments.width / 100.0)) {
            break;
        }
    }
    Ok(all)
}

/// Adds the figures of one pair.
fn add(all: &mut Vec<Series>, workload: &Workload, of_a: &Report, of_b: &Report) -> Result<()> {
    let names = |report: &Report| report.rows.iter().map(row_name).collect::<Vec<_>>();
    if names(of_a) != names(of_b) {
        let reason =
            format!("{}: the builds measure different rows: {:?} and {:?}", workload.name, names(of_a), names(of_b));
        return Err(failed(reason));
    }
    let is_first = all.is_empty();
    let floor = |report: &Report| report.floor.iter().find(|floor| floor.name == FLOOR).and_then(|floor| floor.p50_ns);
    let mut next = 0;
    for (row_a, row_b) in of_a.rows.iter().zip(&of_b.rows) {
        for figure in Figure::ALL {
            let (Some(value_a), Some(value_b)) = (figure.of(row_a), figure.of(row_b)) else { continue };
            if is_first {
                let row = Row { config: row_a.config.clone(), ..Row::default() };
                let (a, b, floor_a, floor_b) = Default::default();
                all.push(Series { workload: workload.name.clone(), row, figure, a, b, floor_a, floor_b });
            }
            let series = all.get_mut(next).filter(|series| series.figure == figure);
            let series = series.ok_or_else(|| failed(format!("{}: a figure is missing in one run", workload.name)))?;
            next += 1;
            series.a.push(value_a);
            series.b.push(value_b);
            if let (Some(floor_a), Some(floor_b)) = (floor(of_a), floor(of_b)) {
                series.floor_a.push(floor_a.max(1) as f64);
                series.floor_b.push(floor_b.max(1) as f64);
            }
        }
    }
    if next == 0 {
        return Err(failed(format!("{}: it has no figure that could be compared", workload.name)));
    }
    Ok(())
}

fn count(workload: &Workload, a: &Build, b: &Build, interrupted: &AtomicBool) -> Result<Counted> {
    let mut counted = Counted { workload: workload.name.clone(), a: Vec::new(), b: Vec::new() };
    for _ in 0..PAIRS_COUNTED {
        let (of_a, of_b) = (instructions::per_message(a, workload)?, instructions::per_message(b, workload)?);
        // Relaxed: the flag guards no data.
        if interrupted.load(Ordering::Relaxed) {
            return Err(failed("interrupted"));
        }
        counted.a.push(of_a);
        counted.b.push(of_b);
    }
    Ok(counted)
}

/// Says so where the floors beside the two builds differ: then it was the machine.
fn note_machine(all: &[Series], report: &mut Report) {
    let mut noted: Vec<&str> = Vec::new();
    for series in all {
        let ratios: Vec<f64> = series.floor_a.iter().zip(&series.floor_b).map(|(a, b)| b / a).collect();
        let differs = interval(&ratios, ERROR).filter(|interval| interval.low > 1.0 || interval.high < 1.0);
        if let Some(Interval { ratio, .. }) = differs
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

fn json_row(series: &Series, verdict: Verdict) -> Row {
    let mut config = series.row.config.clone();
    config.extra.insert("run".to_owned(), json!(series.workload));
    config.extra.insert("figure".to_owned(), json!(series.figure.name()));
    let mut row = Row { config, ..Row::default() };
    let interval = interval(&series.ratios(), ERROR);
    let mut put = |key: &str, value| row.extra.insert(key.to_owned(), value);
    put("unit", json!(series.figure.unit()));
    put("pairs", json!(series.a.len()));
    put("a", json!(series.a));
    put("b", json!(series.b));
    put("floor_a_ns", json!(series.floor_a));
    put("floor_b_ns", json!(series.floor_b));
    if let Some(Interval { low, ratio, high }) = interval {
        put("ratio", json!(ratio));
        put("ratio_low", json!(low));
        put("ratio_high", json!(high));
    }
    put("verdict", json!(verdict.name()));
    row
}

fn json_counted(counted: &Counted) -> Row {
    let mut row = Row { config: RowConfig::default(), ..Row::default() };
    row.config.extra.insert("run".to_owned(), json!(counted.workload));
    row.config.extra.insert("figure".to_owned(), json!("instructions"));
    let mut put = |key: &str, value| row.extra.insert(key.to_owned(), value);
    put("unit", json!("instructions/message"));
    put("a", json!(counted.a));
    put("b", json!(counted.b));
    put("ratio", json!(median(&counted.b) / median(&counted.a).max(1.0)));
    row
}

fn text(report: &Report, a: &Build, b: &Build, all: &[Series], verdicts: &[Verdict], counted: &[Counted]) -> String {
    let head = ["run", "row", "figure", "A", "B", "B / A", "95 % interval", "pairs", "floor B / A", "B is"];
    let mut table = Table::new(TableStyle::for_stdout(), &head, 3);
    for (series, verdict) in all.iter().zip(verdicts) {
        let found = interval(&series.ratios(), ERROR);
        let floor = median(&series.floor_b) / median(&series.floor_a);
        table.add_row(&[
            series.workload.clone(),
            row_name(&series.row),
            format!("{}, {}", series.figure.name(), series.figure.unit()),
            rate(median(&series.a)),
            rate(median(&series.b)),
            found.map_or_else(|| "–".to_owned(), |found| format!("{:.3}", found.ratio)),
            found.map_or_else(|| "too few pairs".to_owned(), |found| format!("{:.3}–{:.3}", found.low, found.high)),
            series.a.len().to_string(),
            if floor.is_finite() { format!("{floor:.2}") } else { "–".to_owned() },
            verdict.name().to_owned(),
        ]);
    }
    for counted in counted {
        let (of_a, of_b) = (median(&counted.a), median(&counted.b));
        table.add_row(&[
            counted.workload.clone(),
            String::new(),
            "instructions/message".to_owned(),
            rate(of_a),
            rate(of_b),
            format!("{:.3}", of_b / of_a.max(1.0)),
            "–".to_owned(),
            counted.a.len().to_string(),
            "–".to_owned(),
            "counted by callgrind".to_owned(),
        ]);
    }
    let mut text = format!("{}\nA: {}\nB: {}\n\n{table}\n", report.environment.summary(), a.name, b.name);
    for note in &report.notes {
        text += &format!("note: {note}\n");
    }
    text += "Medians of pairs of runs; the ratio is the median of all pairwise averages, its interval Wilcoxon's. All verdicts \
             together are wrong in at most one comparison of twenty.\n";
    text
}

/// What stands below the options in `--help`.
#[must_use]
pub fn help() -> String {
    let runs = NAMED.iter().map(|(name, arguments, count, what)| {
        let count = if *count > 0 { format!(" -c {count}") } else { String::new() };
        format!("  {name:18} {what}: {arguments}{count}\n")
    });
    format!(
        "Runs that have a name:\n{}\nExamples:\n\
         \x20 gapless bench compare v0.1.0 HEAD\n\
         \x20 gapless bench compare ./gapless-before target/release/gapless --run direct --run indirect\n\
         \x20 gapless bench compare HEAD~1 HEAD --run \"canonical --mode throughput --tier memory -c 1000000\" --tolerance 2\n\n\
         Ends with 0 if B is not slower, with 3 if it is, with 1 if that could not be measured. A revision is built as it is \
         committed; what is not committed is compared by the path of its program.",
        runs.collect::<String>()
    )
}

/// A directory for the reports of the runs; removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("gapless-compare-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|source| BenchError::io("create", &path, source))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left for the user to see.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(figure: Figure, a: &[f64], b: &[f64]) -> Series {
        let (workload, row) = ("direct".to_owned(), Row::default());
        Series { workload, row, figure, a: a.to_vec(), b: b.to_vec(), floor_a: Vec::new(), floor_b: Vec::new() }
    }

    const A: [f64; 10] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0, 101.0, 99.0, 100.0, 100.0];

    fn times(factor: f64) -> [f64; 10] {
        A.map(|value| value * factor)
    }

    #[test]
    fn more_messages_are_faster_and_more_nanoseconds_slower() {
        for (figure, factor, expected) in [
            (Figure::Throughput, 1.05, Verdict::Faster),
            (Figure::Throughput, 0.95, Verdict::Slower),
            (Figure::P50, 1.05, Verdict::Slower),
            (Figure::P50, 0.95, Verdict::Faster),
            (Figure::Cpu, 1.05, Verdict::Slower),
        ] {
            assert_eq!(series(figure, &A, &times(factor)).verdict(0.03, 0.0, 0.01), expected, "{figure:?} × {factor}");
        }
    }

    #[test]
    fn less_than_the_tolerance_is_not_slower() {
        assert_eq!(series(Figure::Throughput, &A, &times(0.985)).verdict(0.03, 0.02, 0.01), Verdict::Same);
        assert_eq!(series(Figure::Throughput, &A, &times(0.97)).verdict(0.03, 0.02, 0.01), Verdict::Slower);
    }

    #[test]
    fn what_varies_too_much_is_not_decided() {
        let wild: Vec<f64> = A.iter().enumerate().map(|(index, a)| a * [0.6, 1.5, 1.1, 0.8][index % 4]).collect();
        assert_eq!(series(Figure::P50, &A, &wild).verdict(0.03, 0.0, 0.01), Verdict::Undecided);
        assert_eq!(series(Figure::P50, &A[..3], &A[..3]).verdict(0.03, 0.0, 0.01), Verdict::Undecided, "too few");
    }

    #[test]
    fn different_rows_are_an_error() {
        let report = |encoding: &str| {
            let config = RowConfig { encoding: Some(encoding.to_owned()), ..RowConfig::default() };
            let row = Row { config, throughput_per_s: Some(1.0), ..Row::default() };
            Report { rows: vec![row], ..Report::default() }
        };
        let workload = Workload::find("direct").expect("it has a name");
        let mut all = Vec::new();
        assert!(add(&mut all, &workload, &report("x"), &report("x")).is_ok());
        let error = add(&mut all, &workload, &report("x"), &report("y")).expect_err("they differ").to_string();
        assert!(error.contains("different rows"), "{error}");
    }
}
