//! The printed table and the picture.

use super::arguments::Plan;
use gapless_load::rpc::payloads::served::{SLOTS, WORKERS};
use gapless_measure::plot::{Curve, add_point};
use gapless_measure::reporting::{self, number};
use gapless_measure::table::{
    Column, Table, TableStyle, absent, column, grouped, microseconds, rate, throughput, whole,
};
use gapless_measure::{Report, Result, Row};
use std::path::Path;

/// The figures of a row.
pub(super) const COLUMNS: [Column; 12] = [
    ("way", |row| row.config.mode.as_deref().unwrap_or_default().replace('_', " ")),
    column::BYTES,
    ("calls/s", throughput),
    ("min", |row| number(row, "throughput_min_per_s").map_or_else(absent, rate)),
    ("max", |row| number(row, "throughput_max_per_s").map_or_else(absent, rate)),
    ("MB/s", |row| number(row, "bytes_per_s").map_or_else(absent, |bytes| grouped((bytes / 1e6) as u64))),
    ("p50, p99 µs", |row| {
        row.latency_ns
            .map_or_else(absent, |latency| format!("{}, {}", microseconds(latency.p50), microseconds(latency.p99)))
    }),
    ("CPU µs/call client, server, bridges", |row| match row.cpu_ns_per_message {
        None => absent(),
        Some(cpu) => {
            let bridges = number(row, "bridges_cpu_ns").unwrap_or_default();
            [cpu.driver, cpu.service, bridges].map(|ns| microseconds(ns as u64)).join(", ")
        }
    }),
    column::BY_FLOOR,
    ("published", |row| match row.extra.get("published") {
        None => absent(),
        Some(published) => {
            let of = |key: &str| published[key].as_f64().map_or_else(absent, rate);
            format!("{}–{}", of("min_per_s"), of("max_per_s"))
        }
    }),
    ("goal", |row| match row.extra.get("target_met").and_then(serde_json::Value::as_bool) {
        None => absent(),
        Some(is_met) => if is_met { "met" } else { "MISSED" }.to_owned(),
    }),
    column::VERIFIED,
];

/// The whole text: the published sizes, and lone calls.
pub(super) fn text(report: &Report) -> String {
    let mut rows: Vec<&Row> = report.rows.iter().filter(|row| row.extra.contains_key("target_met")).collect();
    // Stable, so that sizes stay in their order.
    rows.sort_by_key(|row| row.config.mode.clone());
    let floors: Vec<_> = report.floor.iter().filter(|row| !is_of_picture(row.payload_bytes)).cloned().collect();
    whole(report, &Table::of_rows(TableStyle::for_stdout(), &rows, 2, &COLUMNS).to_string(), &floors)
}

/// Whether a size is one of the picture's.
const fn is_of_picture(bytes: u64) -> bool {
    bytes.is_power_of_two() && bytes >= 1024
}

/// Bytes a second against size, of the sizes of the picture.
pub(super) fn draw(report: &Report, path: &Path) -> Result<()> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in report.rows.iter().filter(|row| row.config.payload_bytes.is_some_and(is_of_picture)) {
        let (Some(size), Some(bytes)) = (row.config.payload_bytes, number(row, "bytes_per_s")) else { continue };
        let way = row.config.mode.as_deref().unwrap_or_default().replace('_', " ");
        add_point(&mut curves, format!("calls, {way}"), (size as f64, bytes));
        // The bare pair of the same size and way.
        if let Some(ratio) = row.floor_ratio {
            add_point(&mut curves, format!("bare clients, {way}"), (size as f64, bytes * ratio));
        }
    }
    let labels = (
        "Bytes a second over Kafka against the size of the payload",
        "payload, bytes",
        "bytes a second, all directions",
    );
    reporting::draw(report, labels, curves, path)
}

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    vec![
        format!(
            "calls from one domain to a server in another one, each with a bridge, over one broker on this machine: four processes and the broker. \
             {} cycles, of which {} warm up; calls/s is the cycle in the middle. Each cycle forks up to {SLOTS} calls (of at most 64 MiB \
             together) and joins them, again and again; every reply is compared",
            plan.cycles.0, plan.cycles.1
        ),
        format!("{WORKERS} workers of each route, threads that sleep when there is nothing; one thread calls"),
        "one way: the payload goes, and whether it came whole comes back; two way: the payload comes back. MB/s are the bytes of all directions, \
         each of which passes the broker once"
            .to_owned(),
        "bare producer consumer: two threads with a producer and a consumer each exchange the same payloads over two topics of the same broker, with as \
         many in flight; × floor is its rate by that of the calls. lone call: one at a time; × floor is its p50 by that of bare round trips"
            .to_owned(),
        "goals: 20 times the greatest published figure at 72 B, 5 times at 10 KB, 3 times above; 0.6 of the bare pair; 1.3 times the bare round trip. \
         published: Mercury through Kafka, another machine"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_missed_goal_is_marked() {
        let mut row = Row { throughput_per_s: Some(1000.0), verified: Some(true), ..Row::default() };
        (row.config.payload_bytes, row.config.mode) = (Some(72), Some("one_way".to_owned()));
        row.extra.insert("published".to_owned(), json!({ "min_per_s": 514, "max_per_s": 791 }));
        row.extra.insert("target_met".to_owned(), json!(false));
        let shown = text(&Report { rows: vec![row], ..Report::default() });
        let line = shown.lines().find(|line| line.contains("one way")).unwrap();
        for cell in ["72", "1,000", "514–791", "MISSED", "yes"] {
            assert!(line.contains(cell), "{cell} in {line}");
        }
    }
}
