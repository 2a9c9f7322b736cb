//! Text that is printed: the sizes that are usually stated, their floors, and notes.

use super::arguments::SIZES_SHOWN;
use super::earlier::RATIO;
use super::rows::{of_config, what};
use gapless_measure::reporting::{NOT_MEASURED, config_number, number};
use gapless_measure::table::{self, RowColumn, TableStyle, TextTable, absent, column, throughput, whole};
use gapless_measure::{Report, Row};
use serde_json::Value;

const SIZES_FEW: usize = 8;

pub(super) const COLUMNS: [RowColumn; 14] = [
    ("system", |row| of_config(row, "system").map_or_else(absent, str::to_owned)),
    ("acknowledged", |row| of_config(row, "acknowledgement").map_or_else(absent, str::to_owned)),
    ("waiting", |row| of_config(row, "waiting").map_or_else(absent, str::to_owned)),
    ("what", |row| match row.extra.get(NOT_MEASURED).and_then(Value::as_str) {
        Some(reason) => format!("not measured: {reason}"),
        None => what(row),
    }),
    column::BYTES,
    ("a second", throughput),
    column::P50,
    column::P99,
    column::P99_9,
    ("CPU µs client", |row| cpu(row, "client")),
    ("server", |row| cpu(row, "server")),
    ("broker", |row| cpu(row, "broker")),
    column::BY_FLOOR,
    column::VERIFIED,
];

pub(super) fn text(report: &Report) -> String {
    let mut sizes: Vec<u64> = report.rows.iter().filter_map(|row| row.config.payload_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let is_shown = |size: u64| sizes.len() <= SIZES_FEW || SIZES_SHOWN.contains(&(size as usize));
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.config.payload_bytes.is_none_or(is_shown)).collect();
    let mut columns = COLUMNS.to_vec();
    if report.rows.iter().any(|row| row.extra.contains_key(RATIO)) {
        columns.push(("× earlier", |row| number(row, RATIO).map_or_else(absent, |ratio| format!("{ratio:.2}"))));
    }
    let floors = report.floor.iter().filter(|row| is_shown(row.payload_bytes.saturating_sub(64)));
    // The floor without a payload is measured at each size; one stands for all.
    let mut floors: Vec<_> = floors.filter(|row| row.payload_bytes > 0).cloned().collect();
    floors.extend(report.floor.iter().find(|row| row.payload_bytes == 0).cloned());
    floors.sort_by(|a, b| a.name.cmp(&b.name));
    whole(report, &by_curve(&rows, TableStyle::for_stdout(), &columns).to_string(), &floors)
}

/// Rows were measured size by size.
fn by_curve(rows: &[&Row], style: TableStyle, columns: &[RowColumn]) -> TextTable {
    let mut rows = rows.to_vec();
    let key = |row: &Row| {
        let words = ["system", "acknowledgement", "waiting"].map(|key| of_config(row, key).map(str::to_owned));
        let in_flight = config_number(row, "in_flight").unwrap_or(u64::MAX);
        (words, in_flight, config_number(row, "connected"))
    };
    rows.sort_by_key(|row| key(row));
    TextTable::of_rows(style, &rows, 4, columns)
}

fn cpu(row: &Row, process: &str) -> String {
    let ns = row.extra.get("cpu_ns_per_call").and_then(|all| all[process].as_f64());
    ns.map_or_else(absent, |ns| table::microseconds(ns as u64))
}

#[cfg(test)]
mod tests {
    use super::super::rows::missing;
    use super::*;
    use gapless_load::rpc::subject::RpcSystem;

    #[test]
    fn missing_system_shows_install_hint() {
        let mut report = Report::default();
        report.rows.push(missing(RpcSystem::Nats, "nats-server is not on the PATH: apt-get install nats-server"));
        for size in 1..=100 {
            let mut row = Row { throughput_per_s: Some(1.0), ..Row::default() };
            row.config.payload_bytes = Some(size);
            row.config.extra.insert("system".to_owned(), "rabbitmq".into());
            report.rows.push(row);
        }
        let text = text(&report);
        assert!(text.contains("not measured: nats-server is not on the PATH: apt-get install nats-server"), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains("| rabbitmq")).count(), 2, "1 and 64 bytes: {text}");
    }
}
