//! `gapless bench sequencer`: nodes and a sequencer, each a process of its own, over shared memory, UDP, multicast and
//! TCP.
//!
//! | module | what lives there |
//! |---|---|
//! | `arguments` | its options |
//! | `plan` | the rows, and the target of each |
//! | `rows` | one module for each part: latency, throughput, rewind |
//! | `stream_under_test` | the sequencer of a row, and its directory |
//! | `accounting` | whether every node has seen exactly the contents of the journal |
//! | `slices` | a latency's slices, as they are published |
//! | `table` | the printed table |
//!
//! After each row the journal, where there is one, is read, every checksum computed and every byte compared, and every
//! node must have seen just that, in that order.

mod arguments;
mod plan;
mod slices;
mod table;

mod accounting;
mod rows;
mod stream_under_test;

pub use arguments::SequencerArguments;
pub(crate) use arguments::{SequencerPart, StreamTransport};
pub use rows::RoleFigures;

use crate::histogram::RecordedRun;
use crate::histogram::hlog::{TaggedRun, write_file};
use crate::{BenchError, Result};
use gapless_load::sequencer::{NAME, failed};
use gapless_measure::progress::BenchProgress;
use gapless_measure::reporting::{check_interrupted, is_set, word};
use gapless_measure::table::TableStyle;
use gapless_measure::{FloorRow, Report, Row, RowConfig};
use plan::{LatencyPlan, RowPlan, SequencerRunPlan};
use rows::{FinishedRow, latency, rewind, throughput};
use std::io::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

/// Returns the text to print. `interrupted` ends it early, with the complete rows.
///
/// # Errors
/// Options that leave nothing to measure; a process that cannot be started or ends too early; a report that cannot be
/// written; a failed check, after everything was written.
pub fn run(arguments: &SequencerArguments, interrupted: &AtomicBool) -> Result<String> {
    let plan = SequencerRunPlan::of(arguments)?;
    let quiet = arguments.json.is_on_stdout();
    let started = SystemTime::now();
    let mut report = Report::new(NAME);
    let progress = BenchProgress::new(plan.rows.len() as u64, "", quiet);
    let mut latencies = Vec::new();
    for (number, row) in plan.rows.iter().enumerate() {
        progress.set_label(&label(row));
        progress.set_position(number as u64);
        let begun = Instant::now();
        match measure(&plan, row, number, interrupted) {
            Ok(FinishedRow { row, floors, latencies: recorded }) => {
                progress.line(&table::line(&row, begun.elapsed()));
                report.rows.push(row);
                report.floor.extend(floors);
                latencies.extend(recorded);
            }
            Err(_) if is_set(interrupted) => {
                let all = plan.rows.len();
                report.notes.push(format!("interrupted: {number} of {all} rows; the others were not measured"));
                break;
            }
            Err(BenchError::Measurement { reason, .. }) => report.rows.push(Row {
                config: row.config(&plan),
                verified: Some(false),
                notes: vec![reason],
                ..Row::default()
            }),
            Err(error) => {
                progress.finish();
                return Err(error);
            }
        }
    }
    progress.finish();
    report.notes.extend(notes(arguments, &plan));
    arguments.json.write(&report)?;
    if let Some(target) = &arguments.hlog {
        write_latencies(target, started, &report, &latencies)?;
    }
    let text = if quiet { String::new() } else { table::whole(&report, TableStyle::for_stdout()) };
    match report.rows.iter().find(|row| row.verified == Some(false)) {
        Some(row) => {
            // The figures so far are shown all the same.
            let _ = std::io::stdout().write_all(text.as_bytes());
            Err(failed(format!("a row failed: {}", row.notes.join("; "))))
        }
        None => Ok(text),
    }
}

/// Gives each row to `found` with its floors, for another benchmark.
pub(crate) fn each_row(
    arguments: &SequencerArguments,
    repetitions: u64,
    interrupted: &AtomicBool,
    found: &mut dyn FnMut(Row, Vec<FloorRow>) -> Result<()>,
) -> Result<()> {
    let mut plan = SequencerRunPlan::of(arguments)?;
    plan.has_targets = false;
    for (number, row) in plan.rows.iter().enumerate() {
        let row = match *row {
            RowPlan::Latency(of) => RowPlan::Latency(LatencyPlan { repetitions, ..of }),
            other => other,
        };
        let FinishedRow { row, floors, .. } = measure(&plan, &row, number, interrupted)?;
        found(row, floors)?;
    }
    Ok(())
}

fn measure(plan: &SequencerRunPlan, row: &RowPlan, number: usize, interrupted: &AtomicBool) -> Result<FinishedRow> {
    check_interrupted(NAME, interrupted)?;
    match row {
        RowPlan::Latency(of) => latency::measure(plan, of, number, interrupted),
        RowPlan::Throughput(of) => throughput::measure(plan, of, number, interrupted),
        RowPlan::Rewind(of) => rewind::measure(plan, of, number, interrupted),
    }
}

impl RowPlan {
    fn config(&self, plan: &SequencerRunPlan) -> RowConfig {
        match self {
            Self::Latency(of) => rows::config(plan, "latency", of.transport, of.payload_bytes, of.messages),
            Self::Throughput(of) => {
                let messages = of.messages * of.nodes as u64;
                rows::config(plan, "throughput", of.transport, of.payload_bytes, messages)
            }
            Self::Rewind(of) => rows::config(plan, "rewind", of.transport, of.payload_bytes, of.frames),
        }
    }
}

fn label(row: &RowPlan) -> String {
    match row {
        RowPlan::Latency(of) => format!("round trip {} {} B", word(of.transport), of.payload_bytes),
        RowPlan::Throughput(of) => format!("throughput {} {} B", word(of.transport), of.payload_bytes),
        RowPlan::Rewind(of) => format!("rewind {} {} frames", word(of.transport), of.frames),
    }
}

fn notes(arguments: &SequencerArguments, plan: &SequencerRunPlan) -> Vec<String> {
    let mut notes = Vec::new();
    if arguments.quick {
        notes.push("a short run: it shows that everything works, and no figure".to_owned());
    }
    if plan.running.is_some() {
        notes.push(
            "the stream was running already: its tier, threads and CPU time are not known here, its journal was not \
             read, and what else it carries is in the figures"
                .to_owned(),
        );
    }
    if gapless_measure::affinity::pair_of_cores().is_none() {
        notes.push("one CPU: no process could spin, and every message costs changes between processes".to_owned());
    }
    notes
}

fn write_latencies(
    target: &std::path::Path,
    started: SystemTime,
    report: &Report,
    latencies: &[(String, RecordedRun, SystemTime)],
) -> Result<()> {
    let tagged: Vec<TaggedRun<'_>> = latencies
        .iter()
        .map(|(tag, run, began)| TaggedRun {
            tag: tag.clone(),
            run,
            begin: began.duration_since(started).unwrap_or(Duration::ZERO),
        })
        .collect();
    let comments = [format!("gapless bench sequencer; {}", report.environment.summary())];
    write_file(target, started, &comments, &tagged)
}
