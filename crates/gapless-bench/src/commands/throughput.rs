//! Every row in each turn, next to encoding and appending alone, and the canonical row.

use crate::commands::arguments::CommandsPlan;
use crate::commands::axon::{self, Axon};
use crate::commands::{CanonicalRow, MeasureCanonical, check_interrupted, quorum, rows, table};
use gapless_agent::OptimizeFor;
use gapless_load::commands::bare;
use gapless_load::commands::bus_under_test::BusUnderTest;
use gapless_load::commands::case::{BusCase, BusDrive, BusTier};
use gapless_load::commands::load::{CommandLoad, LoadLimit, drive, drive_direct};
use gapless_measure::Result;
use gapless_measure::reporting::BenchRun;
use gapless_measure::turns::{self, MeasuredTurn};
use gapless_measure::{FloorRow, Row};
use std::time::Duration;

const CANONICAL_QUICK: u64 = 20_000;
const CANONICAL_USUAL: u64 = 2_000_000;
const FLOOR_TIME_MAX: Duration = Duration::from_millis(500);

pub(crate) fn steps(plan: &CommandsPlan) -> usize {
    let of_ours = if plan.cases.is_empty() { 0 } else { plan.cases.len() + 1 + canonical_rows(plan).count() };
    plan.turns * (of_ours + plan.axon_cases.len())
}

pub(crate) fn measure(plan: &CommandsPlan, canonical: &MeasureCanonical<'_>, run: &mut BenchRun<'_>) -> Result<()> {
    let mut axon = None;
    let measured = turns::measure(plan.turns, run, |run, turn| {
        one_turn(plan, canonical, run, turn)?;
        measure_axon(plan, &mut axon, run, turn)
    });
    if let Some(Err(reason)) = &axon {
        run.report.rows.push(axon::missing(reason));
    }
    measured
}

fn measure_axon(
    plan: &CommandsPlan,
    axon: &mut Option<std::result::Result<Axon, String>>,
    run: &mut BenchRun<'_>,
    turn: &mut MeasuredTurn,
) -> Result<()> {
    if plan.axon_cases.is_empty() {
        return Ok(());
    }
    if axon.is_none() {
        *axon = Some(Axon::build(plan, run.interrupted)?);
    }
    let Some(Ok(axon)) = axon else { return Ok(()) };
    for case in &plan.axon_cases {
        run.next(&case.label())?;
        let row = axon.measure(case, plan, run.interrupted)?;
        run.line(&table::line(&case.label(), &row));
        turn.rows.push(row);
    }
    Ok(())
}

fn one_turn(
    plan: &CommandsPlan,
    canonical: &MeasureCanonical<'_>,
    run: &mut BenchRun<'_>,
    turn: &mut MeasuredTurn,
) -> Result<()> {
    if plan.cases.is_empty() {
        return Ok(());
    }
    run.next("encoding and appending alone")?;
    for case in &plan.cases {
        if floor_of(&turn.floors, case).is_none() && case.tier == BusTier::Memory {
            turn.floors.push(bare::measure(case.encoding, case.size, (plan.time / 4).min(FLOOR_TIME_MAX))?);
        }
    }
    for (_, which, name) in canonical_rows(plan) {
        run.next(&format!("the row {name}"))?;
        let count = plan.extent.pick(Some(CANONICAL_QUICK), Some(CANONICAL_USUAL), None);
        let mut row = canonical(which, count, &plan.directory)?;
        check_interrupted(run.interrupted)?;
        row.config.name = Some(name.to_owned());
        run.line(&table::line(name, &row));
        turn.floors.push(FloorRow {
            name: name.to_owned(),
            payload_bytes: row.config.payload_bytes.unwrap_or(0),
            rate_per_s: row.throughput_per_s,
            ..FloorRow::default()
        });
        turn.rows.push(row);
    }
    for case in plan.cases.iter().copied() {
        run.next(&case.label())?;
        let mut row = one_row(plan, run, case)?;
        if let Some(floor) = floor_of(&turn.floors, &case) {
            row.compare_with(floor);
        }
        run.line(&table::line(&case.label(), &row));
        turn.rows.push(row);
    }
    Ok(())
}

fn canonical_rows(plan: &CommandsPlan) -> impl Iterator<Item = (BusTier, CanonicalRow, &'static str)> {
    let rows = [
        (BusTier::Journal, CanonicalRow::Throughput, CANONICAL),
        (BusTier::Quorum, CanonicalRow::Replicated, CANONICAL_REPLICATED),
    ];
    rows.into_iter().filter(|(tier, ..)| plan.cases.iter().any(|case| case.tier == *tier))
}

pub(crate) const CANONICAL: &str = "canonical";
pub(crate) const CANONICAL_REPLICATED: &str = "canonical_replicated";

/// Encoding and appending alone in memory; the canonical row at `journal` and `quorum`.
fn floor_of<'a>(floors: &'a [FloorRow], case: &BusCase) -> Option<&'a FloorRow> {
    floors.iter().find(|floor| match case.tier {
        BusTier::Memory => floor.name == bare::name(case.encoding) && floor.payload_bytes == case.size as u64,
        BusTier::Journal => floor.name == CANONICAL,
        BusTier::Quorum => floor.name == CANONICAL_REPLICATED,
        BusTier::Sync => false,
    })
}

fn one_row(plan: &CommandsPlan, run: &BenchRun<'_>, case: BusCase) -> Result<Row> {
    if case.tier == BusTier::Quorum {
        return quorum::measure(plan, run.interrupted, case);
    }
    let place = plan.place(OptimizeFor::Throughput, plan.segment_bytes());
    let until = LoadLimit::Time(plan.warm_up, plan.time);
    let in_flight = case.in_flight(plan.in_flight);
    let load = CommandLoad { until, ..CommandLoad::of(case, in_flight, run.interrupted) };
    let loaded = match case.drive {
        BusDrive::Direct => drive_direct(place, load)?,
        BusDrive::Pipelined => {
            let stand = BusUnderTest::start(&case, place)?;
            let loaded = drive(&stand.bus(in_flight.max(2))?, load)?;
            stand.stop()?;
            loaded
        }
    };
    Ok(rows::throughput(&case, in_flight, &loaded))
}
