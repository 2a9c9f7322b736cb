//! Fold of the whole stream, from the journal into states in memory.

use crate::commands::arguments::{CommandsPlan, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
use crate::commands::{rows, table};
use gapless_agent::OptimizeFor;
use gapless_load::commands::bus_under_test::BusUnderTest;
use gapless_load::commands::case::{BusCase, BusDrive, BusTier};
use gapless_load::commands::load::{CommandLoad, LoadLimit, drive};
use gapless_load::commands::replay::folded;
use gapless_measure::Result;
use gapless_measure::Row;
use gapless_measure::reporting::BenchRun;
use gapless_measure::turns;

/// Twice the frame of an event, bytes: the next segment is prepared from the half on.
const SEGMENT_BYTES_PER_EVENT: u64 = 512;

pub(crate) fn steps(plan: &CommandsPlan) -> usize {
    1 + plan.turns
}

pub(crate) fn measure(plan: &CommandsPlan, run: &mut BenchRun<'_>) -> Result<()> {
    let mut turns = Vec::new();
    let measured = replayed(plan, run, &mut turns);
    if !turns.is_empty() {
        run.report.rows.extend(turns::middle_rows(turns));
    }
    measured
}

fn replayed(plan: &CommandsPlan, run: &mut BenchRun<'_>, turns: &mut Vec<Vec<Row>>) -> Result<()> {
    run.next(&format!("{} events that are to be replayed", plan.replayed_events))?;
    let case = BusCase { tier: BusTier::Journal, aggregates: plan.aggregates, ..BusCase::base(BusDrive::Pipelined) };
    let segment_bytes = plan.replayed_events.saturating_mul(SEGMENT_BYTES_PER_EVENT).min(SEGMENT_BYTES_MAX);
    let place = plan.place(OptimizeFor::Throughput, segment_bytes.max(SEGMENT_BYTES_MIN));
    let stand = BusUnderTest::start(&case, place)?;
    let until = LoadLimit::Count(plan.replayed_events);
    let load = CommandLoad { until, ..CommandLoad::of(case, plan.in_flight, run.interrupted) };
    let loaded = drive(&stand.bus(plan.in_flight)?, load)?;
    for _ in 0..plan.turns {
        let label = format!("replay of {} events", plan.replayed_events);
        run.next(&label)?;
        let mut row = folded(stand.host(), plan.replayed_events, run.interrupted)?;
        row.config = rows::config(&case, "replay", 0);
        row.config.extra.remove("in_flight");
        row.config.count = row.sent;
        // After its commands each aggregate was asked for one event more.
        let is_whole = row.sent == Some(loaded.sent + plan.aggregates.min(loaded.sent));
        row.verified = Some(row.verified == Some(true) && is_whole && loaded.wrong == 0);
        run.line(&table::line(&label, &row));
        turns.push(vec![row]);
    }
    stand.stop()
}
