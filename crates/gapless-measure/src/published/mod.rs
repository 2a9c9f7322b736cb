//! Figures that others have published, each of them once: tables, the overview and the report take them from here.
//!
//! They are facts about other machines, and some about another wire ([`Difference`]): never a basis for "x times faster" there.
//!
//! | module | published by |
//! |---|---|
//! | [`rumi`] | Rumi: a service on a primary and its backup |
//! | [`coralsequencer`] | CoralSequencer: round trips, and three nodes that push |
//! | [`endurox`] | Enduro/X, next to RabbitMQ: local calls, and killed processes |
//! | [`mercury`] | Mercury: events in memory and through Kafka |
//! | [`axon`] | Axon Framework: the command bus |
//! | `figure` | where the figure that answers a fact stands in a row |
//! | `comparison` | a figure of ours next to the published one |
//! | `unit` | units, and figures as text |
//!
//! A [`PublishedFact`] is one published figure. [`PublishedFact::is_answered_by`] finds our row for it: its configuration has the values that
//! [`FactAnswer::config`] asks for. A row of another benchmark names the key of the fact under [`ANSWERS`], too.

use serde_json::Value;

use crate::Row;

pub mod axon;
mod comparison;
pub mod coralsequencer;
pub mod endurox;
mod figure;
pub mod mercury;
pub mod rumi;
mod unit;

pub use comparison::{Comparison, ComparisonVerdict};
pub use figure::{LatencyPart, RowFigure, cpu_ns_per_call};
pub use unit::FigureUnit;

/// The key in [`Row::extra`] with which a row names the fact that it answers: its key, or a list of keys.
pub const ANSWERS: &str = "answers";

/// One of the five tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedSystem {
    /// A service on one node and on a primary with its backup.
    Rumi,
    /// A sequencer and its nodes.
    CoralSequencer,
    /// Calls between processes, next to RabbitMQ.
    EnduroX,
    /// Calls by the size of the payload, in memory and between processes.
    Mercury,
    /// The command bus.
    Axon,
}

/// Publication of a figure.
#[derive(Debug, PartialEq, Eq)]
pub struct Publication {
    /// The system that was measured, with its version or language where that is stated.
    pub system: &'static str,
    /// The machine, as far as it is stated.
    pub machine: &'static str,
    /// Year of the publication; `not stated`.
    pub year: &'static str,
    /// Reason why no ratio is made between its figures and ours; `None` if both are alike.
    pub difference: Option<Difference>,
}

/// Reason why no ratio is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// Published figures passed a wire that ours do not pass.
    Wire(&'static str),
    /// The published figure was configured, not measured.
    Setting(&'static str),
}

impl Difference {
    /// The difference in words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Wire(text) | Self::Setting(text) => text,
        }
    }
}

/// A published figure.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFact {
    /// Stable name: the system, the quantity and its configuration, separated by `/`.
    pub key: String,
    /// The table that it belongs to.
    pub system: PublishedSystem,
    /// The measured quantity, in words.
    pub what: String,
    /// Least published figure.
    pub least: f64,
    /// Greatest published figure; the least again where a single figure is published.
    pub greatest: f64,
    /// Unit of both.
    pub unit: FigureUnit,
    /// A word before the figure, where it is not exact: `about`, `below`.
    pub precision: &'static str,
    /// Publication of the figure.
    pub source: &'static Publication,
    /// Our rows for it; `None` if this program measures nothing like it.
    pub answer: Option<FactAnswer>,
}

/// Description of the rows that answer a fact.
#[derive(Debug, Clone, PartialEq)]
pub struct FactAnswer {
    /// Name of the benchmark in its JSON.
    pub benchmark: &'static str,
    /// Values that the configuration of a row has. A list stands for any of its values, and null for a key that is absent.
    pub config: Vec<(&'static str, Value)>,
    /// The figure of the row.
    pub figure: RowFigure,
    /// Other systems of the same run.
    pub peers: &'static [PeerSystem],
    /// Rows of ours that are shown with the figure and not compared with it.
    pub remark: Option<Remark>,
}

/// Rows of ours that are like a published figure, but not enough for a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    /// Reason why they are not compared.
    pub reason: &'static str,
    /// Values of their configuration.
    pub config: Vec<(&'static str, Value)>,
}

/// A system that is measured in the same run as ours.
#[derive(Debug, PartialEq)]
pub struct PeerSystem {
    /// Name in tables.
    pub name: &'static str,
    /// Text values of the configuration in place of ours.
    pub config: &'static [(&'static str, &'static str)],
    /// Keys of ours that need not match.
    pub ignored_keys: &'static [&'static str],
}

impl PublishedSystem {
    /// All tables, in their order.
    pub const ALL: [Self; 5] = [Self::Rumi, Self::CoralSequencer, Self::EnduroX, Self::Mercury, Self::Axon];
}

impl PublishedFact {
    /// A fact that nothing answers yet.
    pub(crate) fn new(
        system: PublishedSystem,
        key: String,
        what: String,
        figure: impl Into<FigureSpan>,
        source: &'static Publication,
    ) -> Self {
        let FigureSpan(least, greatest, unit) = figure.into();
        Self { key, system, what, least, greatest, unit, precision: "", source, answer: None }
    }

    /// The same fact with the rows that answer it.
    pub(crate) fn answered(mut self, answer: FactAnswer) -> Self {
        self.answer = Some(answer);
        self
    }

    /// The same fact, of which the publication gives a round figure.
    pub(crate) fn roughly(mut self, word: &'static str) -> Self {
        self.precision = word;
        self
    }

    /// Whether `row` of `benchmark` is our answer to this fact. A row that names the fact may be of another benchmark, with another
    /// name; the rest of its configuration is asked for all the same.
    #[must_use]
    pub fn is_answered_by(&self, benchmark: &str, row: &Row) -> bool {
        let is_named = self.is_named_by(row);
        match &self.answer {
            Some(answer) if is_named => has_all(row, answer.config.iter().filter(|(key, _)| *key != "name")),
            Some(answer) => answer.is_of(benchmark, row, None),
            None => is_named,
        }
    }

    /// The published figure or range, with the word that says how exact it is.
    #[must_use]
    pub fn figure_text(&self) -> String {
        let range = self.unit.range_text(self.least, self.greatest);
        if self.precision.is_empty() { range } else { format!("{} {range}", self.precision) }
    }

    fn is_named_by(&self, row: &Row) -> bool {
        match row.extra.get(ANSWERS) {
            Some(Value::String(key)) => *key == self.key,
            Some(Value::Array(keys)) => keys.iter().any(|key| *key == self.key),
            _ => false,
        }
    }
}

impl FactAnswer {
    /// Rows of `benchmark` whose configuration has these values.
    pub(crate) fn of(benchmark: &'static str, figure: RowFigure, config: Vec<(&'static str, Value)>) -> Self {
        Self { benchmark, config, figure, peers: &[], remark: None }
    }

    /// The same with rows that are shown and not compared.
    pub(crate) fn remarking(mut self, reason: &'static str, config: Vec<(&'static str, Value)>) -> Self {
        self.remark = Some(Remark { reason, config });
        self
    }

    /// The same with other systems of the run.
    pub(crate) fn with_peers(mut self, peers: &'static [PeerSystem]) -> Self {
        self.peers = peers;
        self
    }

    /// Whether `row` of `benchmark` has the configuration: ours, or that of a peer.
    #[must_use]
    pub fn is_of(&self, benchmark: &str, row: &Row, peer: Option<&PeerSystem>) -> bool {
        if self.benchmark != benchmark {
            return false;
        }
        let of_peer = peer.map_or(&[][..], |peer| peer.config);
        let is_ignored = |key: &str| {
            peer.is_some_and(|peer| peer.ignored_keys.contains(&key)) || of_peer.iter().any(|(other, _)| *other == key)
        };
        of_peer.iter().all(|(key, value)| row.config.value(key) == *value)
            && has_all(row, self.config.iter().filter(|(key, _)| !is_ignored(key)))
    }
}

impl Remark {
    /// Whether it is of `row`.
    #[must_use]
    pub fn is_of(&self, row: &Row) -> bool {
        has_all(row, self.config.iter())
    }
}

/// Whether a row has these values: one of each list. An absent key reads as null.
fn has_all<'a>(row: &Row, mut asked: impl Iterator<Item = &'a (&'static str, Value)>) -> bool {
    asked.all(|(key, asked)| match asked {
        Value::Array(any) => any.contains(&row.config.value(key)),
        one => row.config.value(key) == *one,
    })
}

/// Least and greatest figure, and their unit.
pub(crate) struct FigureSpan(f64, f64, FigureUnit);

impl From<(f64, FigureUnit)> for FigureSpan {
    fn from((figure, unit): (f64, FigureUnit)) -> Self {
        Self(figure, figure, unit)
    }
}

impl From<(f64, f64, FigureUnit)> for FigureSpan {
    fn from((least, greatest, unit): (f64, f64, FigureUnit)) -> Self {
        Self(least, greatest, unit)
    }
}

/// Every published figure, table by table.
#[must_use]
pub fn facts() -> Vec<PublishedFact> {
    [rumi::facts(), coralsequencer::facts(), endurox::facts(), mercury::facts(), axon::facts()].concat()
}

/// The published figure of this key.
#[must_use]
pub fn fact(key: &str) -> Option<PublishedFact> {
    facts().into_iter().find(|fact| fact.key == key)
}

#[cfg(test)]
mod tests;
