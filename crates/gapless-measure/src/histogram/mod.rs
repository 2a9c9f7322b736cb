//! | module | what lives there |
//! |---|---|
//! | `intervals` | a recorder that a driver can use in its hot loop, one histogram per interval |
//! | [`hlog`] | `.hlog` files |
//!
//! Recording never allocates and never fails.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{FloorRow, LatencyNs};

pub mod hlog;
mod intervals;

pub use intervals::{IntervalRecorder, RecordedRun};

/// One hour; greater values are recorded as this.
pub const GREATEST_NS: u64 = 3_600_000_000_000;

pub const DIGITS: u8 = 3;

/// Range: 1 ns to one hour, three significant digits.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyHistogram {
    inner: Histogram<u64>,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// Allocates and touches all memory (about 270 KB).
    pub fn new() -> Self {
        let mut inner =
            Histogram::new_with_bounds(1, GREATEST_NS, DIGITS).expect("the bounds and digits are constants in range");
        // Writes every count, so that recording meets no page fault.
        inner.reset();
        Self { inner }
    }

    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.inner.saturating_record(latency_ns);
    }

    pub fn record_many(&mut self, latency_ns: u64, count: u64) {
        self.inner.saturating_record_n(latency_ns, count);
    }

    /// Values with counts, ascending.
    pub fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        self.inner.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    pub fn merge(&mut self, other: &Self) {
        self.inner.add(&other.inner).expect("all histograms have the same bounds and digits");
    }

    pub fn count(&self) -> u64 {
        self.inner.len()
    }

    /// `percentile` is 0 to 100; 0 when nothing was recorded.
    pub fn percentile_ns(&self, percentile: f64) -> u64 {
        self.inner.value_at_quantile(percentile / 100.0)
    }

    /// `None` when nothing was recorded.
    pub fn latency_ns(&self) -> Option<LatencyNs> {
        if self.inner.is_empty() {
            return None;
        }
        let at = |percentile| self.percentile_ns(percentile);
        Some(LatencyNs {
            min: self.inner.min(),
            mean: (self.inner.mean() * 10.0).round() / 10.0,
            p50: at(50.0),
            p90: at(90.0),
            p99: at(99.0),
            p99_9: at(99.9),
            p99_99: at(99.99),
            max: self.inner.max(),
            count: self.inner.len(),
        })
    }

    /// `None` when nothing was recorded.
    pub fn floor_row(&self, name: &str, payload_bytes: u64) -> Option<FloorRow> {
        self.latency_ns().map(|latency| FloorRow {
            name: name.to_owned(),
            payload_bytes,
            p50_ns: Some(latency.p50),
            p99_ns: Some(latency.p99),
            p99_9_ns: Some(latency.p99_9),
            samples: Some(latency.count),
            ..FloorRow::default()
        })
    }

    pub fn inner(&self) -> &Histogram<u64> {
        &self.inner
    }
}

impl Serialize for LatencyHistogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.values())
    }
}

impl<'de> Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut histogram = Self::new();
        for (latency_ns, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            histogram.record_many(latency_ns, count);
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_have_three_digits() {
        let mut histogram = LatencyHistogram::new();
        for value in 1..=100_000 {
            histogram.record(value);
        }
        let latency = histogram.latency_ns().unwrap();
        let near = |value: u64, expected: u64| value.abs_diff(expected) * 1000 <= expected;
        assert!(near(latency.p50, 50_000) && near(latency.p90, 90_000) && near(latency.p99, 99_000));
        assert!(near(latency.p99_9, 99_900) && near(latency.p99_99, 99_990) && near(latency.max, 100_000));
        assert_eq!((latency.min, latency.count), (1, 100_000));
        assert!((latency.mean - 50_000.5).abs() < 50.0);
    }

    #[test]
    fn values_are_clamped_to_bounds() {
        let mut histogram = LatencyHistogram::new();
        histogram.record(0);
        histogram.record(u64::MAX);
        assert_eq!(histogram.count(), 2);
        let max = histogram.latency_ns().unwrap().max;
        assert!(max.abs_diff(GREATEST_NS) <= GREATEST_NS / 1000);
    }

    #[test]
    fn what_was_recorded_survives_json() {
        let mut histogram = LatencyHistogram::new();
        for value in [1, 310, 310, 45_678, u64::MAX] {
            histogram.record(value);
        }
        let read: LatencyHistogram = serde_json::from_str(&serde_json::to_string(&histogram).unwrap()).unwrap();
        assert_eq!(read, histogram);
    }

    #[test]
    fn merging_adds() {
        let (mut first, mut second) = (LatencyHistogram::new(), LatencyHistogram::new());
        first.record(10);
        second.record(1_000);
        first.merge(&second);
        assert_eq!(first.count(), 2);
        assert_eq!((first.percentile_ns(50.0), first.percentile_ns(100.0)), (10, 1_000));
        assert_eq!(LatencyHistogram::new().latency_ns(), None);
    }
}
