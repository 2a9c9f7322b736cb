//! The printed table.

use gapless_measure::reporting::number;
use gapless_measure::table::{RowColumn, TableStyle, TextTable, absent, column, whole};
use gapless_measure::{Report, Row};
use serde_json::Value;

pub(super) const COLUMNS: [RowColumn; 9] = [
    column::NAME,
    ("target", target),
    ("met", |row| match row.extra.get("target_met").and_then(Value::as_bool) {
        Some(is_met) => if is_met { "yes" } else { "NO" }.to_owned(),
        None => absent(),
    }),
    ("times", |row| row.latency_ns.map_or_else(absent, |latency| latency.count.to_string())),
    ("p50 ms", |row| row.latency_ns.map_or_else(absent, |latency| milliseconds(latency.p50))),
    ("max ms", |row| row.latency_ns.map_or_else(absent, |latency| milliseconds(latency.max))),
    ("CPU %", |row| number(row, "cpu_share").map_or_else(absent, |share| format!("{:.4}", share * 100.0))),
    ("resident MB", |row| megabytes(row, "resident_bytes")),
    ("proportional MB", |row| megabytes(row, "proportional_bytes")),
];

pub(super) fn text(report: &Report) -> String {
    let style = TableStyle::for_stdout();
    let rows: Vec<&Row> = report.rows.iter().collect();
    whole(report, &TextTable::of_rows(style, &rows, 3, &COLUMNS).to_string(), &report.floor)
}

fn target(row: &Row) -> String {
    match (number(row, "target_p50_ns"), number(row, "target_cpu_share"), number(row, "target_resident_bytes")) {
        (Some(ns), ..) => format!("p50 ≤ {} ms", ns / 1e6),
        (None, Some(share), Some(bytes)) => format!("≤ {} % of a core, {} MB", share * 100.0, bytes / 1e6),
        _ => absent(),
    }
}

fn milliseconds(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e6)
}

fn megabytes(row: &Row, key: &str) -> String {
    number(row, key).map_or_else(absent, |bytes| format!("{:.1}", bytes / 1e6))
}

pub(super) fn notes(copies: usize) -> Vec<String> {
    vec![
        format!("{copies} processes with an instance each, `sleep`, under guardian and supervisor; up and down are the commands, from start to end"),
        "idle: guardian and supervisor together, share of one core, with nobody connected. Resident memory counts what both share \
         twice, proportional memory once"
            .to_owned(),
        "from SIGKILL: a replacement is forked, and runs its program (both as the supervisor tells it); another supervisor takes \
         commands, and says that all instances are ready; another guardian runs"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_measure::LatencyNs;
    use serde_json::json;

    #[test]
    fn rows_have_figures_and_targets() {
        let latency = LatencyNs { p50: 1_500_000, max: 20_000_000, count: 3, ..LatencyNs::default() };
        let mut times = Row { latency_ns: Some(latency), ..Row::default() };
        times.extra = json!({ "target_p50_ns": 100_000_000, "target_met": true }).as_object().cloned().unwrap();
        let mut idle = Row::default();
        let figures = json!({ "cpu_share": 0.0001, "resident_bytes": 25_000_000, "proportional_bytes": 9_000_000,
            "target_cpu_share": 0.002, "target_resident_bytes": 20_000_000, "target_met": false });
        idle.extra = figures.as_object().cloned().unwrap();
        let shown = text(&Report { rows: vec![times, idle], ..Report::default() });
        for cell in ["p50 ≤ 100 ms", "yes", "1.50", "20.00", "≤ 0.2 % of a core, 20 MB", "NO", "0.0100", "25.0", "9.0"]
        {
            assert!(shown.contains(cell), "{cell} in {shown}");
        }
    }
}
