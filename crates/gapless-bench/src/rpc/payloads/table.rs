//! The printed table and the picture.

use super::PayloadsPlan;
use gapless_load::rpc::payloads::served::{SLOTS, WORKERS};
use gapless_measure::Result;
use gapless_measure::plot::{Curve, add_point};
use gapless_measure::reporting::{self, number, of_config};
use gapless_measure::table::{
    RowColumn, TableStyle, TextTable, absent, column, grouped, microseconds, rate, throughput, whole,
};
use gapless_measure::{Report, Row};
use std::path::Path;

pub(super) const COLUMNS: [RowColumn; 11] = [
    ("ends", |row| of_config(row, "ends").to_owned()),
    ("way", |row| row.config.mode.as_deref().unwrap_or_default().replace('_', " ")),
    column::BYTES,
    ("calls/s", throughput),
    ("min", |row| number(row, "throughput_min_per_s").map_or_else(absent, rate)),
    ("max", |row| number(row, "throughput_max_per_s").map_or_else(absent, rate)),
    ("MB/s", |row| number(row, "bytes_per_s").map_or_else(absent, |bytes| grouped((bytes / 1e6) as u64))),
    ("CPU µs/call client, server", |row| {
        let cpu = row.cpu_ns_per_message.unwrap_or_default();
        let server = if cpu.service > 0.0 { microseconds(cpu.service as u64) } else { absent() };
        format!("{}, {server}", microseconds(cpu.driver as u64))
    }),
    column::BY_FLOOR,
    ("published", |row| match row.extra.get("published") {
        None => absent(),
        Some(published) => {
            let of = |key: &str| published[key].as_f64().map_or_else(absent, rate);
            format!("{}–{}", of("min_per_s"), of("max_per_s"))
        }
    }),
    column::VERIFIED,
];

pub(super) fn text(report: &Report) -> String {
    let style = TableStyle::for_stdout();
    let mut rows: Vec<&Row> = report.rows.iter().filter(|row| row.extra.contains_key("published")).collect();
    rows.sort_by_key(|row| (of_config(row, "ends").to_owned(), row.config.mode.clone()));
    let floors = report.floor.iter().filter(|row| !row.payload_bytes.is_power_of_two());
    let floors: Vec<_> = floors.cloned().collect();
    whole(report, &TextTable::of_rows(style, &rows, 2, &COLUMNS).to_string(), &floors)
}

pub(super) fn draw(report: &Report, path: &Path) -> Result<()> {
    let floors = report.floor.iter().filter(|row| row.payload_bytes.is_power_of_two());
    let points = floors.filter_map(|row| Some((row.payload_bytes as f64, row.bytes_per_s?)));
    let mut curves = vec![Curve { name: "floor: memcpy_cold".to_owned(), points: points.collect() }];
    for row in report.rows.iter().filter(|row| !row.extra.contains_key("published")) {
        let (Some(size), Some(bytes)) = (row.config.payload_bytes, number(row, "bytes_per_s")) else { continue };
        let way = row.config.mode.as_deref().unwrap_or_default().replace('_', " ");
        add_point(&mut curves, format!("{}, {way}", of_config(row, "ends")), (size as f64, bytes));
    }
    let labels = ("Bytes a second against the size of the payload", "payload, bytes", "bytes a second, all directions");
    reporting::draw(report, labels, curves, path)
}

pub(super) fn notes(plan: &PayloadsPlan) -> Vec<String> {
    vec![
        format!(
            "{} cycles of {} calls, of which {} warm up; calls/s is the cycle in the middle. Each cycle forks up to {SLOTS} \
             calls (of at most 64 MiB together) and joins them, again and again; payloads are written before the clock runs, \
             replies are compared when it stands",
            plan.cycles.0, plan.calls, plan.cycles.1
        ),
        format!("{WORKERS} workers of each route, threads that sleep when there is nothing; one thread calls"),
        "one way: the payload goes, and whether it came whole comes back; two way: the payload comes back. MB/s are the \
         bytes of all directions"
            .to_owned(),
        "one process: values move, nothing is copied, so the size hardly matters; there is no floor beside it. two \
         processes: the floor is copying the payload once with cold buffers, by one core; × floor is its bytes a second by \
         those of the calls"
            .to_owned(),
        "published: Mercury, another machine; beside one process its figures in memory, beside two processes those through \
         Kafka. Its sizes are 3 bytes less where the payload comes back"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn table_has_published_sizes_only() {
        let row = |size: u64, mode: &str| {
            let mut row = Row { throughput_per_s: Some(1000.0), verified: Some(true), ..Row::default() };
            (row.config.payload_bytes, row.config.mode) = (Some(size), Some(mode.to_owned()));
            row.config.extra.insert("ends".to_owned(), "two processes".into());
            row.extra.insert("bytes_per_s".to_owned(), json!(72_000_000.0));
            row
        };
        let mut report = Report { rows: vec![row(72, "one_way"), row(1024, "two_way")], ..Report::default() };
        report.rows[0].extra.insert("published".to_owned(), json!({ "min_per_s": 514, "max_per_s": 791 }));
        let shown = text(&report);
        let line: Vec<_> = shown.lines().filter(|line| line.contains("two processes")).collect();
        assert_eq!(line.len(), 1, "{shown}");
        for cell in ["one way", "72", "1,000", "514–791", "yes"] {
            assert!(line[0].contains(cell), "{cell} in {}", line[0]);
        }
        report.rows[0].verified = Some(false);
        assert!(text(&report).contains("NOT VERIFIED"));
    }
}
