//! The table of things that take nanoseconds, which microseconds with two decimals would hide.

use gapless_report::table::{Table, TableStyle, absent, bytes, grouped, rate, text};
use gapless_report::{LatencyNs, Row};

/// One line a row, latencies in ns.
pub(super) fn nanoseconds(rows: &[Row], style: TableStyle) -> String {
    let head = ["what", "encoding", "bytes", "mean ns", "p50 ns", "p99 ns", "p99.9 ns", "a second", "× floor"];
    let mut table = Table::new(style, &head, 2);
    for row in rows {
        let latency = |figure: fn(LatencyNs) -> String| row.latency_ns.map_or_else(absent, figure);
        table.add_row(&[
            text(&row.config.name),
            text(&row.config.encoding),
            bytes(row),
            latency(|latency| format!("{:.1}", latency.mean)),
            latency(|latency| grouped(latency.p50)),
            latency(|latency| grouped(latency.p99)),
            latency(|latency| grouped(latency.p99_9)),
            row.throughput_per_s.map_or_else(absent, rate),
            row.floor_ratio.map_or_else(absent, |ratio| format!("{ratio:.2}")),
        ]);
    }
    table.to_string()
}
