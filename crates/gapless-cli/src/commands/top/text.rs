//! Readings as text and as JSON, for pipes and for `--once`.

use super::source::DirectoryReading;
use super::table;
use crate::commands::routes::{calls_in_json, counters_in_json, unreadable_in_json, waiting};
use crate::commands::stream::nodes::in_json as nodes_in_json;
use gapless_rpc::domain::{CallReading, InstanceReading};
use serde_json::{Map, Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) fn in_text(readings: &[DirectoryReading]) -> String {
    let overview: Vec<_> = readings.iter().filter(|reading| reading.has_node).map(table::overview).collect();
    let mut text = lines(table::aligned(table::OVERVIEW, &overview, table::OVERVIEW_WORDS));
    for reading in readings {
        let remark = table::remark(reading);
        let (gap, colon) = (if text.is_empty() { "" } else { "\n" }, if remark.is_empty() { "" } else { ": " });
        text += &format!("{gap}{}{colon}{remark}\n", table::clean(&reading.directory.display().to_string()));
        text += &lines(table::aligned(table::PEERS, &table::peers(reading), 3));
        text += &lines(table::aligned(table::NODES, &table::nodes(reading), 2));
        text += &lines(table::aligned(table::ROUTES, &table::routes(reading), 1));
        text += &lines(table::aligned(table::CALLS, &table::calls(reading), 1));
        text += &lines(table::aligned(table::COUNTERS, &table::counters(reading), 1));
    }
    text
}

fn lines(rows: Vec<String>) -> String {
    rows.into_iter().map(|row| row + "\n").collect()
}

pub(super) fn in_json(readings: &[DirectoryReading]) -> Result<String, serde_json::Error> {
    let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
    let directories = readings.iter().map(reading_in_json).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("{}\n", json!({ "at_ms": at_ms, "directories": directories })))
}

fn rounded(per_s: Option<f64>) -> Value {
    json!(per_s.map(|rate| (rate * 1000.0).round() / 1000.0))
}

fn reading_in_json(reading: &DirectoryReading) -> Result<Value, serde_json::Error> {
    let mut counters = Map::new();
    let mut rates = Map::new();
    for counter in &reading.counters {
        counters.insert(counter.label.clone(), counter.value.into());
        if let Some(rate) = counter.per_s {
            rates.insert(counter.label.clone(), rounded(Some(rate)));
        }
    }
    let route = |(copy, per_s): &(InstanceReading, Option<f64>)| {
        let counters = counters_in_json(&copy.statistics.values());
        json!({ "route": copy.route, "process": copy.process_name, "process_id": copy.process_id, "calls_per_s": rounded(*per_s), "counters": counters,
            "is_answering": !reading.silent.contains(&copy.process_id) })
    };
    let routes: Vec<Value> = reading.routes.iter().map(route).collect();
    let call = |(calls, per_s): &(CallReading, Option<f64>)| {
        let mut object = calls_in_json(calls);
        (object["route"], object["offered_per_s"]) = (calls.route.clone().into(), rounded(*per_s));
        let copies = reading.routes.iter().map(|(copy, _)| copy);
        object["waiting"] = waiting(&calls.route, copies, reading.calls.iter().map(|(calls, _)| calls)).into();
        object
    };
    let calls: Vec<Value> = reading.calls.iter().map(call).collect();
    Ok(json!({
        "directory": reading.directory.display().to_string(),
        "state": reading.state.name(),
        "process": reading.process,
        "restarts": reading.restarts,
        "counters": counters,
        "per_s": rates,
        "member": serde_json::to_value(&reading.member)?,
        "nodes": nodes_in_json(&reading.nodes),
        "routes": routes,
        "calls": calls,
        "unreadable": unreadable_in_json(&reading.unreadable),
        "problem": reading.problem,
    }))
}
