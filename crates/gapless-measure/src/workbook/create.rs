//! A new workbook: results, floors, the machine, and a chart of the percentiles.

use std::path::Path;

use rust_xlsxwriter::{Chart, ChartType, Format, Workbook, Worksheet, XlsxError};

use crate::workbook::check;
use crate::{BenchError, FloorRow, Report, Result, Row};

/// An existing file is not touched.
///
/// # Errors
/// When the file exists or cannot be written.
pub fn create(path: &Path, report: &Report) -> Result<()> {
    check(path, None)?;
    let bytes = build(report).map_err(|error| BenchError::workbook(path, error.to_string()))?;
    std::fs::write(path, bytes).map_err(|source| BenchError::io("write", path, source))
}

fn build(report: &Report) -> std::result::Result<Vec<u8>, XlsxError> {
    let mut workbook = Workbook::new();
    let head = Format::new().set_bold().set_text_wrap();
    results(workbook.add_worksheet().set_name("Results")?, &report.rows, &head)?;
    floors(workbook.add_worksheet().set_name("Floor")?, &report.floor, &head)?;
    machine(workbook.add_worksheet().set_name("Run")?, report, &head)?;
    workbook.save_to_buffer()
}

const TEXT_HEADS: [&str; 6] = ["program", "mode", "encoding", "access", "cpu", "tier"];
const NUMBER_HEADS: [&str; 14] = [
    "rate msg/s",
    "p50 µs",
    "p90 µs",
    "p99 µs",
    "p99.9 µs",
    "p99.99 µs",
    "max µs",
    "mean µs",
    "samples",
    "throughput msg/s",
    "CPU ns/msg driver",
    "CPU ns/msg service",
    "× floor",
    "peak memory MB",
];
const STATE_HEADS: [&str; 2] = ["rate reached", "verified"];

fn results(sheet: &mut Worksheet, rows: &[Row], head: &Format) -> std::result::Result<(), XlsxError> {
    let heads = TEXT_HEADS.iter().chain(&NUMBER_HEADS).chain(&STATE_HEADS);
    for (column, text) in (0..).zip(heads) {
        sheet.write_with_format(0, column, *text, head)?;
    }
    sheet.set_freeze_panes(1, 0)?;
    let number = Format::new().set_num_format("#,##0.00");
    for (line, row) in (1..).zip(rows) {
        let config = &row.config;
        let texts = [&config.program, &config.mode, &config.encoding, &config.access, &config.cpu, &config.tier];
        for (column, text) in (0..).zip(texts) {
            if let Some(text) = text {
                sheet.write(line, column, text)?;
            }
        }
        let latency = row.latency_ns;
        let us = |ns: u64| ns as f64 / 1e3;
        let numbers = [
            config.rate_per_s.map(|rate| rate as f64),
            latency.map(|latency| us(latency.p50)),
            latency.map(|latency| us(latency.p90)),
            latency.map(|latency| us(latency.p99)),
            latency.map(|latency| us(latency.p99_9)),
            latency.map(|latency| us(latency.p99_99)),
            latency.map(|latency| us(latency.max)),
            latency.map(|latency| latency.mean / 1e3),
            latency.map(|latency| latency.count as f64),
            row.throughput_per_s,
            row.cpu_ns_per_message.map(|cpu| cpu.driver),
            row.cpu_ns_per_message.map(|cpu| cpu.service),
            row.floor_ratio,
            row.peak_memory_bytes.map(|bytes| bytes as f64 / 1e6),
        ];
        for (column, value) in (TEXT_HEADS.len() as u16..).zip(numbers) {
            if let Some(value) = value {
                sheet.write_with_format(line, column, value, &number)?;
            }
        }
        let states = [row.rate_reached, row.verified];
        for (column, state) in ((TEXT_HEADS.len() + NUMBER_HEADS.len()) as u16..).zip(states) {
            if let Some(state) = state {
                sheet.write(line, column, state)?;
            }
        }
    }
    sheet.autofit();
    chart(sheet, rows)
}

/// All rows with a latency, side by side.
fn chart(sheet: &mut Worksheet, rows: &[Row]) -> std::result::Result<(), XlsxError> {
    let mut chart = Chart::new(ChartType::Column);
    let mut has_series = false;
    for (line, _) in (1_u32..).zip(rows).filter(|(_, row)| row.latency_ns.is_some()) {
        chart
            .add_series()
            .set_name(("Results", line, 2))
            .set_categories(("Results", 0, 7, 0, 10))
            .set_values(("Results", line, 7, line, 10));
        has_series = true;
    }
    if has_series {
        chart.title().set_name("Latency, µs");
        chart.y_axis().set_log_base(10);
        sheet.insert_chart(rows.len() as u32 + 2, 0, &chart)?;
    }
    Ok(())
}

fn floors(sheet: &mut Worksheet, rows: &[FloorRow], head: &Format) -> std::result::Result<(), XlsxError> {
    for (column, text) in (0..).zip(["floor", "bytes", "p50 µs", "p99 µs", "p99.9 µs", "msg/s", "bytes/s"]) {
        sheet.write_with_format(0, column, text, head)?;
    }
    for (line, row) in (1..).zip(rows) {
        sheet.write(line, 0, &row.name)?;
        sheet.write(line, 1, row.payload_bytes as f64)?;
        let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
        let numbers = [us(row.p50_ns), us(row.p99_ns), us(row.p99_9_ns), row.rate_per_s, row.bytes_per_s];
        for (column, value) in (2..).zip(numbers) {
            if let Some(value) = value {
                sheet.write(line, column, value)?;
            }
        }
    }
    sheet.autofit();
    Ok(())
}

fn machine(sheet: &mut Worksheet, report: &Report, head: &Format) -> std::result::Result<(), XlsxError> {
    let environment = &report.environment;
    let lines = [
        ("benchmark", report.benchmark.clone()),
        ("commit", report.commit.clone().unwrap_or_default()),
        ("command line", report.command_line.clone().unwrap_or_default()),
        ("CPU", environment.cpu.clone()),
        ("cores", environment.cores.to_string()),
        ("memory, bytes", environment.memory_bytes.to_string()),
        ("kernel", environment.kernel.clone()),
    ];
    let notes = report.notes.iter().chain(report.rows.iter().flat_map(|row| &row.notes));
    let lines = lines.into_iter().chain(notes.map(|note| ("note", note.clone())));
    for (line, (name, value)) in (0..).zip(lines) {
        sheet.write_with_format(line, 0, name, head)?;
        sheet.write(line, 1, value)?;
    }
    sheet.autofit();
    Ok(())
}
