//! The printed table and the picture.

use super::arguments::{NetworkPlan, NetworkSystem};
use super::goals;
use gapless_load::network::bare::{BARE_PAIR, BARE_ROUND_TRIP};
use gapless_load::rpc::payloads::served::{SLOTS, WORKERS};
use gapless_measure::plot::{Curve, add_point};
use gapless_measure::reporting::{self, NOT_MEASURED, number, of_config};
use gapless_measure::table::{
    ABSENT, RowColumn, TableStyle, TextTable, absent, column, grouped, microseconds, rate, throughput, whole,
};
use gapless_measure::{Report, Result, Row};
use std::path::Path;

pub(super) const COLUMNS: [RowColumn; 13] = [
    ("system", |row| match of_config(row, "system") {
        "" => absent(),
        system => system.to_owned(),
    }),
    ("way", |row| match row.config.mode.as_deref() {
        None if row.extra.contains_key(NOT_MEASURED) => "not measured".to_owned(),
        mode => mode.unwrap_or(ABSENT).replace('_', " "),
    }),
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
            let each = [Some(cpu.driver), Some(cpu.service), number(row, "bridges_cpu_ns")];
            let each: Vec<_> = each.into_iter().flatten().map(|ns| microseconds(ns as u64)).collect();
            each.join(", ")
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
    ("goals", |row| match goals::results(row) {
        none if none.is_empty() => absent(),
        results => results,
    }),
    column::VERIFIED,
];

pub(super) fn text(report: &Report) -> String {
    let is_shown = |bytes: Option<u64>| !bytes.is_some_and(is_of_picture);
    let mut rows: Vec<&Row> = report.rows.iter().filter(|row| is_shown(row.config.payload_bytes)).collect();
    // Stable: keeps the order of sizes and systems.
    rows.sort_by_key(|row| row.config.mode.clone());
    let floors: Vec<_> = report.floor.iter().filter(|row| is_shown(Some(row.payload_bytes))).cloned().collect();
    whole(report, &TextTable::of_rows(TableStyle::for_stdout(), &rows, 2, &COLUMNS).to_string(), &floors)
}

const fn is_of_picture(bytes: u64) -> bool {
    bytes.is_power_of_two() && bytes >= 1024
}

pub(super) fn draw(report: &Report, path: &Path) -> Result<()> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in report.rows.iter().filter(|row| row.config.payload_bytes.is_some_and(is_of_picture)) {
        let (Some(size), Some(bytes)) = (row.config.payload_bytes, number(row, "bytes_per_s")) else { continue };
        let way = row.config.mode.as_deref().unwrap_or_default().replace('_', " ");
        add_point(&mut curves, format!("calls, {way}"), (size as f64, bytes));
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

pub(super) fn notes(plan: &NetworkPlan) -> Vec<String> {
    let mut notes = vec![
        format!(
            "gapless: calls from one domain to a server in another one, each with a bridge, over one broker on this machine: four processes and the \
             broker; {WORKERS} workers of each route, threads that sleep when there is nothing; one thread calls. {} cycles, of which {} warm up; \
             calls/s is the cycle in the middle. Each cycle forks up to {SLOTS} calls (of at most 64 MiB together) and joins them, again and again; \
             every reply is compared",
            plan.cycles.0, plan.cycles.1
        ),
        "one way: the payload goes, and whether it came whole comes back; two way: the payload comes back. MB/s are the bytes of all directions, \
         each of which passes the broker once"
            .to_owned(),
        format!(
            "{BARE_PAIR}: two threads with a producer and a consumer each exchange the same payloads over two topics of the same broker, with as many \
             in flight; × floor is its rate by that of the calls. {BARE_ROUND_TRIP}, of lone calls: one at a time; × floor is their p50 by its"
        ),
        format!("{}. published: Mercury through Kafka, another machine", goals::note()),
    ];
    if plan.has(NetworkSystem::Java) {
        let (cycles, warm_up) = plan.java_cycles;
        notes.push(format!(
            "java: two plain Java clients over two topics of the same broker, as ReplyingKafkaTemplate of Spring calls: a thread reads the replies \
             and finds the call by its correlation; one thread answers. Linger 0, acks of all, after {} calls that warm up; {cycles} cycles, of which \
             {warm_up} warm up; forked, joined and compared as ours",
            plan.java_warm_up
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_measure::published::mercury::PAYLOADS;
    use serde_json::json;

    fn row(system: &str, rate: f64) -> Row {
        let mut row = Row { throughput_per_s: Some(rate), verified: Some(true), ..Row::default() };
        (row.config.payload_bytes, row.config.mode) = (Some(72), Some("one_way".to_owned()));
        row.config.extra.insert("system".to_owned(), system.into());
        row
    }

    #[test]
    fn systems_and_missed_goals_are_shown() {
        let mut ours = row("gapless", 1_000.0);
        ours.extra.insert("published".to_owned(), json!({ "min_per_s": 514, "max_per_s": 791 }));
        goals::judge_rate(&mut ours, &PAYLOADS[0], 791.0);
        let shown = text(&Report { rows: vec![ours, row("java", 3_000.0)], ..Report::default() });
        let mut lines = shown.lines().filter(|line| line.contains("one way"));
        let line = lines.next().unwrap();
        for cell in ["gapless", "72", "1,000", "514–791", "published MISSED", "yes"] {
            assert!(line.contains(cell), "{cell} in {line}");
        }
        assert!(lines.next().is_some_and(|line| line.contains("java") && line.contains("3,000")));
    }

    #[test]
    fn table_omits_sizes_of_the_picture() {
        let mut of_picture = row("gapless", 1_000.0);
        of_picture.config.payload_bytes = Some(65_536);
        let mut missing = reporting::not_measured(gapless_measure::RowConfig::default(), "no Java");
        missing.notes.push("no Java".to_owned());
        let shown = text(&Report { rows: vec![of_picture, missing], ..Report::default() });
        assert!(!shown.contains("65,536") && shown.contains("not measured") && shown.contains("note: no Java"));
    }
}
