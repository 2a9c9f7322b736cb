//! Our rows for each published figure, and the rows of other systems in the same run.

use super::runs::{StoredRun, StoredRuns, config};
use gapless_measure::floor::HEADER_BYTES;
use gapless_measure::published::{
    Comparison, ComparisonVerdict, FactAnswer, FigureUnit, LatencyPart, PeerSystem, PublishedFact, PublishedSystem,
    RowFigure, facts,
};
use gapless_measure::reporting::config_number;
use gapless_measure::statistics::median;
use gapless_measure::table::grouped;
use gapless_measure::{LatencyNs, Row};
use serde_json::Value;

pub(super) struct AnsweredFact<'a> {
    pub(super) fact: PublishedFact,
    pub(super) lines: Vec<AnsweringRow<'a>>,
}

impl AnsweredFact<'_> {
    pub(super) fn is_compared(&self) -> bool {
        self.lines.iter().any(is_compared)
    }
}

fn is_compared(line: &AnsweringRow<'_>) -> bool {
    line.comparison.verdict != ComparisonVerdict::Remark
}

pub(super) struct AnsweringRow<'a> {
    pub(super) run: &'a StoredRun,
    pub(super) row: &'a Row,
    pub(super) comparison: Comparison,
    pub(super) floor: Option<FigureFloor>,
    pub(super) peers: Vec<PeerFigure>,
}

pub(super) struct FigureFloor {
    pub(super) name: String,
    pub(super) value: Option<f64>,
    /// Ours by the floor.
    pub(super) ratio: f64,
}

pub(super) struct PeerFigure {
    pub(super) name: &'static str,
    pub(super) theirs: f64,
    pub(super) ratio: f64,
}

const VARIATION: [&str; 11] =
    ["name", "transport", "mtu_bytes", "waiting", "drive", "encoding", "cpu", "are", "ends", "supervised", "in_flight"];
const BOTH_ACCESSES: [&str; 8] = ["program", "mode", "cpu", "tier", "clustered", "transport", "rate_per_s", "sessions"];

/// Takes the rows of the newest run that answers a figure; failing that, remarks.
pub(super) fn all(runs: &StoredRuns) -> Vec<AnsweredFact<'_>> {
    let answered = facts().into_iter().map(|fact| {
        let mut remarks = Vec::new();
        for run in runs.all() {
            let lines = lines(&fact, run);
            if lines.iter().any(is_compared) {
                return AnsweredFact { fact, lines };
            }
            if remarks.is_empty() {
                remarks = lines;
            }
        }
        AnsweredFact { fact, lines: remarks }
    });
    answered.collect()
}

/// Compared rows first, then remarks.
fn lines<'a>(fact: &PublishedFact, run: &'a StoredRun) -> Vec<AnsweringRow<'a>> {
    let benchmark = &run.report.benchmark;
    let rows = || run.report.rows.iter();
    let answers = rows().filter(|row| fact.is_answered_by(benchmark, row));
    let mut lines: Vec<AnsweringRow<'a>> = answers.filter_map(|row| line(fact, run, row)).collect();
    if let Some(answer) = fact.answer.as_ref().filter(|answer| answer.benchmark == *benchmark)
        && let Some(remark) = &answer.remark
    {
        lines.extend(rows().filter(|row| remark.is_of(row)).filter_map(|row| remark_line(answer, run, row)));
    }
    lines
}

fn line<'a>(fact: &PublishedFact, run: &'a StoredRun, row: &'a Row) -> Option<AnsweringRow<'a>> {
    let mut comparison = fact.compare_row(row)?;
    if comparison.verdict == ComparisonVerdict::NoResult {
        // The quotient of two rows needs two sound ones.
        if fact.unit.is_of_two_rows() {
            comparison.ours = f64::NAN;
        }
        return Some(AnsweringRow { run, row, comparison, floor: None, peers: Vec::new() });
    }
    let mut peers = fact.answer.as_ref().map_or_else(Vec::new, |answer| peers(fact, answer, run, row));
    match fact.unit {
        FigureUnit::TimesRabbitMq => {
            let of_rabbitmq = peers.iter().filter(|peer| peer.name.starts_with("RabbitMQ"));
            let best = of_rabbitmq.map(|peer| peer.theirs).reduce(f64::max).filter(|rate| *rate > 0.0)?;
            comparison = fact.compare(comparison.ours / best);
            peers.clear();
        }
        FigureUnit::TimesIndirect | FigureUnit::PercentOfIndirect => {
            let figure = fact.answer.as_ref()?.figure;
            let indirect = indirect(run, row).and_then(|row| figure.of(row)).filter(|figure| *figure > 0.0)?;
            let percent = if fact.unit == FigureUnit::PercentOfIndirect { 100.0 } else { 1.0 };
            comparison = fact.compare(comparison.ours / indirect * percent);
        }
        FigureUnit::PerSecond | FigureUnit::Nanoseconds | FigureUnit::CpuPercent => {}
    }
    Some(AnsweringRow { run, row, comparison, floor: floor(fact, run, row), peers })
}

fn remark_line<'a>(answer: &FactAnswer, run: &'a StoredRun, row: &'a Row) -> Option<AnsweringRow<'a>> {
    let ours = answer.figure.of(row).filter(|_| row.failure().is_none() && row.missed_rate_per_s().is_none())?;
    let comparison = Comparison { ours, ratio: None, verdict: ComparisonVerdict::Remark };
    Some(AnsweringRow { run, row, comparison, floor: None, peers: Vec::new() })
}

fn indirect<'a>(run: &'a StoredRun, direct: &Row) -> Option<&'a Row> {
    let encoding = config(direct, "encoding").replace(".serial", ".random");
    run.sound_rows().find(|row| {
        config(row, "access") == "indirect"
            && config(row, "encoding") == encoding
            && BOTH_ACCESSES.iter().all(|key| config(row, key) == config(direct, key))
    })
}

fn peers(fact: &PublishedFact, answer: &FactAnswer, run: &StoredRun, ours: &Row) -> Vec<PeerFigure> {
    let Some(our_figure) = answer.figure.of(ours) else { return Vec::new() };
    let is_like_ours = |row: &Row, peer: &PeerSystem| {
        let chosen = answer.config.iter().filter(|(key, value)| value.is_array() && !peer.ignored_keys.contains(key));
        chosen.into_iter().all(|(key, _)| config(row, key) == config(ours, key))
    };
    let figures = answer.peers.iter().filter_map(|peer| {
        let mut rows = run.sound_rows().filter(|row| answer.is_of(&run.report.benchmark, row, Some(peer)));
        let theirs = rows.find(|row| is_like_ours(row, peer)).and_then(|row| answer.figure.of(row))?;
        Some(PeerFigure { name: peer.name, theirs, ratio: fact.unit.ratio(our_figure, theirs) })
    });
    figures.collect()
}

/// Same percentile of the bare round trip at the row's pace; for other figures the row's own floor.
fn floor(fact: &PublishedFact, run: &StoredRun, row: &Row) -> Option<FigureFloor> {
    let answer = fact.answer.as_ref()?;
    if fact.unit.is_of_two_rows() {
        return None;
    }
    let ours = answer.figure.of(row)?;
    if let (RowFigure::Latency(part), Some(bare)) = (answer.figure, row.extra.get("bare")) {
        let latency: LatencyNs = serde_json::from_value(bare["latency_ns"].clone()).ok()?;
        let value = part.of(&latency);
        let name = bare["name"].as_str().unwrap_or_default().to_owned();
        return (value > 0.0).then(|| FigureFloor { name, value: Some(value), ratio: ours / value });
    }
    if answer.figure == RowFigure::Throughput && answer.benchmark == "sequencer" && row.floor_ratio.is_none() {
        return journal_floor(run, row, ours);
    }
    let (ratio, name) = (row.floor_ratio.filter(|ratio| *ratio > 0.0)?, row.floor_name.clone()?);
    let is_time = run.report.floor.iter().any(|floor| floor.name == name && floor.p50_ns.is_some());
    let value = match answer.figure {
        // With latencies, the row's ratio is of its median.
        RowFigure::Throughput if is_time && row.latency_ns.is_some() => None,
        RowFigure::Throughput => Some(ours * ratio),
        RowFigure::Latency(LatencyPart::P50) => Some(ours / ratio),
        RowFigure::Latency(LatencyPart::Mean) => None,
        _ => return None,
    };
    Some(FigureFloor { name, value, ratio })
}

/// Each message passes the journal in one stream. Takes the median of the run's floors.
fn journal_floor(run: &StoredRun, row: &Row, ours: f64) -> Option<FigureFloor> {
    const NAME: &str = "sequential_write";
    let bytes = row.config.payload_bytes?.saturating_add(HEADER_BYTES);
    let floors = run.report.floor.iter().filter(|floor| floor.name == NAME);
    let rates: Vec<f64> = floors.filter_map(|floor| Some(floor.bytes_per_s? / bytes as f64)).collect();
    let value = (!rates.is_empty() && ours > 0.0).then(|| median(&rates))?;
    Some(FigureFloor { name: NAME.to_owned(), value: Some(value), ratio: value / ours })
}

pub(super) fn variation(line: &AnsweringRow<'_>, fact: &PublishedFact) -> String {
    let fixed = |key: &str| {
        let config = fact.answer.iter().flat_map(|answer| &answer.config);
        config.into_iter().any(|(fixed, value)| *fixed == key && !value.is_array() && *value != Value::Null)
    };
    let is_claim = matches!(fact.unit, FigureUnit::TimesIndirect | FigureUnit::PercentOfIndirect);
    let is_one_by_one = fixed("in_flight") && fact.system != PublishedSystem::EnduroX;
    let is_shown = |key: &str| match key {
        "cpu" => is_claim,
        "drive" | "ends" | "in_flight" => true,
        other => !fixed(other),
    };
    let words = VARIATION.iter().filter(|key| is_shown(key)).filter_map(|key| {
        let word = config(line.row, key);
        match *key {
            _ if word.is_empty() => None,
            "mtu_bytes" => Some(format!("MTU {word}")),
            "cpu" => Some(format!("{word} CPU")),
            "in_flight" if word == "1" => is_one_by_one.then(|| "one at a time".to_owned()),
            "in_flight" => config_number(line.row, key).map(|many| format!("{} in flight", grouped(many))),
            "supervised" => Some("supervised".to_owned()),
            "waiting" => Some(if word == "blocking" { "asleep".to_owned() } else { word }),
            _ => Some(word),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}
