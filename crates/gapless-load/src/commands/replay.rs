//! Folds a whole stream, from the journal into states in memory.

use crate::commands::messages::{CommandForm, SbeForm};
use crate::commands::{check_interrupted, failed};
use gapless_cqrs::{AggregateId as _, CommandHost, Message as _, Position};
use gapless_measure::resources::process_cpu_ns;
use gapless_measure::{CpuPerMessage, Result, Row};
use rustc_hash::FxHashMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const TRANSACTIONS_A_LOOK: u64 = 4096;

pub fn folded(host: &CommandHost, events_sent: u64, interrupted: &AtomicBool) -> Result<Row> {
    let mut sums: FxHashMap<u64, u64> = FxHashMap::default();
    let mut reader = host.events(Position::default());
    let (mut events, mut transactions) = (0, 0_u64);
    let (begin, cpu_before_ns) = (Instant::now(), process_cpu_ns());
    while let Some(mut transaction) = reader.next_transaction().map_err(failed)? {
        while let Some(event) = transaction.next_event().map_err(failed)? {
            let id = u64::read(event.id).ok_or_else(|| failed("an aggregate without a number"))?;
            let event = <SbeForm as CommandForm>::Event::decode_as(event.version, event.payload).map_err(failed)?;
            *sums.entry(id).or_default() += SbeForm::amount(&event);
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
