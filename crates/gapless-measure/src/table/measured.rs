//! A row as one line, printed when it is measured.

use super::{ABSENT, RowColumn, grouped, microseconds, name_of, rate};
use crate::{LatencyNs, Row};

#[must_use]
pub fn measured(row: &Row) -> String {
    let mut parts = Vec::new();
    if let Some(LatencyNs { p50, p99, p99_9, .. }) = row.latency_ns {
        parts.push(format!("p50 {} µs, p99 {}, p99.9 {}", microseconds(p50), microseconds(p99), microseconds(p99_9)));
    }
    if let Some(per_s) = row.throughput_per_s {
        parts.push(format!("{}/s", rate(per_s)));
    }
    if let Some(ratio) = row.floor_ratio {
        parts.push(format!("{ratio:.2} × floor"));
    }
    if row.missed_rate_per_s().is_some() {
        parts.push("MISSED this rate".to_owned());
    }
    if let Some(reason) = row.failure() {
        parts.push(format!("FAILED: {reason}"));
    } else if row.verified == Some(true) {
        parts.push("verified".to_owned());
    }
    let rate = row.config.rate_per_s.map_or_else(String::new, |per_s| format!(" at {}/s", grouped(per_s)));
    format!("{}{rate}: {}", name_of(row), parts.join("; "))
}

/// Omits absent cells.
#[must_use]
pub fn in_words(columns: &[RowColumn], row: &Row) -> String {
    let cells = columns.iter().map(|(head, cell)| (head, cell(row)));
    let there = cells.filter(|(_, cell)| !cell.is_empty() && cell != ABSENT);
    there.map(|(head, cell)| format!("{head}: {cell}")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::{column, throughput};
    use super::*;
    use crate::RowConfig;

    #[test]
    fn line_has_name_figures_and_verdict() {
        let config =
            RowConfig { encoding: Some("sbe.serial".to_owned()), rate_per_s: Some(100_000), ..RowConfig::default() };
        let latency = LatencyNs { p50: 12_340, p99: 45_600, p99_9: 1_234_000, ..LatencyNs::default() };
        let row = Row { config, latency_ns: Some(latency), verified: Some(true), ..Row::default() };
        let line = measured(&row);
        assert_eq!(line, "sbe.serial at 100,000/s: p50 12.3 µs, p99 45.6, p99.9 1,234; verified");
        let missed = Row { rate_reached: Some(false), ..row.clone() };
        assert!(measured(&missed).contains("MISSED this rate"));
        let failed = Row { verified: Some(false), throughput_per_s: Some(1_234_567.0), ..row };
        assert!(measured(&failed).contains("1,234,567/s; FAILED: the check failed"));
    }

    #[test]
    fn absent_cells_are_left_out() {
        let columns: [RowColumn; 3] = [column::BYTES, column::P50, ("a second", throughput)];
        let mut row = Row { throughput_per_s: Some(4_321.0), ..Row::default() };
        row.config.payload_bytes = Some(64);
        assert_eq!(in_words(&columns, &row), "bytes: 64; a second: 4,321");
    }
}
