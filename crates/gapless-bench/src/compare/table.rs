//! The output of a comparison: the table, the JSON and the help.

use super::InstructionCounts;
use super::build::Build;
use super::verdict::Series;
use super::workload::{NAMED, row_name};
use crate::statistics::{RatioInterval, median};
use gapless_measure::table::{TableStyle, TextTable, notes, rate};
use gapless_measure::{Report, Row, RowConfig};
use serde_json::json;

pub(super) fn json_row(series: &Series) -> Row {
    let mut config = series.row.config.clone();
    config.extra.insert("run".to_owned(), json!(series.workload));
    config.extra.insert("figure".to_owned(), json!(series.figure.name()));
    let mut row = Row { config, ..Row::default() };
    let mut put = |key: &str, value| row.extra.insert(key.to_owned(), value);
    put("unit", json!(series.figure.unit()));
    put("pairs", json!(series.a.len()));
    put("a", json!(series.a));
    put("b", json!(series.b));
    put("floor_a_ns", json!(series.floor_a));
    put("floor_b_ns", json!(series.floor_b));
    if let Some(RatioInterval { low, ratio, high }) = series.interval() {
        put("ratio", json!(ratio));
        put("ratio_low", json!(low));
        put("ratio_high", json!(high));
    }
    put("verdict", json!(series.verdict().name()));
    row
}

pub(super) fn json_counted(counted: &InstructionCounts) -> Row {
    let mut row = Row { config: RowConfig::default(), ..Row::default() };
    row.config.extra.insert("run".to_owned(), json!(counted.workload));
    row.config.extra.insert("figure".to_owned(), json!("instructions"));
    let mut put = |key: &str, value| row.extra.insert(key.to_owned(), value);
    put("unit", json!("instructions/message"));
    put("a", json!(counted.a));
    put("b", json!(counted.b));
    put("ratio", json!(median(&counted.b) / median(&counted.a)));
    row
}

pub(super) fn text(report: &Report, a: &Build, b: &Build, all: &[Series], counted: &[InstructionCounts]) -> String {
    let head = ["run", "row", "figure", "A", "B", "B / A", "interval", "pairs", "floor B / A", "B is"];
    let mut table = TextTable::new(TableStyle::for_stdout(), &head, 3);
    for series in all {
        let found = series.interval();
        let floor = median(&series.floor_b) / median(&series.floor_a);
        table.add_row(&[
            series.workload.clone(),
            row_name(&series.row),
            format!("{}, {}", series.figure.name(), series.figure.unit()),
            rate(median(&series.a)),
            rate(median(&series.b)),
            found.map_or_else(|| "–".to_owned(), |found| format!("{:.3}", found.ratio)),
            found.map_or_else(|| "too few pairs".to_owned(), |found| format!("{:.3}–{:.3}", found.low, found.high)),
            series.a.len().to_string(),
            if floor.is_finite() { format!("{floor:.2}") } else { "–".to_owned() },
            series.verdict().name().to_owned(),
        ]);
    }
    for counted in counted {
        let (of_a, of_b) = (median(&counted.a), median(&counted.b));
        table.add_row(&[
            counted.workload.clone(),
            String::new(),
            "instructions/message".to_owned(),
            rate(of_a),
            rate(of_b),
            format!("{:.3}", of_b / of_a),
            "–".to_owned(),
            counted.a.len().to_string(),
            "–".to_owned(),
            "counted by callgrind".to_owned(),
        ]);
    }
    let mut text = format!("{}\nA: {}\nB: {}\n\n{table}\n", report.environment.summary(), a.name, b.name);
    text += &notes(report);
    text += "Medians of pairs of runs; the ratio is the median of all pairwise averages, its interval Wilcoxon's. All intervals \
             together hold in nineteen comparisons of twenty.\n";
    text
}

pub fn help() -> String {
    let runs = NAMED.iter().map(|(name, arguments, count, what)| {
        let count = if *count > 0 { format!(" -c {count}") } else { String::new() };
        format!("  {name:18} {what}: {arguments}{count}\n")
    });
    format!(
        "Runs that have a name:\n{}\nExamples:\n\
         \x20 gapless bench compare v0.1.0 HEAD\n\
         \x20 gapless bench compare ./gapless-before target/release/gapless --run direct --run indirect\n\
         \x20 gapless bench compare HEAD~1 HEAD --run \"canonical --mode throughput --tier memory -c 1000000\" --tolerance 2\n\n\
         Ends with 3 if B is slower, with 0 if that was not found, with 1 if it could not be measured to its end. A revision is built as it is \
         committed; what is not committed is compared by the path of its program.",
        runs.collect::<String>()
    )
}
