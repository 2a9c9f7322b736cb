//! [`Comparison`]: a figure of ours next to the published one.

use super::{PublishedFact, RowFigure};
use crate::Row;

/// A figure that is published as "about" so much is met within this share of it.
const ABOUT: f64 = 0.05;

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComparisonVerdict {
    /// Ours is better than the best published figure.
    Ahead,
    /// Ours lies in the published range.
    Level,
    /// Ours is worse than the worst published figure.
    Behind,
    /// Ours is no result: the rate was missed or a check failed.
    NoResult,
    /// Ours is shown and not compared, because it was measured another way.
    Remark,
}

/// A figure of ours next to the published one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Our figure, in the unit of the fact.
    pub ours: f64,
    /// Ours by the best published figure, above 1 where ours is the better one; `None` where the source has a difference.
    pub ratio: Option<f64>,
    /// The result.
    pub verdict: ComparisonVerdict,
}

impl ComparisonVerdict {
    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Level => "level",
            Self::Behind => "behind",
            Self::NoResult => "no result",
            Self::Remark => "not compared",
        }
    }
}

impl PublishedFact {
    /// The best published figure.
    #[must_use]
    pub fn best(&self) -> f64 {
        if self.unit.more_is_better() { self.greatest } else { self.least }
    }

    /// Compares a figure of ours.
    #[must_use]
    pub fn compare(&self, ours: f64) -> Comparison {
        let worst = if self.unit.more_is_better() { self.least } else { self.greatest };
        let ratio = self.unit.ratio(ours, self.best());
        // Of a figure that is "below" a bound, nothing is known down there.
        let is_unknown = self.precision == "below" && ratio < 1.0;
        let verdict = if is_unknown || self.precision == "about" && (ratio - 1.0).abs() < ABOUT {
            ComparisonVerdict::Level
        } else if ratio > 1.0 {
            ComparisonVerdict::Ahead
        } else if self.unit.ratio(ours, worst) < 1.0 {
            ComparisonVerdict::Behind
        } else {
            ComparisonVerdict::Level
        };
        Comparison { ours, ratio: self.source.difference.is_none().then_some(ratio), verdict }
    }

    /// Compares the figure of a row that answers this fact; `None` if the row has no such figure. Facts without an answer are rates.
    #[must_use]
    pub fn compare_row(&self, row: &Row) -> Option<Comparison> {
        let figure = self.answer.as_ref().map_or(RowFigure::Throughput, |answer| answer.figure);
        let compared = self.compare(figure.of(row)?);
        if row.failure().is_some() || row.missed_rate_per_s().is_some() {
            return Some(Comparison { ratio: None, verdict: ComparisonVerdict::NoResult, ..compared });
        }
        Some(compared)
    }
}
