//! `gapless bench time`: the cost of reading each clock, the system's and the agents' own.

use super::{ComponentArguments, TimeUnit, compare, is_interrupted, measure_floors, print_measured};
use crate::Result;
use crate::floor::FloorKind;
use crate::time_sources::{measure, sources};
use gapless_load::components::clocks::agent_clocks;
use gapless_measure::Report;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Samples of each clock, of 100 readings each.
const SAMPLES: u64 = 10_000;

pub fn run(arguments: &ComponentArguments, interrupted: &AtomicBool) -> Result<String> {
    let mut report = Report::new("time");
    measure_floors(&mut report, Path::new("."), vec![(FloorKind::ClockRead, 0)]);
    let mut sources = sources();
    match agent_clocks() {
        (clocks, None) => sources.extend(clocks),
        (clocks, Some(note)) => {
            sources.extend(clocks);
            report.notes.push(note);
        }
    }
    for source in &sources {
        if is_interrupted(&mut report, interrupted) {
            break;
        }
        for mut row in measure(std::slice::from_ref(source), arguments.count.unwrap_or(SAMPLES)) {
            compare(&mut row, &report, FloorKind::ClockRead, 0);
            print_measured(std::slice::from_ref(&row));
            report.rows.push(row);
        }
    }
    report.notes.push("each value is the mean of 100 readings; the steps and resolutions are in the JSON".to_owned());
    arguments.finish(&report, TimeUnit::Nanoseconds)
}
