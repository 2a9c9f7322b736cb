//! `gapless bench storage`: objects of a store, new, changed, read, removed, applied on a second store, and written as
//! a snapshot. A value is the mean of 100 operations, because one is too short for the clock. At the end of each size
//! both stores must have the hash that is recomputed from every object.

use super::{ComponentArguments, TimeUnit, is_interrupted, print_measured};
use crate::Result;
use clap::Args;
use gapless_load::components::storage::{StoragePlan, TOGETHER, rows_of_cars, rows_of_pages};
use gapless_measure::Report;
use std::sync::atomic::AtomicBool;

const OBJECTS: u64 = 100_000;
const OBJECTS_QUICK: u64 = 2_000;
const ROUNDS: u64 = 5;
/// Options of its own.
#[derive(Debug, Clone, Default, Args)]
pub struct StorageArguments {
    /// Common options; a sample of this one is 100 operations.
    #[command(flatten)]
    pub part: ComponentArguments,

    /// Objects in the store; more than the processor's caches hold show the cost of memory
    #[arg(long, value_name = "OBJECTS", default_value_t = OBJECTS, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    pub objects: u64,

    /// Use few objects, as a functional check
    #[arg(long)]
    pub quick: bool,
}

/// Measures; returns the text to print.
///
/// # Errors
/// A store that refuses valid changes, stores that do not agree at the end, a report that cannot be written.
pub fn run(arguments: &StorageArguments, interrupted: &AtomicBool) -> Result<String> {
    let objects = if arguments.quick { arguments.objects.min(OBJECTS_QUICK) } else { arguments.objects };
    let objects = objects / TOGETHER * TOGETHER;
    let operations = arguments.part.count.unwrap_or(ROUNDS * objects).next_multiple_of(TOGETHER);
    let mut report = Report::new("storage");
    let plan = StoragePlan { objects, operations };
    if !is_interrupted(&mut report, interrupted) {
        rows_of_cars(plan, &mut report)?;
        print_measured(&report.rows);
    }
    if !is_interrupted(&mut report, interrupted) {
        let before = report.rows.len();
        rows_of_pages(plan, &mut report)?;
        print_measured(&report.rows[before..]);
    }
    report.notes.push(format!(
        "{objects} objects of each size, in random order; each value is the mean of {TOGETHER}; every transaction writes its changes"
    ));
    arguments.part.finish(&report, TimeUnit::Nanoseconds)
}
