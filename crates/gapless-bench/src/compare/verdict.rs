//! The pairs of one figure, and the verdict on them.

use super::workload::ComparedFigure;
use crate::statistics::{RatioInterval, interval};
use gapless_measure::Row;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BuildVerdict {
    Faster,
    Slower,
    /// Slower for certain, but not for certain by more than is tolerated.
    Tolerated,
    /// The interval is narrow and holds 1.
    Same,
    /// The interval holds 1 and is wide, or there are too few pairs.
    Undecided,
}

impl BuildVerdict {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Tolerated => "slower, within the tolerance",
            Self::Same => "no difference",
            Self::Undecided => "the clock cannot decide",
        }
    }
}

pub(super) struct Series {
    pub workload: String,
    pub row: Row,
    pub figure: ComparedFigure,
    pub width: f64,
    pub tolerance: f64,
    pub error: f64,
    pub a: Vec<f64>,
    pub b: Vec<f64>,
    pub floor_a: Vec<f64>,
    pub floor_b: Vec<f64>,
}

impl Series {
    /// Interval of B / A; `None` while there are too few pairs for one.
    pub(super) fn interval(&self) -> Option<RatioInterval> {
        let ratios: Vec<f64> = self.a.iter().zip(&self.b).map(|(a, b)| b / a).collect();
        interval(&ratios, self.error)
    }

    pub(super) fn is_narrow(&self) -> bool {
        self.interval().is_some_and(|interval| interval.half_width() <= self.width)
    }

    pub(super) fn verdict(&self) -> BuildVerdict {
        let Some(RatioInterval { low, high, .. }) = self.interval() else { return BuildVerdict::Undecided };
        let (low, high) = if self.figure.more_is_better() { (1.0 / high, 1.0 / low) } else { (low, high) };
        let limit = if self.figure.more_is_better() { 1.0 / (1.0 - self.tolerance) } else { 1.0 + self.tolerance };
        if high < 1.0 {
            BuildVerdict::Faster
        } else if low > limit {
            BuildVerdict::Slower
        } else if low > 1.0 {
            BuildVerdict::Tolerated
        } else if self.is_narrow() {
            BuildVerdict::Same
        } else {
            BuildVerdict::Undecided
        }
    }

    pub(super) fn summary(&self) -> String {
        let (run, figure, pairs, verdict) = (&self.workload, self.figure.name(), self.a.len(), self.verdict().name());
        match self.interval() {
            Some(RatioInterval { low, ratio, high }) => {
                format!("{run}, {figure}: B / A {ratio:.3}, {low:.3}–{high:.3}, {pairs} pairs: {verdict}")
            }
            None => format!("{run}, {figure}: {pairs} pairs are too few"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 10] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0, 101.0, 99.0, 100.0, 100.0];

    fn verdict(figure: ComparedFigure, b: &[f64], tolerance: f64) -> BuildVerdict {
        let (workload, row, a) = ("direct".to_owned(), Row::default(), A[..b.len()].to_vec());
        let (floor_a, floor_b) = (Vec::new(), Vec::new());
        let b = b.to_vec();
        Series { workload, row, figure, width: 0.03, tolerance, error: 0.01, a, b, floor_a, floor_b }.verdict()
    }

    fn times(factor: f64) -> [f64; 10] {
        A.map(|value| value * factor)
    }

    #[test]
    fn direction_depends_on_the_unit() {
        for (figure, factor, expected) in [
            (ComparedFigure::Throughput, 1.05, BuildVerdict::Faster),
            (ComparedFigure::Throughput, 0.95, BuildVerdict::Slower),
            (ComparedFigure::P50, 1.05, BuildVerdict::Slower),
            (ComparedFigure::P50, 0.95, BuildVerdict::Faster),
            (ComparedFigure::Cpu, 1.05, BuildVerdict::Slower),
        ] {
            assert_eq!(verdict(figure, &times(factor), 0.0), expected, "{figure:?} × {factor}");
        }
    }

    #[test]
    fn what_is_tolerated_is_called_so() {
        assert_eq!(verdict(ComparedFigure::Throughput, &times(0.985), 0.02), BuildVerdict::Tolerated);
        assert_eq!(verdict(ComparedFigure::Throughput, &times(0.97), 0.02), BuildVerdict::Slower);
        assert_eq!(verdict(ComparedFigure::P50, &times(1.015), 0.02), BuildVerdict::Tolerated);
        assert_eq!(verdict(ComparedFigure::P50, &times(1.03), 0.02), BuildVerdict::Slower);
        assert_eq!(verdict(ComparedFigure::P50, &times(1.0), 0.02), BuildVerdict::Same);
    }

    #[test]
    fn what_varies_too_much_is_not_decided() {
        let wild: Vec<f64> = A.iter().enumerate().map(|(index, a)| a * [0.6, 1.5, 1.1, 0.8][index % 4]).collect();
        assert_eq!(verdict(ComparedFigure::P50, &wild, 0.0), BuildVerdict::Undecided);
        assert_eq!(verdict(ComparedFigure::P50, &A[..3], 0.0), BuildVerdict::Undecided, "too few");
    }
}
