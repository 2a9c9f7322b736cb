//! Tables of killed processes: servers and brokers under calls, a leader, a supervisor.

use super::html::{HtmlCell, HtmlColumn, HtmlTable, nothing, text, time, verified};
use super::peers::RunTable;
use super::runs::{StoredRuns, config};
use crate::failover::FIRST_NEW_REPLY;
use gapless_measure::Row;
use gapless_measure::reporting::{config_number, number};
use gapless_measure::statistics::median;
use gapless_measure::table::{absent, grouped};
use serde_json::Value;

pub(super) fn fault_table(runs: &StoredRuns) -> Option<RunTable<'_>> {
    let run = runs.newest("rpc faults", 1, |row| config_number(row, "kills").is_some())?;
    let columns = [
        HtmlColumn::Text("killed"),
        HtmlColumn::Text("repeated"),
        HtmlColumn::Number("kills"),
        HtmlColumn::Number("calls"),
        HtmlColumn::Number("failed"),
        HtmlColumn::Number("retried"),
        HtmlColumn::Number("longest silence"),
        HtmlColumn::Number("caller knows, p99"),
        HtmlColumn::Number("retry answered, p99"),
        HtmlColumn::Number("as before, max"),
        HtmlColumn::Number("wrong, doubled"),
        HtmlColumn::Text("verified"),
    ];
    let mut table = HtmlTable::new("Processes killed with signal 9 while calls go round", &columns);
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
    let (system, instances) = (config(row, "system"), config_number(row, "copies"));
    let of_instances = instances.map_or_else(absent, |instances| format!("one of {instances}"));
    match config(row, "supervised").as_str() {
        "" if system == "rabbitmq" && instances.is_some() => format!("RabbitMQ, {of_instances} servers"),
        "" if system == "rabbitmq" => "RabbitMQ, its broker".to_owned(),
        "" => format!("Gapless, {of_instances}"),
        "any" => "Gapless, any of all processes".to_owned(),
        "copy" => format!("Gapless, {of_instances}, supervised"),
        other => format!("Gapless, {}", other.replace('_', " ")),
    }
}

pub(super) fn failover_table(runs: &StoredRuns) -> Option<RunTable<'_>> {
    let is_event = |row: &Row| row.extra.contains_key(FIRST_NEW_REPLY);
    let run = runs.newest("failover", 1, is_event)?;
    let columns = [
        HtmlColumn::Text("event"),
        HtmlColumn::Text("members"),
        HtmlColumn::Number("times"),
        HtmlColumn::Number("every client has a new reply, median"),
        HtmlColumn::Number("worst"),
        HtmlColumn::Number("longest silence of a client"),
        HtmlColumn::Number("lost, doubled"),
        HtmlColumn::Text("target"),
        HtmlColumn::Text("verified"),
    ];
    let mut table = HtmlTable::new("What clients see of a cluster", &columns);
    for row in run.report.rows.iter().filter(|row| is_event(row)) {
        // A reply that never came is null.
        let numbers = |key: &str| -> Vec<f64> {
            let values = row.extra.get(key).and_then(Value::as_array).into_iter().flatten();
            values.map(|value| value.as_f64().unwrap_or(f64::INFINITY)).collect()
        };
        let (replies, silences) = (numbers(FIRST_NEW_REPLY), numbers("longest_silence_ns"));
        let shown = |ns: Option<f64>| match ns {
            Some(ns) if ns.is_infinite() => HtmlCell::Verdict("missed", "never".to_owned()),
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

pub(super) fn supervisor_table(runs: &StoredRuns) -> Option<RunTable<'_>> {
    let run = runs.newest("supervisor", 1, |row| row.latency_ns.is_some())?;
    let columns = [
        HtmlColumn::Text("supervisor"),
        HtmlColumn::Number("times"),
        HtmlColumn::Number("p50"),
        HtmlColumn::Number("max"),
        HtmlColumn::Text("target"),
    ];
    let mut table = HtmlTable::new("A supervisor of copies that do nothing", &columns);
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

fn target(row: &Row, key: &str) -> HtmlCell {
    let Some(most) = number(row, key) else { return nothing() };
    match row.extra.get("target_met").and_then(Value::as_bool) {
        Some(true) => HtmlCell::Verdict("ahead", format!("{}, reached", time(most))),
        _ => HtmlCell::Verdict("behind", format!("{}, missed", time(most))),
    }
}
