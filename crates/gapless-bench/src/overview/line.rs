//! One line of the table: a row of a benchmark, its figure, its floor and its published figure.

use super::arguments::OverviewPart;
use gapless_measure::published::{ANSWERS, FigureUnit, PublishedFact, fact};
use gapless_measure::reporting::{put, word};
use gapless_measure::table::{absent, grouped};
use gapless_measure::{FloorRow, Row};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const SHOWN: &str = "shown";
const PEERS: &str = "peers";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ShownFigure {
    Median,
    Mean,
    Throughput,
    /// Key of a time in ns: the median of a latency, or the greatest of a list.
    Time(&'static str),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LineFigures {
    pub(super) figure: String,
    pub(super) unit: FigureUnit,
    pub(super) ours: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) floor: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct OverviewPeer {
    pub(super) system: String,
    pub(super) figure: f64,
}

#[derive(Clone, Debug)]
pub(super) struct OverviewLine {
    pub(super) part: OverviewPart,
    pub(super) what: String,
    pub(super) figure: ShownFigure,
    pub(super) floor: Option<FloorRow>,
    pub(super) answers: Option<String>,
}

impl OverviewLine {
    pub(super) fn into_row(self, mut row: Row) -> Row {
        row.config.name = Some(self.what);
        row.config.extra.insert("part".to_owned(), word(self.part).into());
        if let Some((figure, unit, ours)) = self.figure.of(&row) {
            (row.floor_ratio, row.floor_name) = (None, None);
            let mut shown = LineFigures { figure, unit, ours, floor: None };
            if let Some(floor) = &self.floor {
                shown.floor = in_unit(floor, unit);
                self.figure.compare(&mut row, &shown, floor);
            }
            put(&mut row, SHOWN, json!(shown));
        }
        if let Some(key) = self.answers {
            assert!(fact(&key).is_some(), "{key} is no published figure");
            put(&mut row, ANSWERS, key);
        }
        row
    }
}

impl ShownFigure {
    fn of(self, row: &Row) -> Option<(String, FigureUnit, f64)> {
        match self {
            Self::Median => Some(("p50_ns".to_owned(), FigureUnit::Nanoseconds, row.latency_ns?.p50 as f64)),
            Self::Mean => Some(("mean_ns".to_owned(), FigureUnit::Nanoseconds, row.latency_ns?.mean)),
            Self::Throughput => Some(("throughput_per_s".to_owned(), FigureUnit::PerSecond, row.throughput_per_s?)),
            Self::Time(key) => {
                let ns = match row.extra.get(key)? {
                    Value::Array(all) => {
                        all.iter().map(Value::as_f64).collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max)
                    }
                    Value::Object(latency) => latency.get("p50").and_then(Value::as_f64),
                    one => one.as_f64(),
                };
                Some((key.to_owned(), FigureUnit::Nanoseconds, ns?))
            }
        }
    }

    /// Ratio of medians where both have one, else of the shown figures.
    fn compare(self, row: &mut Row, shown: &LineFigures, floor: &FloorRow) {
        let Some(value) = shown.floor.filter(|floor| *floor > 0.0 && shown.ours > 0.0) else { return };
        if row.failure().is_some() || row.missed_rate_per_s().is_some() {
            return;
        }
        if !matches!(self, Self::Time(_)) {
            row.compare_with(floor);
        }
        if row.floor_ratio.is_none() {
            row.floor_ratio = Some((shown.unit.ratio(value, shown.ours) * 100.0).round() / 100.0);
            row.floor_name = Some(floor.name.clone());
        }
    }
}

/// A round trip becomes round trips a second.
fn in_unit(floor: &FloorRow, unit: FigureUnit) -> Option<f64> {
    if unit == FigureUnit::Nanoseconds {
        return floor.p50_ns.map(|ns| ns as f64);
    }
    floor.rate_per_s.or_else(|| floor.p50_ns.filter(|ns| *ns > 0).map(|ns| 1e9 / ns as f64))
}

fn published(row: &Row) -> Option<PublishedFact> {
    fact(row.extra.get(ANSWERS)?.as_str()?)
}

impl LineFigures {
    /// `None` if it could not be measured.
    pub(super) fn of(row: &Row) -> Option<Self> {
        serde_json::from_value(row.extra.get(SHOWN)?.clone()).ok()
    }
}

pub(super) fn add_peer(row: &mut Row, peer: &OverviewPeer) {
    let peers = row.extra.entry(PEERS).or_insert_with(|| json!([]));
    if let Value::Array(all) = peers {
        all.push(json!(peer));
    }
}

/// Marks a missed rate, and counts failed calls.
pub(super) fn ours(row: &Row) -> String {
    let Some(shown) = LineFigures::of(row) else { return absent() };
    let missed = if row.has_missed_rate() { "MISSED " } else { "" };
    let figure = format!("{missed}{}", shown.unit.text(shown.ours));
    match row.lost.filter(|_| is_of_kills(row)) {
        Some(failed) => format!("{figure}, {} failed", grouped(failed)),
        None => figure,
    }
}

fn is_of_kills(row: &Row) -> bool {
    row.config.extra.get("part").is_some_and(|part| *part == word(OverviewPart::Kills))
}

pub(super) fn floor(row: &Row) -> String {
    LineFigures::of(row).and_then(|shown| Some(shown.unit.text(shown.floor?))).unwrap_or_else(absent)
}

pub(super) fn published_text(row: &Row) -> String {
    let (Some(fact), Some(_)) = (published(row), LineFigures::of(row)) else { return absent() };
    format!("{} ({}, {}, {})", fact.figure_text(), fact.source.system, fact.source.machine, fact.source.year)
}

/// The wire or store that the published figure passed and ours did not.
pub(super) fn wire(row: &Row) -> Option<String> {
    let source = published(row)?.source;
    Some(format!("{}: {}", source.system, source.difference?.text()))
}

pub(super) fn peers(row: &Row) -> String {
    let peers: Option<Vec<OverviewPeer>> =
        row.extra.get(PEERS).and_then(|peers| serde_json::from_value(peers.clone()).ok());
    let (Some(peers), Some(shown)) = (peers, LineFigures::of(row)) else { return absent() };
    let texts: Vec<_> = peers.iter().map(|peer| format!("{} {}", peer.system, shown.unit.text(peer.figure))).collect();
    texts.join("; ")
}
