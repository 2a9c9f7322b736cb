//! The printed table and the picture.

use super::FaultsPlan;
use super::rows::TARGET_P99_NS;
use gapless_load::rpc::faults::serving::{WORK, WORKERS};
use gapless_measure::Result;
use gapless_measure::reporting::{self, NOT_MEASURED, PERCENTILE_LABEL, number, of_config, percentiles};
use gapless_measure::table::{RowColumn, TableStyle, TextTable, absent, column, grouped, throughput, whole};
use gapless_measure::{LatencyNs, Report, Row};
use serde_json::Value;
use std::path::Path;

pub(super) const COLUMNS: [RowColumn; 17] = [
    ("killed", killed),
    ("repeated", |row| or_absent(&of_config(row, "retry").replace('_', " "))),
    ("kills", |row| count(row.config.extra.get("kills"))),
    ("calls", |row| row.sent.map_or_else(absent, grouped)),
    ("answers/s", throughput),
    ("failed", failed),
    ("retried", |row| count(row.extra.get("retried"))),
    ("longest silence ms", |row| number(row, "longest_silence_ns").map_or_else(absent, milliseconds)),
    ("known after the sign ms: p50, p99, max", |row| of_latency(row.latency_ns)),
    column::BY_FLOOR,
    ("after SIGKILL", |row| of_latency(latency(row, "known_after_kill_ns"))),
    ("answered again after the sign", |row| of_latency(latency(row, "answered_again_after_sign_ns"))),
    ("wrong, doubled", |row| match row.duplicated {
        Some(doubled) => format!("{}, {doubled}", count(row.extra.get("wrong"))),
        None => absent(),
    }),
    ("as before after the sign", |row| of_latency(latency(row, "restored_after_sign_ns"))),
    ("started twice, orphans", |row| match row.extra.get("orphans") {
        Some(orphans) => format!("{}, {}", count(row.extra.get("started_twice")), count(Some(orphans))),
        None => absent(),
    }),
    ("begun twice", |row| count(row.extra.get("begun_twice"))),
    column::VERIFIED,
];

pub(super) fn text(report: &Report) -> String {
    let style = TableStyle::for_stdout();
    let rows: Vec<&Row> = report.rows.iter().collect();
    whole(report, &TextTable::of_rows(style, &rows, 2, &COLUMNS).to_string(), &report.floor)
}

fn killed(row: &Row) -> String {
    if let Some(reason) = row.extra.get(NOT_MEASURED).and_then(Value::as_str) {
        return format!("rabbitmq not measured: {reason}");
    }
    let Some(copies) = row.config.extra.get("copies") else { return "rabbitmq, the broker".to_owned() };
    match row.config.extra.get("supervised").and_then(Value::as_str) {
        None if of_config(row, "system") == "rabbitmq" => format!("rabbitmq, one server of {copies}"),
        None => format!("gapless, one instance of {copies}"),
        Some("copy") => format!("supervised, one instance of {copies}"),
        Some("all_copies") => format!("supervised, all {copies} instances"),
        Some("any") => "supervised, any of all".to_owned(),
        Some(other) => format!("supervised, {}", other.replace('_', " ")),
    }
}

fn failed(row: &Row) -> String {
    let Some(kinds) = row.extra.get("failed").and_then(Value::as_object) else { return absent() };
    let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{} {}", count, kind.replace('_', " "))).collect();
    if kinds.is_empty() { "0".to_owned() } else { kinds.join(", ") }
}

fn or_absent(text: &str) -> String {
    if text.is_empty() { absent() } else { text.to_owned() }
}

fn count(value: Option<&Value>) -> String {
    value.and_then(Value::as_u64).map_or_else(absent, grouped)
}

fn milliseconds(ns: f64) -> String {
    format!("{:.2}", ns / 1e6)
}

fn latency(row: &Row, key: &str) -> Option<LatencyNs> {
    serde_json::from_value(row.extra.get(key)?.clone()).ok()
}

fn of_latency(latency: Option<LatencyNs>) -> String {
    let Some(LatencyNs { p50, p99, max, .. }) = latency else { return absent() };
    [p50, p99, max].map(|ns| milliseconds(ns as f64)).join(", ")
}

pub(super) fn draw(report: &Report, path: &Path) -> Result<()> {
    let curve = |row: &Row| {
        let retry = of_config(row, "retry").replace('_', " ");
        let repeated = if retry.is_empty() { String::new() } else { format!(", repeated {retry}") };
        let (what, latency) = match row.latency_ns {
            Some(latency) => ("known", latency),
            None => ("answered again", latency(row, "answered_again_after_sign_ns")?),
        };
        Some(percentiles(format!("{}{repeated}: {what}", killed(row)), latency))
    };
    let labels = ("From a killed process to its callers' knowledge", PERCENTILE_LABEL, "after the kernel's sign, µs");
    reporting::draw(report, labels, report.rows.iter().filter_map(curve).collect(), path)
}

pub(super) fn notes(plan: &FaultsPlan) -> Vec<String> {
    vec![
        format!(
            "seed {}: --seed {} kills the same instances after the same pauses. Between a process that serves again and the next kill \
             20 to 80 ms pass; each killed process is started again at once",
            plan.seed, plan.seed
        ),
        format!(
            "{} threads call without a pause, each one call at a time, 64 bytes there and back; a handler takes {WORK:?}. gapless: \
             each instance is a process with {WORKERS} workers, default options, calls wait for an instance. rabbitmq: explicit acknowledgement. \
             One of two servers killed: the broker gives its calls to the other. The broker killed, with one server: callers connect \
             again; its silence is the start of a new broker",
            super::CALLERS
        ),
        format!(
            "known after the sign: from the moment at which another thread of the callers' process sees the pidfd of the killed one \
             readable to the moment at which the caller of a lost call has its outcome; what was known before is 0. Target: p99 at \
             most {} ms. Beside it the same from the sending of SIGKILL. Where calls are always repeated none fails: then the time to \
             the answer of another instance stands there. The floor is the futex round trip",
            TARGET_P99_NS / 1_000_000
        ),
        format!(
            "supervised: {} instances under a supervisor with its guardian, of which each is killed in turn, then any of them; those that \
             are killed together die at once. As before: a supervisor answers that it, a guardian and all instances are there, and none of \
             them is one that died; supervisor and guardian at once are started again as `gapless up` does, instances by them. Dead \
             supervisors and guardians must not cost a call; restarts must be as many as instances were killed; no instance may run twice, none \
             after the end, and both may have no more files open than at first",
            super::SUPERVISED
        ),
        "every answer is checked by its number and content; serving processes note each number that they begin. Begun twice: in a row \
         that repeats only what has not begun it must be 0"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::rows::missing;
    use super::*;
    use serde_json::json;

    #[test]
    fn outcome_kinds_and_milliseconds() {
        let latency = LatencyNs { p50: 120_000, p99: 1_500_000, max: 4_200_000, ..LatencyNs::default() };
        let mut row = Row { sent: Some(7_000), latency_ns: Some(latency), verified: Some(true), ..Row::default() };
        row.duplicated = Some(0);
        let config = json!({ "system": "gapless", "copies": 2, "retry": "not_begun", "kills": 100 });
        row.config.extra = config.as_object().cloned().unwrap();
        row.extra = json!({ "failed": { "unknown": 12 }, "retried": 3, "wrong": 0, "longest_silence_ns": 30_000_000 })
            .as_object()
            .cloned()
            .unwrap();
        let missing = missing("rabbitmq-server is not on the PATH: apt-get install rabbitmq-server");
        let mut report = Report { rows: vec![row, missing], ..Report::default() };
        let shown = text(&report);
        for cell in
            ["gapless, one instance of 2", "not begun", "7,000", "12 unknown", "30.00", "0.12, 1.50, 4.20", "0, 0"]
        {
            assert!(shown.contains(cell), "{cell} in {shown}");
        }
        assert!(shown.contains("not measured: rabbitmq-server is not on the PATH"), "{shown}");
        report.rows[0].verified = Some(false);
        assert!(text(&report).contains("NOT VERIFIED"));
    }
}
