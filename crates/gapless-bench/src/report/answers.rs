//! Our rows beside each published figure, and the rows of other systems in the same run.

use super::runs::{Run, Runs, config};
use gapless_measure::published::{Answer, Comparison, Fact, Figure, Part, Peer, Unit, facts};
use gapless_measure::reporting::config_number;
use gapless_measure::table::grouped;
use gapless_measure::{LatencyNs, Row};
use serde_json::Value;

/// A published figure with our rows; no row if nobody has measured it.
pub(super) struct Answered<'a> {
    pub(super) fact: Fact,
    pub(super) lines: Vec<Line<'a>>,
}

/// One row of ours.
pub(super) struct Line<'a> {
    pub(super) run: &'a Run,
    pub(super) row: &'a Row,
    pub(super) comparison: Comparison,
    pub(super) floor: Option<Floor>,
    pub(super) peers: Vec<Beside>,
}

/// The floor of a figure, in its unit.
pub(super) struct Floor {
    pub(super) name: String,
    pub(super) value: f64,
    /// How many times the floor ours takes.
    pub(super) ratio: f64,
}

/// The figure of another system in the same run.
pub(super) struct Beside {
    pub(super) name: &'static str,
    pub(super) theirs: f64,
    /// Above 1 where ours is the better one.
    pub(super) ratio: f64,
}

/// Keys of a configuration that tell rows of one fact apart.
const VARIATION: [&str; 10] =
    ["name", "transport", "mtu_bytes", "waiting", "drive", "encoding", "are", "ends", "supervised", "in_flight"];

/// Every published figure with the rows of the newest run that has some.
pub(super) fn all(runs: &Runs) -> Vec<Answered<'_>> {
    let answered = facts().into_iter().map(|fact| {
        let of_runs = runs.all().iter().map(|run| lines(&fact, run));
        let lines = of_runs.into_iter().find(|lines| !lines.is_empty()).unwrap_or_default();
        Answered { fact, lines }
    });
    answered.collect()
}

fn lines<'a>(fact: &Fact, run: &'a Run) -> Vec<Line<'a>> {
    let benchmark = &run.report.benchmark;
    // Rows that name the fact know best.
    let is_named = run.report.rows.iter().any(|row| fact.is_named_by(row));
    let rows = run
        .report
        .rows
        .iter()
        .filter(|row| if is_named { fact.is_named_by(row) } else { fact.is_answered_by(benchmark, row) });
    rows.filter_map(|row| line(fact, run, row)).collect()
}

fn line<'a>(fact: &Fact, run: &'a Run, row: &'a Row) -> Option<Line<'a>> {
    let mut comparison = fact.compare_row(row)?;
    let mut peers = fact.answer.as_ref().map_or_else(Vec::new, |answer| peers(fact, answer, run, row));
    if fact.unit == Unit::TimesRabbitMq {
        let best = peers.iter().filter(|peer| peer.name.starts_with("RabbitMQ")).map(|peer| peer.theirs);
        let best = best.fold(0.0, f64::max);
        if best <= 0.0 {
            return None;
        }
        comparison = fact.compare(comparison.ours / best);
        peers.clear();
    }
    Some(Line { run, row, comparison, floor: floor(fact, row), peers })
}

/// Rows of other systems that are configured as ours.
fn peers(fact: &Fact, answer: &Answer, run: &Run, ours: &Row) -> Vec<Beside> {
    let Some(our_figure) = answer.figure.of(ours) else { return Vec::new() };
    let is_like_ours = |row: &Row, peer: &Peer| {
        let chosen = answer.config.iter().filter(|(key, value)| value.is_array() && !peer.without.contains(key));
        chosen.into_iter().all(|(key, _)| config(row, key) == config(ours, key))
    };
    let beside = answer.peers.iter().filter_map(|peer| {
        let mut rows = run.sound_rows().filter(|row| answer.is_of(&run.report.benchmark, row, Some(peer)));
        let theirs = rows.find(|row| is_like_ours(row, peer)).and_then(|row| answer.figure.of(row))?;
        Some(Beside { name: peer.name, theirs, ratio: fact.unit.ratio(our_figure, theirs) })
    });
    beside.collect()
}

/// The floor beside a figure: of a percentile the same percentile of the bare round trip at its pace, else the row's own.
fn floor(fact: &Fact, row: &Row) -> Option<Floor> {
    let answer = fact.answer.as_ref()?;
    if row.failure().is_some() || row.missed_rate_per_s().is_some() || fact.unit == Unit::TimesRabbitMq {
        return None;
    }
    let ours = answer.figure.of(row)?;
    if let (Figure::Latency(part), Some(bare)) = (answer.figure, row.extra.get("bare")) {
        let latency: LatencyNs = serde_json::from_value(bare["latency_ns"].clone()).ok()?;
        let value = part.of(&latency);
        let name = bare["name"].as_str().unwrap_or_default().to_owned();
        return (value > 0.0).then(|| Floor { name, value, ratio: ours / value });
    }
    let (ratio, name) = (row.floor_ratio.filter(|ratio| *ratio > 0.0)?, row.floor_name.clone()?);
    match answer.figure {
        Figure::Throughput => Some(Floor { name, value: ours * ratio, ratio }),
        // Averages stand beside the median of the floor.
        Figure::Latency(Part::P50 | Part::Mean) | Figure::SliceAverage(_) => {
            let value = row.latency_ns?.p50 as f64 / ratio;
            (value > 0.0).then(|| Floor { name, value, ratio: ours / value })
        }
        _ => None,
    }
}

/// The part of a row's configuration that tells it from the other rows of the fact.
pub(super) fn variation(line: &Line<'_>, fact: &Fact) -> String {
    let fixed = |key: &str| {
        let config = fact.answer.iter().flat_map(|answer| &answer.config);
        config.into_iter().any(|(fixed, value)| *fixed == key && !value.is_array() && *value != Value::Null)
    };
    let shown = VARIATION.iter().filter(|key| matches!(**key, "drive" | "ends") || !fixed(key));
    let words = shown.filter_map(|key| {
        let word = config(line.row, key);
        match *key {
            _ if word.is_empty() => None,
            "mtu_bytes" => Some(format!("MTU {word}")),
            "in_flight" if word == "1" => None,
            "in_flight" => config_number(line.row, key).map(|many| format!("{} in flight", grouped(many))),
            "supervised" => Some("supervised".to_owned()),
            "waiting" => Some(if word == "blocking" { "asleep".to_owned() } else { word }),
            _ => Some(word),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}
