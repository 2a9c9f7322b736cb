//! Latency of commands at a rate, from the time at which one is due. Slices alternate with the canonical row and the
//! machine's bare ping-pong at the same pace, because tails are the machine's first.

use crate::commands::arguments::CommandsPlan;
use crate::commands::throughput::CANONICAL;
use crate::commands::{CanonicalRow, MeasureCanonical, check_interrupted, rows, table};
use gapless_agent::OptimizeFor;
use gapless_load::commands::case::{BusCase, BusDrive, BusTier};
use gapless_load::commands::latency::{PER_S, SLEEPS, SPINS, SliceResults, one_slice};
use gapless_measure::Result;
use gapless_measure::Row;
use gapless_measure::floor::{FloorKind, FloorPlan, HEADER_BYTES};
use gapless_measure::histogram::LatencyHistogram;
use gapless_measure::reporting::BenchRun;
use gapless_measure::turns;
use std::time::Duration;

const SEGMENT_BYTES: u64 = 64 << 20;
const FLOOR_TIME_MAX: Duration = Duration::from_secs(2);
const CANONICAL_QUICK: u64 = 1_000;
const CANONICAL_USUAL: u64 = 30_000;

/// The drive, and whether the thread that awaits an outcome sleeps (the default) or spins, as the canonical driver
/// does. The owner of a direct bus waits for no other thread.
const ROWS: [(BusDrive, Option<&str>); 3] =
    [(BusDrive::Pipelined, Some(SLEEPS)), (BusDrive::Pipelined, Some(SPINS)), (BusDrive::Direct, None)];

pub(crate) fn steps(plan: &CommandsPlan) -> usize {
    plan.turns * (1 + ROWS.len())
}

pub(crate) fn measure(plan: &CommandsPlan, canonical: &MeasureCanonical<'_>, run: &mut BenchRun<'_>) -> Result<()> {
    let mut slices = ROWS.map(|(drive, caller)| SliceResults {
        case: BusCase { tier: BusTier::Journal, ..BusCase::base(drive) },
        caller,
        histogram: LatencyHistogram::new(),
        wrong: 0,
        is_rate_reached: true,
    });
    let (mut canonical_rows, mut floors) = (Vec::new(), Vec::new());
    let measured = (0..plan.turns).try_for_each(|_| {
        run.next("the canonical row at a rate")?;
        let items = vec![(FloorKind::ShmPingPongPaced, HEADER_BYTES)];
        let floor =
            FloorPlan { time_limit: plan.time.min(FLOOR_TIME_MAX), ..FloorPlan::new(&plan.directory, items) }.measure();
        run.report.notes.extend(floor.skipped);
        floors.push(floor.rows);
        let count = plan.extent.pick(Some(CANONICAL_QUICK), Some(CANONICAL_USUAL), None);
        let mut row = canonical(CanonicalRow::Latency, count, &plan.directory)?;
        check_interrupted(run.interrupted)?;
        row.config.name = Some(CANONICAL.to_owned());
        run.line(&table::line("the canonical row at a rate", &row));
        canonical_rows.push(vec![row]);
        slices.iter_mut().try_for_each(|slices| {
            let caller = slices.caller.map_or_else(String::new, |does| format!(", the caller {does}"));
            let label = format!("{} at {PER_S} a second{caller}", slices.case.label());
            run.next(&label)?;
            let place = plan.place(OptimizeFor::Latency, SEGMENT_BYTES);
            one_slice(place, (plan.warm_up, plan.time), run.interrupted, slices)?;
            run.line(&table::line(&label, &row_of(slices)));
            Ok(())
        })
    });
    let floors = turns::middle_floors(floors);
    let mut measured_rows = turns::middle_rows(canonical_rows);
    measured_rows.extend(slices.iter().filter(|slices| slices.histogram.count() > 0).map(row_of));
    for mut row in measured_rows {
        if let Some(floor) = floors.first() {
            row.compare_with(floor);
        }
        run.report.rows.push(row);
    }
    run.report.floor.extend(floors);
    measured
}

fn row_of(slices: &SliceResults) -> Row {
    let mut config = rows::config(&slices.case, "latency", 1);
    config.rate_per_s = Some(PER_S);
    config.count = Some(slices.histogram.count());
    config.extra.extend(slices.caller.map(|does| ("caller".to_owned(), does.into())));
    Row {
        config,
        latency_ns: slices.histogram.latency_ns(),
        sent: Some(slices.histogram.count()),
        rate_reached: Some(slices.is_rate_reached),
        verified: Some(slices.wrong == 0),
        ..Row::default()
    }
}
