//! The printed table and the picture.

use super::ScenariosPlan;
use gapless_measure::Result;
use gapless_measure::reporting::{self, PERCENTILE_LABEL, config_number, number, of_config, percentiles};
use gapless_measure::table::{
    RowColumn, TableStyle, TextTable, absent, column, driver_cpu, grouped, microseconds, rate, text as text_of,
    throughput, whole,
};
use gapless_measure::{Report, Row};
use std::path::Path;

pub(super) const LOADS: [RowColumn; 11] = [
    column::NAME,
    ("callers and workers are", |row| of_config(row, "are").to_owned()),
    ("in flight", |row| config_number(row, "in_flight").map_or_else(absent, grouped)),
    ("calls/s", throughput),
    ("min", |row| number(row, "throughput_min_per_s").map_or_else(absent, rate)),
    ("max", |row| number(row, "throughput_max_per_s").map_or_else(absent, rate)),
    ("CPU ns/call", driver_cpu),
    column::BY_FLOOR,
    ("passed the disk", |row| {
        number(row, "spilled_share").map_or_else(absent, |share| format!("{:.0} %", share * 100.0))
    }),
    ("published", |row| number(row, "published_per_s").map_or_else(absent, rate)),
    column::VERIFIED,
];

pub(super) const PROBES: [RowColumn; 9] = [
    column::NAME,
    column::P50,
    column::P99,
    column::P99_9,
    column::MAX,
    column::BY_FLOOR,
    ("p99 × bare", |row| number(row, "p99_by_bare").map_or_else(absent, |ratio| format!("{ratio:.2}"))),
    ("published", |row| number(row, "published_ns").map_or_else(absent, |ns| microseconds(ns as u64))),
    column::VERIFIED,
];

pub(super) fn text(report: &Report) -> String {
    let style = TableStyle::for_stdout();
    let (under_load, probed): (Vec<&Row>, Vec<&Row>) = report.rows.iter().partition(|row| row.latency_ns.is_none());
    let mut figures = TextTable::of_rows(style, &under_load, 2, &LOADS).to_string();
    if !probed.is_empty() {
        figures += &format!("\n\n{}", TextTable::of_rows(style, &probed, 1, &PROBES));
    }
    whole(report, &figures, &report.floor)
}

pub(super) fn draw(report: &Report, path: &Path) -> Result<()> {
    let curve = |row: &Row| Some(percentiles(text_of(&row.config.name), row.latency_ns?));
    let labels = ("A lone call beside a flood of another route", PERCENTILE_LABEL, "latency, µs");
    reporting::draw(report, labels, report.rows.iter().filter_map(curve).collect(), path)
}

pub(super) fn notes(plan: &ScenariosPlan) -> Vec<String> {
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
            gapless_load::rpc::scenarios::probe::PER_S
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
