//! `Comparison`: a figure of ours next to the published one.

use super::{PublishedFact, RowFigure};
use crate::Row;

/// An "about" figure is met within this share.
const ABOUT: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComparisonVerdict {
    /// Better than the best published figure.
    Ahead,
    /// Ours lies in the published range.
    Level,
    /// Worse than the worst published figure.
    Behind,
    /// The rate was missed or a check failed.
    NoResult,
    /// Shown and not compared, because it was measured another way.
    Remark,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    pub ours: f64,
    /// Ratio above 1 where ours is better; `None` where the source has a difference.
    pub ratio: Option<f64>,
    pub verdict: ComparisonVerdict,
}

impl ComparisonVerdict {
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
    #[must_use]
    pub fn best(&self) -> f64 {
        if self.unit.more_is_better() { self.greatest } else { self.least }
    }

    #[must_use]
    pub fn compare(&self, ours: f64) -> Comparison {
        let worst = if self.unit.more_is_better() { self.least } else { self.greatest };
        let ratio = self.unit.ratio(ours, self.best());
        // Below a bound nothing is known.
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

    /// `None` if the row has no such figure. Facts without an answer are rates.
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
