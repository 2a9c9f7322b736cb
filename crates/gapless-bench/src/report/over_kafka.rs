//! The table of calls over Kafka: ours, bare clients of the same broker, and plain Java clients of the same run.

use super::html::{HtmlCell, HtmlColumn, HtmlTable, nothing, ratio, text, time, verified, word};
use super::peers::RunTable;
use super::runs::{StoredRuns, config};
use gapless_measure::published::FigureUnit;
use gapless_measure::published::mercury::{JAVA, PAYLOADS};
use gapless_measure::reporting::number;
use gapless_measure::table::{grouped, rate};
use gapless_measure::{FloorRow, Report, Row};

const NETWORK: &str = "network";
const LONE_CALL: &str = "lone_call";

struct KafkaCallRow<'a> {
    ours: &'a Row,
    java: Option<&'a Row>,
    floor: Option<&'a FloorRow>,
}

pub(super) fn table(runs: &StoredRuns) -> Option<RunTable<'_>> {
    let run = runs.newest(NETWORK, 1, is_shown)?;
    let rows: Vec<&Row> = run.sound_rows().collect();
    let columns = [
        HtmlColumn::Text("calls over Kafka"),
        HtmlColumn::Number("Gapless"),
        HtmlColumn::Number("least, greatest; p99"),
        HtmlColumn::Number("CPU\u{a0}µs client, server, bridges"),
        HtmlColumn::Number("bare clients"),
        HtmlColumn::Number("×\u{a0}floor"),
        HtmlColumn::Text("goals"),
        HtmlColumn::Number("plain Java clients"),
        HtmlColumn::Number("least, greatest; p99"),
        HtmlColumn::Text("Gapless is"),
        HtmlColumn::Text("verified"),
    ];
    let head = "Calls over one broker of Kafka: two domains with a bridge each, bare producers and consumers, and plain Java clients that call as \
        ReplyingKafkaTemplate does";
    let mut table = HtmlTable::new(head, &columns);
    for (is_lone, words) in [(false, "in flight together, calls a second"), (true, "one at a time, median")] {
        let of_group = calls(&rows, &run.report).into_iter().filter(|calls| is_lone_call(calls.ours) == is_lone);
        let mut of_group = of_group.peekable();
        if of_group.peek().is_some() {
            table.group(words);
        }
        of_group.for_each(|calls| table.row(cells(&calls)));
    }
    (!table.is_empty()).then(|| RunTable { html: table.html(), run })
}

fn is_lone_call(row: &Row) -> bool {
    config(row, "mode") == LONE_CALL
}

/// Ours, of lone calls or a published size.
fn is_shown(row: &Row) -> bool {
    let is_published = |bytes| PAYLOADS.iter().any(|size| [size.one_way, size.two_way].contains(&bytes));
    let is_of_size = row.config.payload_bytes.is_some_and(|bytes| is_published(bytes as usize));
    config(row, "system") != JAVA && (is_lone_call(row) || is_of_size)
}

fn calls<'a>(rows: &[&'a Row], report: &'a Report) -> Vec<KafkaCallRow<'a>> {
    let is_same = |one: &Row, other: &Row| {
        one.config.mode == other.config.mode && one.config.payload_bytes == other.config.payload_bytes
    };
    let of_ours = |&ours: &&'a Row| {
        let java = rows.iter().find(|row| config(row, "system") == JAVA && is_same(row, ours)).copied();
        let floor = ours.floor_name.as_ref().zip(ours.config.payload_bytes);
        let floor = floor.and_then(|(name, bytes)| report.floor_row(name, bytes));
        KafkaCallRow { ours, java, floor }
    };
    rows.iter().filter(|row| is_shown(row)).map(of_ours).collect()
}

fn figure(row: &Row) -> Option<(f64, FigureUnit)> {
    let median = || row.latency_ns.map(|latency| (latency.p50 as f64, FigureUnit::Nanoseconds));
    if is_lone_call(row) { median() } else { row.throughput_per_s.map(|rate| (rate, FigureUnit::PerSecond)) }
}

fn shown(figure: Option<(f64, FigureUnit)>) -> HtmlCell {
    match figure {
        None => nothing(),
        Some((ns, FigureUnit::Nanoseconds)) => text(time(ns)),
        Some((per_s, _)) => text(rate(per_s)),
    }
}

/// Range of the cycles, or the 99th percentile.
fn spread(row: &Row) -> HtmlCell {
    if is_lone_call(row) {
        return row.latency_ns.map_or_else(nothing, |latency| text(time(latency.p99 as f64)));
    }
    let of = |key: &str| number(row, key).map(rate);
    let range = of("throughput_min_per_s").zip(of("throughput_max_per_s"));
    range.map_or_else(nothing, |(least, greatest)| text(format!("{least} – {greatest}")))
}

fn cpu(row: &Row) -> HtmlCell {
    let Some(cpu) = row.cpu_ns_per_message else { return nothing() };
    let each = [Some(cpu.driver), Some(cpu.service), number(row, "bridges_cpu_ns")];
    let each: Vec<_> = each.into_iter().flatten().map(|ns| grouped((ns / 1e3).round() as u64)).collect();
    text(each.join(", "))
}

fn goals(row: &Row) -> HtmlCell {
    match row.extra.get("target_met").and_then(serde_json::Value::as_bool) {
        None => nothing(),
        Some(true) => HtmlCell::Verdict("ahead", "met".to_owned()),
        Some(false) => HtmlCell::Verdict("behind", "missed".to_owned()),
    }
}

fn cells(calls: &KafkaCallRow<'_>) -> Vec<HtmlCell> {
    let KafkaCallRow { ours, java, floor } = calls;
    let bytes = ours.config.payload_bytes.map_or_else(String::new, |bytes| format!(", {} B", grouped(bytes)));
    let bare = floor.and_then(|floor| match is_lone_call(ours) {
        true => floor.p50_ns.map(|ns| (ns as f64, FigureUnit::Nanoseconds)),
        false => floor.rate_per_s.map(|rate| (rate, FigureUnit::PerSecond)),
    });
    let (our_figure, theirs) = (figure(ours), java.and_then(figure));
    let by_java = our_figure.zip(theirs).map(|((ours, unit), (theirs, _))| unit.ratio(ours, theirs));
    vec![
        text(config(ours, "mode").replace('_', " ") + &bytes),
        shown(our_figure),
        spread(ours),
        cpu(ours),
        shown(bare),
        text(ours.floor_ratio.map_or_else(gapless_measure::table::absent, |ratio| format!("{ratio:.2}"))),
        goals(ours),
        shown(theirs),
        java.map_or_else(nothing, spread),
        match by_java {
            None => HtmlCell::Verdict("nobody", "not measured".to_owned()),
            Some(by_java) => {
                let (class, word) = word(by_java);
                HtmlCell::Verdict(class, format!("{word}, {}", ratio(by_java)))
            }
        },
        verified(ours),
    ]
}
