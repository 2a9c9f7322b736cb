//! The parts of a message's way one by one: `gapless bench serialization|log|link|messaging|persistence|storage|time`.
//!
//! | module | measures |
//! |---|---|
//! | [`serialization`] | writing and reading a Car in each of its four forms |
//! | [`log`] | ring and window between two processes with a core each |
//! | [`link`] | messages between two members of a cluster, each a process |
//! | [`messaging`] | from a client to a node at tier `memory` and back, small and large |
//! | `shared_clients` | the rows of [`messaging`] about the client that tasks share |
//! | [`persistence`] | appending to a journal, and replaying it |
//! | [`storage`] | objects of a store: changed in transactions, applied elsewhere, written as a snapshot |
//! | [`clocks`] | reading a clock |
//!
//! Each measures the floor that bounds it in the same run, on the same cores, and checks outside the
//! clock that everything arrived. Nothing here pins the calling thread.

pub mod clocks;
pub mod link;
pub mod log;
pub mod messaging;
pub mod persistence;
pub mod serialization;
mod shared_clients;
pub mod storage;

use crate::Result;
use crate::floor::FloorKind;
use clap::Args;
use gapless_load::components::{failed, named};
use gapless_measure::reporting::{self, INTERRUPTED, JsonArguments, compare, is_set};
use gapless_measure::table::{TableStyle, components, components_in_nanoseconds, measured, whole};
use gapless_measure::{FloorRow, Report, Row};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Common options.
#[derive(Debug, Clone, Default, Args)]
pub struct ComponentArguments {
    #[command(flatten)]
    pub json: JsonArguments,

    /// Samples of each row [default: enough for a few seconds in total]
    #[arg(long, short = 'c', value_name = "SAMPLES", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub count: Option<u64>,
}

impl ComponentArguments {
    fn finish(&self, report: &Report, unit: TimeUnit) -> Result<String> {
        self.json.write(report)?;
        if self.json.is_on_stdout() {
            return Ok(String::new());
        }
        let style = TableStyle::for_stdout();
        let figures = match unit {
            TimeUnit::Microseconds => components(&report.rows, style),
            TimeUnit::Nanoseconds => components_in_nanoseconds(&report.rows, style),
        };
        Ok(whole(report, &figures, &report.floor))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeUnit {
    Microseconds,
    Nanoseconds,
}

fn measure_floors(report: &mut Report, directory: &Path, items: Vec<(FloorKind, u64)>) {
    reporting::measure_floors(report, directory, items, Duration::from_millis(150));
}

/// Measures each floor right before its row, because the cost of cores and kernel changes with where a hypervisor puts
/// them. An interrupt ends it with the rows so far.
fn measure_with_floors<M>(
    report: &mut Report,
    interrupted: &AtomicBool,
    all: impl Iterator<Item = M>,
    floor: impl Fn(&M) -> (FloorKind, u64),
    row: impl Fn(&M) -> Result<Row>,
) -> Result<()> {
    for each in all {
        if is_interrupted(report, interrupted) {
            break;
        }
        let (kind, bytes) = floor(&each);
        measure_floors(report, Path::new("."), vec![(kind, bytes)]);
        match row(&each) {
            Ok(mut row) => {
                let is_its = |found: &&FloorRow| found.name == kind.name() && found.payload_bytes == bytes;
                if let Some(floor) = report.floor.last().filter(is_its) {
                    row.compare_with(floor);
                }
                print_measured(std::slice::from_ref(&row));
                report.rows.push(row);
            }
            Err(_) if is_interrupted(report, interrupted) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn print_measured(rows: &[Row]) {
    for row in rows {
        // A closed stderr is no error here.
        let _ = writeln!(std::io::stderr(), "{}", measured(row));
    }
}

/// Notes the interrupt in the report.
fn is_interrupted(report: &mut Report, interrupted: &AtomicBool) -> bool {
    let is_set = is_set(interrupted);
    if is_set && !report.notes.iter().any(|note| note.starts_with("interrupted")) {
        report.notes.push(INTERRUPTED.to_owned());
    }
    is_set
}
