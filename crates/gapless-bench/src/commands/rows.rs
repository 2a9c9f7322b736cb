//! From figures to a row of the report.

use gapless_load::commands::case::BusCase;
use gapless_load::commands::load::LoadResult;
use gapless_measure::reporting::{keys, put, word};
use gapless_measure::resources::memory;
use gapless_measure::{CpuPerMessage, Row, RowConfig};
use serde_json::json;

pub(crate) fn config(case: &BusCase, mode: &str, in_flight: usize) -> RowConfig {
    let extra = json!({
        "drive": word(case.drive), "aggregates": case.aggregates, "identifiers": word(case.identifiers), "in_flight": in_flight,
    });
    RowConfig {
        mode: Some(mode.to_owned()),
        encoding: Some(word(case.encoding)),
        tier: Some(word(case.tier)),
        payload_bytes: Some(case.size as u64),
        extra: keys(extra),
        ..RowConfig::default()
    }
}

pub(crate) fn throughput(case: &BusCase, in_flight: usize, loaded: &LoadResult) -> Row {
    let counted = loaded.counted.max(1) as f64;
    let others_ns = loaded.process_cpu_ns.saturating_sub(loaded.driver_cpu_ns);
    let cpu = CpuPerMessage { driver: loaded.driver_cpu_ns as f64 / counted, service: others_ns as f64 / counted };
    let mut row = Row {
        config: config(case, "throughput", in_flight),
        throughput_per_s: Some((counted / loaded.elapsed.as_secs_f64()).round()),
        sent: Some(loaded.counted),
        elapsed_ns: Some(loaded.elapsed.as_nanos() as u64),
        cpu_ns_per_message: Some(cpu),
        peak_memory_bytes: memory().map(|memory| memory.peak_bytes),
        ..Row::default()
    };
    check(&mut row, loaded);
    row
}

pub(crate) fn check(row: &mut Row, loaded: &LoadResult) {
    row.verified = Some(loaded.wrong == 0);
    row.notes.extend(loaded.first_wrong.clone());
    put(row, "wrong", loaded.wrong);
    put(row, "repeated", loaded.repeated);
}
