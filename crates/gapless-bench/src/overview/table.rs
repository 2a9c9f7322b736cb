//! The table, and the line that is printed when a row has been measured.

use super::line::{floor, ours, peers, published_text};
use gapless_measure::reporting::of_config;
use gapless_measure::table::{
    ABSENT, RowColumn, TableStyle, TextTable, column, floor_ratio, grouped, notes, text, unverified, verified,
};
use gapless_measure::{Report, Row};

const COLUMNS: [RowColumn; 9] = [
    ("", |row| of_config(row, "part").to_owned()),
    column::NAME,
    ("ours", ours),
    ("floor here", floor),
    ("floor", |row| text(&row.floor_name)),
    column::BY_FLOOR,
    column::VERIFIED,
    ("published (system, machine, year)", published_text),
    ("others here", peers),
];

pub(super) fn whole(report: &Report) -> String {
    let style = TableStyle::for_stdout();
    let rows: Vec<&Row> = report.rows.iter().collect();
    let table = TextTable::of_rows(style, &rows, 2, &COLUMNS);
    let mut text = format!("{}\n\n{table}\n{}", report.environment.summary(), unverified(report));
    for row in &report.rows {
        if let Some(reason) = row.failure() {
            text += &format!("FAILED: {}: {reason}\n", name(row));
        }
        if let Some(rate) = row.missed_rate_per_s() {
            text += &format!("MISSED: {}: the rate of {}/s; its latency is not a result\n", name(row), grouped(rate));
        }
    }
    // Row notes stay in the JSON.
    text + &notes(&Report { notes: report.notes.clone(), ..Report::default() })
}

pub(super) fn measured(row: &Row) -> String {
    let peers = peers(row);
    format!(
        "{:<10} {:<48} {:>20}  floor {:>14}  × {:>6}  {}{}",
        of_config(row, "part"),
        text(&row.config.name),
        ours(row),
        floor(row),
        floor_ratio(row),
        match verified(row).as_str() {
            "yes" => "verified".to_owned(),
            other => other.to_owned(),
        },
        if peers == ABSENT { String::new() } else { format!("  {peers}") }
    )
}

fn name(row: &Row) -> String {
    format!("{}: {}", of_config(row, "part"), text(&row.config.name))
}
