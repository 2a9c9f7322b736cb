//! Average and greatest of the fastest 75 %, 90 % … of all messages.

use crate::histogram::LatencyHistogram;
use serde::{Deserialize, Serialize};

pub use gapless_measure::published::coralsequencer::PERCENTS;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencySlice {
    pub percent: f64,
    pub average_ns: f64,
    pub greatest_ns: u64,
    pub count: u64,
}

/// Leaves out slices that hold no message.
pub fn slices(histogram: &LatencyHistogram) -> Vec<LatencySlice> {
    PERCENTS.iter().filter_map(|&percent| slice(histogram, percent)).collect()
}

fn slice(histogram: &LatencyHistogram, percent: f64) -> Option<LatencySlice> {
    let count = (histogram.count() as f64 * percent / 100.0).round() as u64;
    let (mut missing, mut sum, mut greatest_ns) = (count, 0.0, 0);
    for (value_ns, of_value) in histogram.values() {
        if missing == 0 {
            break;
        }
        let taken = of_value.min(missing);
        missing -= taken;
        sum += value_ns as f64 * taken as f64;
        greatest_ns = value_ns;
    }
    (count > 0).then(|| LatencySlice {
        percent,
        average_ns: (sum / count as f64 * 10.0).round() / 10.0,
        greatest_ns,
        count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_holds_the_fastest() {
        let mut histogram = LatencyHistogram::new();
        histogram.record_many(10, 80);
        histogram.record_many(20, 19);
        histogram.record_many(1_000, 1);
        let found: Vec<_> = slices(&histogram).iter().map(|each| (each.average_ns, each.greatest_ns)).collect();
        assert_eq!(&found[..3], &[(10.0, 10), (11.1, 20), (11.9, 20)]);
        assert!(found[3..].iter().all(|each| *each == (21.8, 1_000) || each.1 == 1_000), "{found:?}");
    }

    #[test]
    fn nothing_recorded_has_no_slices() {
        assert_eq!(slices(&LatencyHistogram::new()), []);
    }
}
