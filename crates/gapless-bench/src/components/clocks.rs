//! `gapless bench time`: the cost of reading each clock, the system's and the agents' own.

use super::{ComponentArguments, Unit, compare, is_interrupted, measure_floors};
use crate::Result;
use crate::floor::FloorKind;
use crate::time_sources::{TimeSource, measure, sources};
use gapless_agent::Clock;
use gapless_measure::Report;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Samples of each clock, of 100 readings each.
const SAMPLES: u64 = 10_000;

/// Measures; returns the text to print.
///
/// # Errors
/// The report cannot be written.
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
            report.rows.push(row);
        }
    }
    report.notes.push("each value is the mean of 100 readings; the steps and resolutions are in the JSON".to_owned());
    arguments.finish(&report, Unit::Nanoseconds)
}

/// The clocks that agents read; and why one of them is missing.
fn agent_clocks() -> (Vec<TimeSource>, Option<String>) {
    let source = |name, clock: Clock, read: fn(&Clock) -> u64| TimeSource {
        name,
        read_ns: Box::new(move || read(&clock)),
        resolution_ns: None,
    };
    let mut sources = vec![
        source("agent_system", Clock::system(), Clock::monotonic_ns),
        source("agent_system_both", Clock::system(), |clock| clock.now().epoch_ns),
    ];
    let note = match Clock::tsc() {
        Ok(clock) => {
            sources.push(source("agent_tsc", clock.clone(), Clock::monotonic_ns));
            sources.push(source("agent_tsc_both", clock, |clock| clock.now().epoch_ns));
            None
        }
        Err(error) => Some(format!("the agents' TSC clock was left out: {error}")),
    };
    (sources, note)
}
