//! The table of things that take nanoseconds, which microseconds with two decimals would hide.

use crate::report::Row;
use crate::report::table::{TableStyle, grouped, rate};
use comfy_table::presets::{ASCII_MARKDOWN, UTF8_FULL_CONDENSED};
use comfy_table::{CellAlignment, ContentArrangement, Table};

/// One line a row, latencies in ns.
pub(super) fn nanoseconds(rows: &[Row], style: TableStyle) -> String {
    let mut table = Table::new();
    match style {
        TableStyle::Terminal => table.load_style(UTF8_FULL_CONDENSED),
        TableStyle::Markdown => table.load_style(ASCII_MARKDOWN),
    };
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["what", "encoding", "bytes", "mean ns", "p50 ns", "p99 ns", "p99.9 ns", "a second", "× floor"]);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for row in rows {
        let absent = || "–".to_owned();
        let latency =
            |figure: fn(&crate::report::LatencyNs) -> String| row.latency_ns.as_ref().map_or_else(absent, figure);
        table.add_row([
            row.config.name.clone().unwrap_or_else(absent),
            row.config.encoding.clone().unwrap_or_else(absent),
            row.config.payload_bytes.map_or_else(absent, grouped),
            latency(|latency| format!("{:.1}", latency.mean)),
            latency(|latency| grouped(latency.p50)),
            latency(|latency| grouped(latency.p99)),
            latency(|latency| grouped(latency.p99_9)),
            row.throughput_per_s.map_or_else(absent, rate),
            row.floor_ratio.map_or_else(absent, |ratio| format!("{ratio:.2}")),
        ]);
    }
    table.trim_fmt()
}
