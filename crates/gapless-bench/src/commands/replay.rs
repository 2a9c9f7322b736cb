//! Events a second of a fold of the whole stream, from the journal into states in memory.

use crate::commands::arguments::Plan;
use crate::commands::case::{Case, Drive, Tier};
use crate::commands::load::{Load, Until, drive};
use crate::commands::messages::{Form, OfSbe};
use crate::commands::stand::{Place, Stand};
use crate::commands::{check_interrupted, failed, rows};
use gapless_agent::OptimizeFor;
use gapless_cqrs::{AggregateId as _, CommandHost, Message as _, Position};
use gapless_measure::Result;
use gapless_measure::reporting::Run;
use gapless_measure::resources::process_cpu_ns;
use gapless_measure::turns;
use gapless_measure::{CpuPerMessage, Row};
use rustc_hash::FxHashMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Transactions between two looks for an interrupt.
const TRANSACTIONS_A_LOOK: u64 = 4096;

pub(crate) fn steps(plan: &Plan) -> usize {
    1 + plan.turns
}

/// Measures, and adds the row.
pub(crate) fn measure(plan: &Plan, run: &mut Run<'_>) -> Result<()> {
    let row = replayed::<OfSbe>(plan, run)?;
    run.report.rows.push(row);
    Ok(())
}

fn replayed<F: Form>(plan: &Plan, run: &mut Run<'_>) -> Result<Row> {
    run.next(&format!("{} events that are to be replayed", plan.replayed_events))?;
    let case = Case { tier: Tier::Journal, aggregates: plan.aggregates, ..Case::base(Drive::Pipelined) };
    let place = Place { parent: &plan.directory, optimize_for: OptimizeFor::Throughput, is_quick: plan.is_quick };
    let stand = Stand::start::<F>(&case, place)?;
    let until = Until::Count(plan.replayed_events);
    let load = Load { until, ..Load::of(case, plan.in_flight, run.interrupted) };
    let loaded = drive::<F>(&stand.bus(plan.in_flight)?, load)?;
    let mut turns = Vec::new();
    for _ in 0..plan.turns {
        run.next("replay")?;
        let mut row = folded::<F>(stand.host(), plan.replayed_events, run.interrupted)?;
        row.config = rows::config(&case, "replay", 0);
        row.config.extra.remove("in_flight");
        row.config.count = row.sent;
        // Behind its commands each aggregate was asked one thing more.
        let is_whole = row.sent == Some(loaded.sent + plan.aggregates.min(loaded.sent));
        row.verified = Some(row.verified == Some(true) && is_whole && loaded.wrong == 0);
        turns.push(vec![row]);
    }
    stand.stop()?;
    turns::middle_rows(turns).into_iter().next().ok_or_else(|| failed("nothing was replayed"))
}

/// Folds the stream once.
fn folded<F: Form>(host: &CommandHost, events_sent: u64, interrupted: &AtomicBool) -> Result<Row> {
    let mut sums: FxHashMap<u64, u64> = FxHashMap::default();
    let mut reader = host.events(Position::default());
    let (mut events, mut transactions) = (0, 0_u64);
    let (begin, cpu_before_ns) = (Instant::now(), process_cpu_ns());
    while let Some(mut transaction) = reader.next_transaction().map_err(failed)? {
        while let Some(event) = transaction.next_event().map_err(failed)? {
            let id = u64::read(event.id).ok_or_else(|| failed("an aggregate without a number"))?;
            let event = F::Event::decode_as(event.version, event.payload).map_err(failed)?;
            *sums.entry(id).or_default() += F::amount(&event);
            events += 1;
        }
        transactions += 1;
        if transactions.is_multiple_of(TRANSACTIONS_A_LOOK) {
            check_interrupted(interrupted)?;
        }
    }
    let (elapsed, cpu_ns) = (begin.elapsed(), process_cpu_ns() - cpu_before_ns);
    Ok(row_of(events, elapsed, cpu_ns, sums.values().sum::<u64>() == events_sent))
}

fn row_of(events: u64, elapsed: Duration, cpu_ns: u64, is_right: bool) -> Row {
    Row {
        throughput_per_s: Some((events as f64 / elapsed.as_secs_f64()).round()),
        sent: Some(events),
        elapsed_ns: Some(elapsed.as_nanos() as u64),
        cpu_ns_per_message: Some(CpuPerMessage { driver: cpu_ns as f64 / events.max(1) as f64, service: 0.0 }),
        verified: Some(is_right),
        ..Row::default()
    }
}
