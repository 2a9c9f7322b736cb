//! What is printed, and what is drawn.

use super::Plan;
use gapless_measure::Result;
use gapless_measure::reporting::{self, PERCENTILE_LABEL, number, of_config, percentiles};
use gapless_measure::table::{
    Column, Table, TableStyle, absent, driver_cpu, floor_ratio, floor_section, grouped, latency, microseconds,
    notes as all_notes, rate, text as text_of, throughput, verified,
};
use gapless_measure::{Report, Row};
use serde_json::Value;
use std::path::Path;

/// The whole text: what goes through, then what the probe notices of it.
pub(super) fn text(report: &Report) -> String {
    let loads: [Column; 11] = [
        ("what", |row| text_of(&row.config.name)),
        ("callers and workers are", |row| of_config(row, "are").to_owned()),
        ("in flight", |row| row.config.extra.get("in_flight").and_then(Value::as_u64).map_or_else(absent, grouped)),
        ("calls/s", throughput),
        ("min", |row| number(row, "throughput_min_per_s").map_or_else(absent, rate)),
        ("max", |row| number(row, "throughput_max_per_s").map_or_else(absent, rate)),
        ("CPU ns/call", driver_cpu),
        ("× floor", floor_ratio),
        ("passed the disk", |row| {
            number(row, "spilled_share").map_or_else(absent, |share| format!("{:.0} %", share * 100.0))
        }),
        ("published", |row| number(row, "published_per_s").map_or_else(absent, rate)),
        ("verified", verified),
    ];
    let probes: [Column; 9] = [
        ("what", |row| text_of(&row.config.name)),
        ("p50 µs", |row| latency(row, |latency| latency.p50)),
        ("p99 µs", |row| latency(row, |latency| latency.p99)),
        ("p99.9 µs", |row| latency(row, |latency| latency.p99_9)),
        ("max µs", |row| latency(row, |latency| latency.max)),
        ("× floor", floor_ratio),
        ("p99 × bare", |row| number(row, "p99_by_bare").map_or_else(absent, |ratio| format!("{ratio:.2}"))),
        ("published", |row| number(row, "published_ns").map_or_else(absent, |ns| microseconds(ns as u64))),
        ("verified", verified),
    ];
    let style = TableStyle::for_stdout();
    let (under_load, probed): (Vec<&Row>, Vec<&Row>) = report.rows.iter().partition(|row| row.latency_ns.is_none());
    let mut text = format!("{}\n\n{}\n", report.environment.summary(), Table::of_rows(style, &under_load, 2, &loads));
    if !probed.is_empty() {
        text += &format!("\n{}\n", Table::of_rows(style, &probed, 1, &probes));
    }
    if report.rows.iter().any(|row| row.verified == Some(false)) {
        text += "NOT VERIFIED: calls of that row failed or had wrong replies; its figures are not a result.\n";
    }
    text + &floor_section(report, "same run", style) + &all_notes(report)
}

/// The probe's latency against its percentile.
pub(super) fn draw(report: &Report, path: &Path) -> Result<()> {
    let curve = |row: &Row| Some(percentiles(text_of(&row.config.name), row.latency_ns?));
    let labels = ("A lone call beside a flood of another route", PERCENTILE_LABEL, "latency, µs");
    reporting::draw(report, labels, report.rows.iter().filter_map(curve).collect(), path)
}

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    vec![
        format!(
            "one process, 72 bytes there and back, default options; each load runs for {} turns of {:?} after half a turn that \
             warms up, calls/s is the turn in the middle; every reply is compared",
            plan.turns, plan.turn
        ),
        "1→50: one caller with 64 calls in flight; 50→50: fifty callers with one each; overloaded: a hundred with a hundred \
         each, 256 of which wait in the route's queue and 64 KiB in memory behind it, the rest on disk. Tasks run on an \
         executor of two threads. The floor is the stream of 72 bytes through shared memory"
            .to_owned(),
        format!(
            "probe: {} calls, {} a second, in slices without the flood, with it, and of bare wake-ups with it, by turns; caller and worker are threads that \
             sleep; the floor is the futex round trip. Bare wake-ups are two threads that do nothing but wake each other at \
             the same pace. The flood is 50→50 as tasks of an executor with a thread for each of its cores",
            plan.probes,
            super::probe::PER_S
        ),
        "published: Mercury, a laptop with 12 cores".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_measure::LatencyNs;
    use serde_json::json;

    #[test]
    fn loads_and_probes_have_a_table_each() {
        let mut load = Row { throughput_per_s: Some(1_234_567.0), verified: Some(true), ..Row::default() };
        load.config.name = Some("overloaded 100→50".to_owned());
        load.extra.insert("spilled_share".to_owned(), json!(0.734));
        let latency = LatencyNs { p50: 4_200, ..LatencyNs::default() };
        let mut probe = Row { latency_ns: Some(latency), verified: Some(true), ..Row::default() };
        probe.config.name = Some("probe".to_owned());
        let mut report = Report { rows: vec![load, probe], ..Report::default() };
        let shown = text(&report);
        let line = |of: &str| shown.lines().find(|line| line.contains(of)).unwrap_or_default().to_owned();
        assert!(line("overloaded").contains("1,234,567") && line("overloaded").contains("73 %"), "{shown}");
        assert!(line("| probe").contains("4.20"), "{shown}");
        report.rows[1].verified = Some(false);
        assert!(text(&report).contains("NOT VERIFIED"));
    }
}
