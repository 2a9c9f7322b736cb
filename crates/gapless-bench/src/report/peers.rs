//! Other systems in the runs of calls and commands: tables, and comparisons for the summary.

use super::html::{HtmlCell, HtmlColumn, HtmlTable, nothing, ratio, text, time, verified, word};
use super::runs::{StoredRun, StoredRuns, config, has_our_load, is_axon};
use gapless_measure::published::{FigureUnit, RowFigure};
use gapless_measure::reporting::config_number;
use gapless_measure::table::{absent, grouped, microseconds, rate};
use gapless_measure::{LatencyNs, Row};

pub(super) struct RunTable<'a> {
    pub(super) html: String,
    pub(super) run: &'a StoredRun,
}

pub(super) struct PeerComparison {
    pub(super) peer: &'static str,
    pub(super) what: String,
    pub(super) is_cpu: bool,
    /// Ratio above 1 where ours is better.
    pub(super) ratio: f64,
}

fn verdict(by_peer: Option<f64>) -> HtmlCell {
    let Some(by_peer) = by_peer else { return HtmlCell::Verdict("nobody", "not measured".to_owned()) };
    match word(by_peer) {
        (class, word @ ("ahead" | "behind")) => HtmlCell::Verdict(class, format!("{word}, {}", ratio(by_peer))),
        (class, word) => HtmlCell::Verdict(class, word.to_owned()),
    }
}

struct CallRow<'a> {
    ours: &'a Row,
    peers: [Option<CallPeer<'a>>; 3],
}

#[derive(Clone, Copy)]
struct CallPeer<'a> {
    row: &'a Row,
    per_s: Option<f64>,
    ratio: Option<f64>,
}

const CALL_PEERS: [(&str, &str, &str); 3] = [
    ("RabbitMQ, explicit", "rabbitmq", "explicit"),
    ("RabbitMQ, automatic", "rabbitmq", "automatic"),
    ("NATS", "nats", ""),
];
const CALL_KEYS: [&str; 5] = ["mode", "payload_bytes", "connected", "in_flight", "waiting"];
const CALL_SIZES: [u64; 4] = [1, 256, 1024, 4096];

fn calls(run: &StoredRun) -> Vec<CallRow<'_>> {
    let is_shown = |row: &&Row| {
        config(row, "system") == "gapless" && row.config.payload_bytes.is_some_and(|bytes| CALL_SIZES.contains(&bytes))
    };
    let peer = |ours: &Row, system: &str, acknowledgement: &str| {
        let row = run.sound_rows().find(|row| {
            config(row, "system") == system
                && config(row, "acknowledgement") == acknowledgement
                && CALL_KEYS.iter().all(|key| config(row, key) == config(ours, key))
        })?;
        let per_s = row.throughput_per_s.filter(|rate| *rate > 0.0);
        let ratio = ours.throughput_per_s.zip(per_s).map(|(ours, theirs)| FigureUnit::PerSecond.ratio(ours, theirs));
        Some(CallPeer { row, per_s, ratio })
    };
    let of_ours = |ours| CallRow { ours, peers: CALL_PEERS.map(|(_, system, mode)| peer(ours, system, mode)) };
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

fn call_run(runs: &StoredRuns) -> Option<&StoredRun> {
    runs.newest("rpc curve", 1, |row| config(row, "system") != "gapless" && row.throughput_per_s.is_some())
}

pub(super) fn call_table(runs: &StoredRuns) -> Option<RunTable<'_>> {
    let run = call_run(runs)?;
    let columns = [
        HtmlColumn::Text("calls"),
        HtmlColumn::Number("Gapless/s"),
        HtmlColumn::Number("p50"),
        HtmlColumn::Number("p99"),
        HtmlColumn::Number("×\u{a0}floor"),
        HtmlColumn::Number("CPU\u{a0}µs"),
        HtmlColumn::Number("RabbitMQ, explicit"),
        HtmlColumn::Number("CPU\u{a0}µs"),
        HtmlColumn::Text("Gapless is"),
        HtmlColumn::Number("RabbitMQ, automatic"),
        HtmlColumn::Number("CPU\u{a0}µs"),
        HtmlColumn::Text("Gapless is"),
        HtmlColumn::Number("NATS"),
        HtmlColumn::Number("CPU\u{a0}µs"),
        HtmlColumn::Text("Gapless is"),
        HtmlColumn::Text("verified"),
    ];
    let head = "Calls beside other systems of the same run, in calls or messages a second; RabbitMQ with explicit and automatic \
        acknowledgement; CPU time of one call: client + server + broker";
    let mut table = HtmlTable::new(head, &columns);
    for waiting in ["blocking", "spinning"] {
        let of_waiting: Vec<CallRow<'_>> =
            calls(run).into_iter().filter(|call| config(call.ours, "waiting") == waiting).collect();
        if of_waiting.is_empty() {
            continue;
        }
        table.group(if waiting == "blocking" {
            "asleep in the kernel between calls"
        } else {
            "spinning, a core for each end"
        });
        for CallRow { ours, peers } in of_waiting {
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
                cells.push(peer.and_then(|peer| peer.per_s).map_or_else(nothing, |theirs| text(rate(theirs))));
                cells.push(peer.map_or_else(nothing, |peer| text(cpu_time(peer.row))));
                cells.push(verdict(peer.and_then(|peer| peer.ratio)));
            }
            cells.push(verified(ours));
            table.row(cells);
        }
    }
    (!table.is_empty()).then(|| RunTable { html: table.html(), run })
}

fn cpu_time(row: &Row) -> String {
    let of = |process| Some(microseconds(row.extra.get("cpu_ns_per_call")?[process].as_f64()? as u64));
    let all: Vec<String> = ["client", "server", "broker"].into_iter().filter_map(of).collect();
    if all.is_empty() { absent() } else { all.join(" + ") }
}

pub(super) fn comparisons(runs: &StoredRuns) -> Vec<PeerComparison> {
    let mut found = Vec::new();
    for CallRow { ours, peers } in call_run(runs).map(calls).unwrap_or_default() {
        for ((name, ..), peer) in CALL_PEERS.into_iter().zip(peers) {
            if let Some(ratio) = peer.and_then(|peer| peer.ratio) {
                let waiting = if config(ours, "waiting") == "blocking" { "asleep" } else { "spinning" };
                let peer = if name == "NATS" { name } else { "RabbitMQ" };
                let what = format!("{}, {waiting}", call_words(ours));
                found.push(PeerComparison { peer, what, is_cpu: false, ratio });
            }
        }
        if call_words(ours) == PUBLISHED_CPU {
            found.extend(cpu_comparisons(ours, peers));
        }
    }
    for command in command_rows(runs).into_iter().flat_map(|(_, rows)| rows) {
        for row in command.ours.into_iter().flatten() {
            if let Some(ratio) = command.by_faster(row) {
                let what = format!("{}, {}", command.what, config(row, "drive"));
                found.push(PeerComparison { peer: "Axon", what, is_cpu: false, ratio });
            }
        }
    }
    found
}

const PUBLISHED_CPU: &str = "call, 1 B";

fn cpu_comparisons(ours: &Row, peers: [Option<CallPeer<'_>>; 3]) -> Vec<PeerComparison> {
    let Some(percent) = RowFigure::CpuPercent.of(ours) else { return Vec::new() };
    let [explicit, automatic, nats] = peers.map(|peer| RowFigure::CpuPercent.of(peer?.row));
    let rabbitmq = [explicit, automatic].into_iter().flatten().reduce(f64::min);
    let of = |peer, theirs: Option<f64>| {
        let ratio = FigureUnit::CpuPercent.ratio(percent, theirs?);
        Some(PeerComparison { peer, what: PUBLISHED_CPU.to_owned(), is_cpu: true, ratio })
    };
    [of("RabbitMQ", rabbitmq), of("NATS", nats)].into_iter().flatten().collect()
}

struct CommandRow<'a> {
    what: String,
    /// Pipelined and direct.
    ours: [Option<&'a Row>; 2],
    /// Axon's simple bus and its disruptor.
    theirs: [Option<&'a Row>; 2],
}

impl CommandRow<'_> {
    /// A row of ours by Axon's faster bus.
    fn by_faster(&self, ours: &Row) -> Option<f64> {
        let rates = self.theirs.iter().flatten().filter_map(|row| row.throughput_per_s);
        let best = rates.reduce(f64::max).filter(|rate| *rate > 0.0)?;
        Some(ours.throughput_per_s? / best)
    }
}

fn command_rows(runs: &StoredRuns) -> Option<(&StoredRun, Vec<CommandRow<'_>>)> {
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
                rows.push(CommandRow { what: format!("{words}, {count} aggregate{plural}"), ours, theirs });
            }
        }
    }
    Some((run, rows))
}

pub(super) fn command_table(runs: &StoredRuns) -> Option<RunTable<'_>> {
    let (run, rows) = command_rows(runs)?;
    let columns = [
        HtmlColumn::Text("commands in memory"),
        HtmlColumn::Number("Gapless pipelined/s"),
        HtmlColumn::Number("Gapless direct/s"),
        HtmlColumn::Number("Axon 4 simple/s"),
        HtmlColumn::Number("Axon 4 disruptor/s"),
        HtmlColumn::Text("pipelined, by the faster of Axon's"),
        HtmlColumn::Text("direct, by the faster of Axon's"),
    ];
    let mut table = HtmlTable::new("Commands next to Axon Framework 4 in the same run", &columns);
    for command in &rows {
        let mut cells = vec![text(command.what.clone())];
        let all = command.ours.iter().chain(&command.theirs);
        let rates = all.map(|row| row.and_then(|row| row.throughput_per_s));
        cells.extend(rates.map(|per_s| text(per_s.map_or_else(absent, rate))));
        cells.extend(command.ours.iter().map(|row| verdict(row.and_then(|row| command.by_faster(row)))));
        table.row(cells);
    }
    (!table.is_empty()).then(|| RunTable { html: table.html(), run })
}
