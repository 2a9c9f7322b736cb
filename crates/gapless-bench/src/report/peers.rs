//! Tables of whole runs: other systems, a killed leader, killed processes, the cost of a supervisor.

use super::html::{Cell, Column, Table, nothing, ratio, text, time, verified, word};
use super::runs::{Run, Runs, config, has_our_load, is_axon};
use gapless_measure::published::{Figure, Unit};
use gapless_measure::reporting::config_number;
use gapless_measure::table::{absent, grouped, microseconds, rate};
use gapless_measure::{LatencyNs, Row};
use serde_json::Value;

/// A table and the run that it is of.
pub(super) struct RunTable<'a> {
    pub(super) html: String,
    pub(super) run: &'a Run,
}

/// Comparison with one peer.
pub(super) struct PeerComparison {
    pub(super) peer: &'static str,
    pub(super) what: String,
    /// Whether it is of CPU time, not of a rate.
    pub(super) is_cpu: bool,
    /// Above 1 where ours is the better one.
    pub(super) ratio: f64,
}

/// The result of a comparison with a peer, as a cell.
fn verdict(by_peer: f64) -> Cell {
    match word(by_peer) {
        (class, word @ ("ahead" | "behind")) => Cell::Verdict(class, format!("{word}, {}", ratio(by_peer))),
        (class, word) => Cell::Verdict(class, word.to_owned()),
    }
}

/// The rows of our calls with the peer's row of the same configuration.
struct Call<'a> {
    ours: &'a Row,
    peers: [Option<&'a Row>; 3],
}

const CALL_PEERS: [(&str, &str, &str); 3] = [
    ("RabbitMQ, explicit", "rabbitmq", "explicit"),
    ("RabbitMQ, automatic", "rabbitmq", "automatic"),
    ("NATS", "nats", ""),
];
/// Keys that compared calls have in common.
const CALL_KEYS: [&str; 5] = ["mode", "payload_bytes", "connected", "in_flight", "waiting"];
/// Sizes in the table of a run that has many.
const CALL_SIZES: [u64; 4] = [1, 256, 1024, 4096];

fn calls(run: &Run) -> Vec<Call<'_>> {
    let is_shown = |row: &&Row| {
        config(row, "system") == "gapless" && row.config.payload_bytes.is_some_and(|bytes| CALL_SIZES.contains(&bytes))
    };
    let beside = |ours: &'_ Row, system: &str, acknowledgement: &str| {
        run.sound_rows().find(|row| {
            config(row, "system") == system
                && config(row, "acknowledgement") == acknowledgement
                && CALL_KEYS.iter().all(|key| config(row, key) == config(ours, key))
        })
    };
    let of_ours = |ours| Call { ours, peers: CALL_PEERS.map(|(_, system, mode)| beside(ours, system, mode)) };
    run.sound_rows().filter(is_shown).map(of_ours).collect()
}

fn call_words(row: &Row) -> String {
    let (bytes, callers) = (row.config.payload_bytes.map_or_else(absent, grouped), config_number(row, "connected"));
    let what = match (config(row, "mode").as_str(), config_number(row, "in_flight")) {
        ("one_way", _) => "one way".to_owned(),
        (_, Some(flight)) if flight > 1 => format!("{flight} calls in flight"),
        _ => "call".to_owned(),
    };
    let callers = callers
        .filter(|callers| *callers > 1)
        .map_or_else(String::new, |callers| format!(", {callers} callers connected"));
    format!("{what}, {bytes} B{callers}")
}

fn call_run(runs: &Runs) -> Option<&Run> {
    runs.newest("rpc curve", 1, |row| config(row, "system") != "gapless" && row.throughput_per_s.is_some())
}

/// Calls next to RabbitMQ and NATS.
pub(super) fn call_table(runs: &Runs) -> Option<RunTable<'_>> {
    let run = call_run(runs)?;
    let columns = [
        Column::Text("calls"),
        Column::Number("Gapless/s"),
        Column::Number("p50"),
        Column::Number("p99"),
        Column::Number("×\u{a0}floor"),
        Column::Number("CPU\u{a0}µs"),
        Column::Number("RabbitMQ, explicit"),
        Column::Number("CPU\u{a0}µs"),
        Column::Text("Gapless is"),
        Column::Number("RabbitMQ, automatic"),
        Column::Number("CPU\u{a0}µs"),
        Column::Text("Gapless is"),
        Column::Number("NATS"),
        Column::Number("CPU\u{a0}µs"),
        Column::Text("Gapless is"),
        Column::Text("verified"),
    ];
    let head = "Calls beside other systems of the same run, in calls or messages a second; RabbitMQ with explicit and automatic \
        acknowledgement; CPU time of one call: client + server + broker";
    let mut table = Table::new(head, &columns);
    for waiting in ["blocking", "spinning"] {
        let of_waiting: Vec<Call<'_>> =
            calls(run).into_iter().filter(|call| config(call.ours, "waiting") == waiting).collect();
        if of_waiting.is_empty() {
            continue;
        }
        table.group(if waiting == "blocking" {
            "asleep in the kernel between calls"
        } else {
            "spinning, a core for each end"
        });
        for Call { ours, peers } in of_waiting {
            let latency =
                |part: fn(LatencyNs) -> u64| ours.latency_ns.map_or_else(nothing, |all| text(time(part(all) as f64)));
            let mut cells = vec![
                text(call_words(ours)),
                text(ours.throughput_per_s.map_or_else(absent, rate)),
                latency(|latency| latency.p50),
                latency(|latency| latency.p99),
                text(ours.floor_ratio.map_or_else(absent, |floor| format!("{floor:.2}"))),
                text(cpu_time(ours)),
            ];
            for peer in peers {
                let theirs = peer.and_then(|row| row.throughput_per_s).filter(|rate| *rate > 0.0);
                cells.push(theirs.map_or_else(nothing, |theirs| text(rate(theirs))));
                cells.push(peer.map_or_else(nothing, |row| text(cpu_time(row))));
                cells.push(match ours.throughput_per_s.zip(theirs) {
                    Some((ours, theirs)) => verdict(Unit::PerSecond.ratio(ours, theirs)),
                    None => Cell::Verdict("nobody", "not measured".to_owned()),
                });
            }
            cells.push(verified(ours));
            table.row(cells);
        }
    }
    (!table.is_empty()).then(|| RunTable { html: table.html(), run })
}

/// CPU time of each process for one call, µs.
fn cpu_time(row: &Row) -> String {
    let of = |process| Some(microseconds(row.extra.get("cpu_ns_per_call")?[process].as_f64()? as u64));
    let all: Vec<String> = ["client", "server", "broker"].into_iter().filter_map(of).collect();
    if all.is_empty() { absent() } else { all.join(" + ") }
}

/// Every comparison with a peer, for the summary.
pub(super) fn comparisons(runs: &Runs) -> Vec<PeerComparison> {
    let mut found = Vec::new();
    for Call { ours, peers } in call_run(runs).map(calls).unwrap_or_default() {
        for ((name, ..), peer) in CALL_PEERS.into_iter().zip(peers) {
            let theirs = peer.and_then(|row| row.throughput_per_s).filter(|rate| *rate > 0.0);
            if let Some((rate, theirs)) = ours.throughput_per_s.zip(theirs) {
                let waiting = if config(ours, "waiting") == "blocking" { "asleep" } else { "spinning" };
                let peer = if name == "NATS" { name } else { "RabbitMQ" };
                let what = format!("{}, {waiting}", call_words(ours));
                found.push(PeerComparison { peer, what, is_cpu: false, ratio: rate / theirs });
            }
        }
        if call_words(ours) == PUBLISHED_CPU {
            found.extend(cpu_comparisons(ours, peers));
        }
    }
    for (what, ours, buses) in command_rows(runs).into_iter().flat_map(|(_, rows)| rows) {
        let best = buses.iter().flatten().filter_map(|row| row.throughput_per_s).fold(0.0, f64::max);
        for (row, rate) in ours.iter().flatten().filter_map(|row| Some((row, row.throughput_per_s?))) {
            let what = format!("{what}, {}", config(row, "drive"));
            if best > 0.0 {
                found.push(PeerComparison { peer: "Axon", what, is_cpu: false, ratio: rate / best });
            }
        }
    }
    found
}

/// Calls of which others have published the CPU time, as [`call_words`] has them.
const PUBLISHED_CPU: &str = "call, 1 B";

/// Our CPU time next to the least of each system.
fn cpu_comparisons(ours: &Row, peers: [Option<&Row>; 3]) -> Vec<PeerComparison> {
    let Some(percent) = Figure::CpuPercent.of(ours) else { return Vec::new() };
    let [explicit, automatic, nats] = peers.map(|peer| peer.and_then(|row| Figure::CpuPercent.of(row)));
    let rabbitmq = [explicit, automatic].into_iter().flatten().reduce(f64::min);
    let of = |peer, theirs: Option<f64>| {
        let ratio = Unit::CpuPercent.ratio(percent, theirs?);
        Some(PeerComparison { peer, what: PUBLISHED_CPU.to_owned(), is_cpu: true, ratio })
    };
    [of("RabbitMQ", rabbitmq), of("NATS", nats)].into_iter().flatten().collect()
}

/// The words of a row, ours (pipelined, direct), theirs (simple, disruptor).
type CommandRow<'a> = (String, [Option<&'a Row>; 2], [Option<&'a Row>; 2]);

fn command_rows(runs: &Runs) -> Option<(&Run, Vec<CommandRow<'_>>)> {
    let is_fair = |row: &Row| is_axon(row) && has_our_load(row) && row.throughput_per_s.is_some();
    let run = runs.newest("commands", 1, is_fair)?;
    let mut rows = Vec::new();
    for (identifiers, words) in [
        ("random", "random identifiers"),
        ("time-ordered", "time-ordered identifiers"),
        ("position", "no identifiers of the caller"),
    ] {
        for aggregates in [1, 10_000] {
            let is_of = |row: &&Row| {
                config(row, "mode") == "throughput"
                    && config(row, "tier") == "memory"
                    && row.config.payload_bytes == Some(0)
                    && config(row, "identifiers") == identifiers
                    && config_number(row, "aggregates") == Some(aggregates)
            };
            let find = |key: &str, value: &str, encoding: &str| {
                let mut rows = run.sound_rows().filter(is_of).filter(|row| has_our_load(row));
                rows.find(|row| config(row, key) == value && config(row, "encoding") == encoding)
            };
            let ours = ["pipelined", "direct"].map(|drive| find("drive", drive, "sbe"));
            let theirs = ["axon simple", "axon disruptor"].map(|name| find("name", name, "objects"));
            let (count, plural) = (grouped(aggregates), if aggregates == 1 { "" } else { "s" });
            if ours.iter().chain(&theirs).any(Option::is_some) {
                rows.push((format!("{words}, {count} aggregate{plural}"), ours, theirs));
            }
        }
    }
    Some((run, rows))
}

/// Commands next to both buses of Axon Framework.
pub(super) fn command_table(runs: &Runs) -> Option<RunTable<'_>> {
    let (run, rows) = command_rows(runs)?;
    let columns = [
        Column::Text("commands in memory"),
        Column::Number("Gapless pipelined/s"),
        Column::Number("Gapless direct/s"),
        Column::Number("Axon 4 simple/s"),
        Column::Number("Axon 4 disruptor/s"),
        Column::Text("pipelined, by the faster of Axon's"),
        Column::Text("direct, by the faster of Axon's"),
    ];
    let mut table = Table::new("Commands next to Axon Framework 4 in the same run", &columns);
    for (what, ours, theirs) in &rows {
        let rate_of = |row: &Option<&Row>| row.and_then(|row| row.throughput_per_s);
        let best = theirs.iter().filter_map(rate_of).fold(0.0, f64::max);
        let mut cells = vec![text(what.clone())];
        cells.extend(ours.iter().chain(theirs).map(|row| text(rate_of(row).map_or_else(absent, rate))));
        cells.extend(ours.iter().map(|row| match rate_of(row) {
            Some(rate) if best > 0.0 => verdict(rate / best),
            _ => Cell::Verdict("nobody", "not measured".to_owned()),
        }));
        table.row(cells);
    }
    (!table.is_empty()).then(|| RunTable { html: table.html(), run })
}

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
        let number = |key: &str| row.extra.get(key).and_then(Value::as_f64);
        let count = |value: Option<f64>| text(value.map_or_else(absent, |value| grouped(value as u64)));
        let failed = row.extra.get("failed").and_then(Value::as_object);
        let failed = failed.map(|all| all.values().filter_map(Value::as_f64).sum());
        let of = |key: &str, part: &str| row.extra.get(key).and_then(|all| all[part].as_f64());
        let again = of("answered_again_after_sign_ns", "p99");
        let after = of("restored_after_sign_ns", "max");
        let knows = row.latency_ns.filter(|latency| latency.count > 0 && latency.max > 0);
        let wrong = number("wrong").map_or_else(absent, |wrong| grouped(wrong as u64));
        table.row(vec![
            text(killed(row)),
            text(config(row, "retry").replace('_', " ")),
            text(config_number(row, "kills").map_or_else(absent, grouped)),
            count(row.sent.map(|sent| sent as f64)),
            count(failed),
            count(number("retried")),
            text(number("longest_silence_ns").map_or_else(absent, time)),
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

/// From an event to the first reply to a command that was sent after it, by the client that waited longest.
const FIRST_NEW_REPLY: &str = "first_new_reply_of_every_client_ns";

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
            shown((!replies.is_empty()).then(|| gapless_measure::statistics::median(&replies))),
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
    let Some(most) = row.extra.get(key).and_then(Value::as_f64) else { return nothing() };
    match row.extra.get("target_met").and_then(Value::as_bool) {
        Some(true) => Cell::Verdict("ahead", format!("{}, reached", time(most))),
        _ => Cell::Verdict("behind", format!("{}, missed", time(most))),
    }
}
