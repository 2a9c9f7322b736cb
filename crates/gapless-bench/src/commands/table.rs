//! The printed table and the picture.

use crate::commands::arguments::{CommandsPart, CommandsPlan};
use crate::commands::ladder;
use gapless_load::commands::latency::PER_S;
use gapless_measure::Result;
use gapless_measure::reporting::{self, config_number, of_config};
use gapless_measure::table::{
    RowColumn, TableStyle, TextTable, absent, column, driver_cpu, grouped, microseconds, rate, service_cpu, throughput,
    whole,
};
use gapless_measure::{Report, Row, plot};
use serde_json::Value;
use std::path::Path;

pub(crate) fn line(label: &str, row: &Row) -> String {
    let figure = match (row.throughput_per_s, row.latency_ns, row.elapsed_ns) {
        (Some(per_s), ..) => format!("{}/s", rate(per_s)),
        (_, Some(latency), _) => format!("p50 {} µs, p99 {} µs", microseconds(latency.p50), microseconds(latency.p99)),
        (.., Some(ns)) => format!("{:.2} s", ns as f64 / 1e9),
        _ => absent(),
    };
    let unverified = if row.verified == Some(false) { ", NOT VERIFIED" } else { "" };
    format!("{label}: {figure}{unverified}")
}

pub(crate) fn text(report: &Report) -> String {
    let style = TableStyle::for_stdout();
    let rates: [RowColumn; 15] = [
        ("drive", |row| drive(row)),
        column::TIER,
        column::ENCODING,
        ("identifiers", |row| of_config(row, "identifiers").to_owned()),
        ("aggregates", aggregates),
        column::BYTES,
        ("commands/s", throughput),
        ("least", |row| of_turns(row, f64::min)),
        ("most", |row| of_turns(row, f64::max)),
        ("CPU ns driver", driver_cpu),
        ("CPU ns bus", service_cpu),
        column::BY_FLOOR,
        ("× Axon", |row| reporting::number(row, "axon_ratio").map_or_else(absent, |ratio| format!("{ratio:.1}"))),
        ("target", target),
        column::VERIFIED,
    ];
    let latencies: [RowColumn; 10] = [
        ("drive", |row| drive(row)),
        column::TIER,
        ("the caller", |row| of_config(row, "caller").to_owned()),
        column::P50,
        column::P99,
        column::P99_9,
        column::MAX,
        column::BY_FLOOR,
        ("target", target),
        column::VERIFIED,
    ];
    let replays: [RowColumn; 7] = [
        ("replay of", |row| row.config.count.map_or_else(absent, grouped)),
        column::ENCODING,
        ("aggregates", aggregates),
        ("events/s", throughput),
        ("CPU ns/event", driver_cpu),
        ("target", target),
        column::VERIFIED,
    ];
    let scales: [RowColumn; 9] = [
        ("very many aggregates", |row| of_config(row, "what").to_owned()),
        ("commands/s", throughput),
        column::P50,
        column::P99,
        ("s", |row| row.elapsed_ns.map_or_else(absent, |ns| format!("{:.2}", ns as f64 / 1e9))),
        ("CPU ns/command", |row| row.cpu_ns_per_message.map_or_else(absent, |cpu| rate(cpu.driver + cpu.service))),
        ("peak MiB", |row| row.peak_memory_bytes.map_or_else(absent, |bytes| grouped(bytes >> 20))),
        ("target", target),
        column::VERIFIED,
    ];
    let mut figures: Vec<String> = ladder::table(report, style).into_iter().collect();
    let tables = [
        ("throughput", &rates[..], 4),
        ("latency", &latencies[..], 3),
        ("replay", &replays[..], 2),
        ("scale", &scales[..], 1),
    ];
    for (mode, columns, left) in tables {
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.config.mode.as_deref() == Some(mode)).collect();
        if !rows.is_empty() {
            figures.push(TextTable::of_rows(style, &rows, left, columns).to_string());
        }
    }
    whole(report, &figures.join("\n\n"), &report.floor)
}

fn drive(row: &Row) -> String {
    match (&row.config.name, of_config(row, "setup"), config_number(row, "in_flight")) {
        (Some(name), "" | "ours", _) => name.clone(),
        (Some(name), setup, _) => format!("{name}, {setup}"),
        (None, _, Some(1)) => format!("{}, one by one", of_config(row, "drive")),
        (None, ..) => of_config(row, "drive").to_owned(),
    }
}

fn aggregates(row: &Row) -> String {
    config_number(row, "aggregates").map_or_else(absent, grouped)
}

fn target(row: &Row) -> String {
    let is_met = row.extra.get("target_met").and_then(Value::as_bool);
    let target = row.extra.get("target").and_then(Value::as_str).unwrap_or_default();
    is_met.map_or_else(absent, |is_met| format!("{} {target}", if is_met { "met:" } else { "MISSED:" }))
}

fn of_turns(row: &Row, choose: fn(f64, f64) -> f64) -> String {
    let turns = row.extra.get("turns").and_then(|turns| turns["throughput_per_s"].as_array());
    let rates = turns.into_iter().flatten().filter_map(Value::as_f64);
    rates.reduce(choose).map_or_else(absent, rate)
}

pub(crate) fn draw(report: &Report, path: &Path) -> Result<()> {
    let mut curves: Vec<plot::Curve> = Vec::new();
    for row in &report.rows {
        let is_of_it = row.config.mode.as_deref() == Some("throughput")
            && (row.config.tier.as_deref(), row.config.encoding.as_deref()) == (Some("memory"), Some("sbe"))
            && of_config(row, "identifiers") == "position"
            && config_number(row, "aggregates") == Some(1);
        let (Some(size), Some(rate), true) = (row.config.payload_bytes, row.throughput_per_s, is_of_it) else {
            continue;
        };
        plot::add_point(&mut curves, drive(row), (size.max(1) as f64, rate));
    }
    let labels = ("Commands of one aggregate, in memory, SBE", "bytes of a command's note", "commands/s");
    reporting::draw(report, labels, curves, path)
}

pub(crate) fn notes(plan: &CommandsPlan) -> Vec<String> {
    let has = |part: CommandsPart| plan.parts.contains(&part);
    let mut notes = Vec::new();
    if !(plan.cases.is_empty() && plan.axon_cases.is_empty()) {
        notes.push(format!(
            "each row runs for {:?} in each of {} turns, after {:?} that warm up; commands/s is the turn in the middle. One thread sends \
             and awaits, at most {} in flight; every outcome is checked: one event, its aggregate's next version, a position after the \
             last. After the clock each aggregate is asked whether it has had as many events as it was sent commands",
            plan.time, plan.turns, plan.warm_up, plan.in_flight
        ));
        notes.push(
            "bytes: of the text in command and event, next to an amount of 8 bytes. Every command carries two headers of 16 bytes as \
             metadata. Identifiers: position is session and number, which the bus gives; random and time-ordered are the caller's, \
             remembered, and 1 % of those commands are sent twice. Axon makes identifiers and forgets them"
                .to_owned(),
        );
        notes.push(
            "the floor in memory: one thread encodes the event and appends its frame with its checksums, and nothing else; at journal: the \
             canonical row, event sourcing, sbe.serial, at tier journal. CPU of the bus: all threads of the process but the one that sends; \
             of Axon the whole process. × Axon: by the fastest of its rows with as many aggregates"
                .to_owned(),
        );
    }
    if has(CommandsPart::Ladder) {
        notes.push(format!("the ladder: {}", ladder::SOURCE));
    }
    if has(CommandsPart::Latency) {
        notes.push(format!(
            "latency: {PER_S} commands a second, one after the other, from the time at which each is due; the floor is the shared memory \
             ping-pong at the same pace"
        ));
    }
    if has(CommandsPart::Replay) {
        notes.push(
            "replay: a reader of the whole stream that decodes each event and adds it to its aggregate's sum"
                .to_owned(),
        );
    }
    if has(CommandsPart::Scale) {
        notes.push(format!(
            "very many: {} events over {} aggregates at tier journal, one after the other and again; then the process is killed. The next \
             one: from the start of the program to the answer of a command that expects the last event. Any: at random; others are for {}",
            grouped(plan.scale_events),
            grouped(plan.scale_aggregates),
            grouped(plan.scale_hot)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::rows;
    use gapless_load::commands::case::{BusCase, BusDrive};
    use gapless_measure::LatencyNs;
    use serde_json::json;

    #[test]
    fn rows_have_tables_and_show_failures() {
        let case = BusCase::base(BusDrive::Pipelined);
        let of = |mode| Row { config: rows::config(&case, mode, 64), verified: Some(true), ..Row::default() };
        let mut rate = Row { throughput_per_s: Some(1_234_567.0), ..of("throughput") };
        rate.extra =
            json!({ "target": "much", "target_met": false, "turns": { "throughput_per_s": [3.0, 7_654_321.0] } })
                .as_object()
                .unwrap()
                .clone();
        let latency = Row { latency_ns: Some(LatencyNs { p50: 4_200, ..LatencyNs::default() }), ..of("latency") };
        let replay = Row { throughput_per_s: Some(9_999_999.0), ..of("replay") };
        let mut report = Report { rows: vec![rate, latency, replay], ..Report::default() };
        let shown = text(&report);
        for part in ["1,234,567", "7,654,321", "MISSED: much", "4.20", "9,999,999"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        report.rows[0].verified = Some(false);
        assert!(text(&report).contains("NOT VERIFIED"));
    }
}
