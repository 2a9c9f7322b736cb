//! Tables of killed processes: servers and brokers under calls, a leader, a supervisor.

use super::html::{Cell, Column, Table, nothing, text, time, verified};
use super::peers::RunTable;
use super::runs::{Runs, config};
use crate::failover::FIRST_NEW_REPLY;
use gapless_measure::Row;
use gapless_measure::reporting::{config_number, number};
use gapless_measure::statistics::median;
use gapless_measure::table::{absent, grouped};
use serde_json::Value;

/// Processes killed under calls.
pub(super) fn fault_table(runs: &Runs) -> Option<RunTable<'_>> {
    let run = runs.newest("rpc faults", 1, |row| config_number(row, "kills").is_some())?;
    let columns = [
        Column::Text("killed"),
        Column::Text("repeated"),
        Column::Number("kills"),
        Column::Number("calls"),
        Column::Number("failed"),
        Column::Number("retried"),
        Column::Number("longest silence"),
        Column::Number("caller knows, p99"),
        Column::Number("retry answered, p99"),
        Column::Number("as before, max"),
        Column::Number("wrong, doubled"),
        Column::Text("verified"),
    ];
    let mut table = Table::new("Processes killed with signal 9 while calls go round", &columns);
    for row in &run.report.rows {
        let count = |value: Option<f64>| text(value.map_or_else(absent, |value| grouped(value as u64)));
        let failed = row.extra.get("failed").and_then(Value::as_object);
        let failed = failed.map(|all| all.values().filter_map(Value::as_f64).sum());
        let of = |key: &str, part: &str| row.extra.get(key).and_then(|all| all[part].as_f64());
        let again = of("answered_again_after_sign_ns", "p99");
        let after = of("restored_after_sign_ns", "max");
        let knows = row.latency_ns.filter(|latency| latency.count > 0 && latency.max > 0);
        let wrong = number(row, "wrong").map_or_else(absent, |wrong| grouped(wrong as u64));
        table.row(vec![
            text(killed(row)),
            text(config(row, "retry").replace('_', " ")),
            text(config_number(row, "kills").map_or_else(absent, grouped)),
            count(row.sent.map(|sent| sent as f64)),
            count(failed),
            count(number(row, "retried")),
            text(number(row, "longest_silence_ns").map_or_else(absent, time)),
            text(knows.map_or_else(absent, |latency| time(latency.p99 as f64))),
            text(again.map_or_else(absent, time)),
            text(after.map_or_else(absent, time)),
            text(format!("{wrong}, {}", row.duplicated.map_or_else(absent, grouped))),
            verified(row),
        ]);
    }
    Some(RunTable { html: table.html(), run })
}

fn killed(row: &Row) -> String {
    let (system, copies) = (config(row, "system"), config_number(row, "copies"));
    let of_copies = copies.map_or_else(absent, |copies| format!("one of {copies}"));
    match config(row, "supervised").as_str() {
        "" if system == "rabbitmq" && copies.is_some() => format!("RabbitMQ, {of_copies} servers"),
        "" if system == "rabbitmq" => "RabbitMQ, its broker".to_owned(),
        "" => format!("Gapless, {of_copies}"),
        "any" => "Gapless, any of all processes".to_owned(),
        "copy" => format!("Gapless, {of_copies}, supervised"),
        other => format!("Gapless, {}", other.replace('_', " ")),
    }
}

/// Outages that clients of a cluster see.
pub(super) fn failover_table(runs: &Runs) -> Option<RunTable<'_>> {
    let is_event = |row: &Row| row.extra.contains_key(FIRST_NEW_REPLY);
    let run = runs.newest("failover", 1, is_event)?;
    let columns = [
        Column::Text("event"),
        Column::Text("members"),
        Column::Number("times"),
        Column::Number("every client has a new reply, median"),
        Column::Number("worst"),
        Column::Number("longest silence of a client"),
        Column::Number("lost, doubled"),
        Column::Text("target"),
        Column::Text("verified"),
    ];
    let mut table = Table::new("What clients see of a cluster", &columns);
    for row in run.report.rows.iter().filter(|row| is_event(row)) {
        // A reply that never came is null.
        let numbers = |key: &str| -> Vec<f64> {
            let values = row.extra.get(key).and_then(Value::as_array).into_iter().flatten();
            values.map(|value| value.as_f64().unwrap_or(f64::INFINITY)).collect()
        };
        let (replies, silences) = (numbers(FIRST_NEW_REPLY), numbers("longest_silence_ns"));
        let shown = |ns: Option<f64>| match ns {
            Some(ns) if ns.is_infinite() => Cell::Verdict("missed", "never".to_owned()),
            Some(ns) => text(time(ns)),
            None => nothing(),
        };
        let longest = |values: &[f64]| shown(values.iter().copied().reduce(f64::max));
        table.row(vec![
            text(config(row, "event")),
            text(if config(row, "members") == "full" { "three members" } else { "primary, backup, witness" }),
            text(grouped(replies.len() as u64)),
            shown((!replies.is_empty()).then(|| median(&replies))),
            longest(&replies),
            longest(&silences),
            text([row.lost, row.duplicated].map(|count| count.map_or_else(absent, grouped)).join(", ")),
            target(row, "target_ns"),
            verified(row),
        ]);
    }
    Some(RunTable { html: table.html(), run })
}

/// Times of a supervisor.
pub(super) fn supervisor_table(runs: &Runs) -> Option<RunTable<'_>> {
    let run = runs.newest("supervisor", 1, |row| row.latency_ns.is_some())?;
    let columns = [
        Column::Text("supervisor"),
        Column::Number("times"),
        Column::Number("p50"),
        Column::Number("max"),
        Column::Text("target"),
    ];
    let mut table = Table::new("A supervisor of copies that do nothing", &columns);
    for row in &run.report.rows {
        let Some(latency) = row.latency_ns else { continue };
        let name = row.config.name.clone().unwrap_or_default();
        table.row(vec![
            text(name),
            text(grouped(latency.count)),
            text(time(latency.p50 as f64)),
            text(time(latency.max as f64)),
            target(row, "target_p50_ns"),
        ]);
    }
    Some(RunTable { html: table.html(), run })
}

/// A target of our own and whether it was reached.
fn target(row: &Row, key: &str) -> Cell {
    let Some(most) = number(row, key) else { return nothing() };
    match row.extra.get("target_met").and_then(Value::as_bool) {
        Some(true) => Cell::Verdict("ahead", format!("{}, reached", time(most))),
        _ => Cell::Verdict("behind", format!("{}, missed", time(most))),
    }
}
