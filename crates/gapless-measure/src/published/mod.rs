//! Figures that others have published, each of them once: tables, the overview and the report take them from here.
//!
//! They are facts about other machines, and some about another wire ([`Difference`]): never a basis for "x times
//! faster" there.
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
//! [`PublishedFact::is_answered_by`] finds our row for it: its configuration has the values that [`FactAnswer::config`]
//! asks for. A row of another benchmark names the key of the fact under [`ANSWERS`], too.

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

/// The key in [`Row::extra`] for the facts that a row answers: a key, or a list.
pub const ANSWERS: &str = "answers";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedSystem {
    Rumi,
    CoralSequencer,
    EnduroX,
    Mercury,
    Axon,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Publication {
    pub system: &'static str,
    pub machine: &'static str,
    pub year: &'static str,
    /// `None` if its figures and ours may be compared by a ratio.
    pub difference: Option<Difference>,
}

/// Forbids a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// Passed by published figures, not by ours.
    Wire(&'static str),
    /// The figure was configured, not measured.
    Setting(&'static str),
}

impl Difference {
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Wire(text) | Self::Setting(text) => text,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFact {
    /// System, quantity and configuration, separated by `/`; stable.
    pub key: String,
    pub system: PublishedSystem,
    pub what: String,
    pub least: f64,
    /// Equals `least` for a single figure.
    pub greatest: f64,
    pub unit: FigureUnit,
    /// Word before an inexact figure: `about`, `below`.
    pub precision: &'static str,
    pub source: &'static Publication,
    /// `None` if this program measures nothing like it.
    pub answer: Option<FactAnswer>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FactAnswer {
    pub benchmark: &'static str,
    /// Required values. A list stands for any of its values, null for an absent key.
    pub config: Vec<(&'static str, Value)>,
    pub figure: RowFigure,
    pub peers: &'static [PeerSystem],
    /// Rows that are shown, but not compared.
    pub remark: Option<Remark>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    pub reason: &'static str,
    pub config: Vec<(&'static str, Value)>,
}

#[derive(Debug, PartialEq)]
pub struct PeerSystem {
    pub name: &'static str,
    /// Values in place of ours.
    pub config: &'static [(&'static str, &'static str)],
    /// Keys of ours that need not match.
    pub ignored_keys: &'static [&'static str],
}

impl PublishedSystem {
    pub const ALL: [Self; 5] = [Self::Rumi, Self::CoralSequencer, Self::EnduroX, Self::Mercury, Self::Axon];
}

impl PublishedFact {
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

    pub(crate) fn answered(mut self, answer: FactAnswer) -> Self {
        self.answer = Some(answer);
        self
    }

    pub(crate) fn roughly(mut self, word: &'static str) -> Self {
        self.precision = word;
        self
    }

    /// A row that names the fact may be of another benchmark; the rest of its configuration must match.
    #[must_use]
    pub fn is_answered_by(&self, benchmark: &str, row: &Row) -> bool {
        let is_named = self.is_named_by(row);
        match &self.answer {
            Some(answer) if is_named => has_all(row, answer.config.iter().filter(|(key, _)| *key != "name")),
            Some(answer) => answer.is_of(benchmark, row, None),
            None => is_named,
        }
    }

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
    pub(crate) fn of(benchmark: &'static str, figure: RowFigure, config: Vec<(&'static str, Value)>) -> Self {
        Self { benchmark, config, figure, peers: &[], remark: None }
    }

    pub(crate) fn remarking(mut self, reason: &'static str, config: Vec<(&'static str, Value)>) -> Self {
        self.remark = Some(Remark { reason, config });
        self
    }

    pub(crate) fn with_peers(mut self, peers: &'static [PeerSystem]) -> Self {
        self.peers = peers;
        self
    }

    /// The configuration is ours, or that of `peer`.
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
    #[must_use]
    pub fn is_of(&self, row: &Row) -> bool {
        has_all(row, self.config.iter())
    }
}

/// One of each list; an absent key reads as null.
fn has_all<'a>(row: &Row, mut asked: impl Iterator<Item = &'a (&'static str, Value)>) -> bool {
    asked.all(|(key, asked)| match asked {
        Value::Array(any) => any.contains(&row.config.value(key)),
        one => row.config.value(key) == *one,
    })
}

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

#[must_use]
pub fn facts() -> Vec<PublishedFact> {
    [rumi::facts(), coralsequencer::facts(), endurox::facts(), mercury::facts(), axon::facts()].concat()
}

#[must_use]
pub fn fact(key: &str) -> Option<PublishedFact> {
    facts().into_iter().find(|fact| fact.key == key)
}

#[cfg(test)]
mod tests;
