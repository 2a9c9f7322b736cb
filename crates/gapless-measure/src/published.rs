//! Published reference figures of the canonical benchmark, to be printed beside ours.
//!
//! Source: the canonical benchmark's result pages of Rumi (Neeve Research), February 2025: Xeon Gold
//! 6334, two hosts, InfiniBand, clustered, 10,000 messages a second for latency, uncapped for
//! throughput. About 23 µs of each latency is said to be the wire. A flush there is not a sync. They
//! are facts about another machine and another wire: never a basis for "x times faster".

/// Where the figures come from, for the line under a table.
pub const SOURCE: &str = "published by Rumi, Feb 2025: Xeon Gold 6334, two hosts over InfiniBand, clustered; about 23 µs of each latency is said to be the wire; flush is not a sync";

/// A published latency at 10,000 messages a second, version 4.0, µs.
#[derive(Debug, Clone, Copy)]
pub struct PublishedLatency {
    /// `direct` or `indirect`.
    pub access: &'static str,
    /// `min`, `default` or `max`.
    pub cpu: &'static str,
    /// Median, µs.
    pub p50_us: f64,
    /// 99th percentile, µs.
    pub p99_us: f64,
    /// 99.9th percentile, µs.
    pub p99_9_us: f64,
}

/// A published throughput, messages a second.
#[derive(Debug, Clone, Copy)]
pub struct PublishedThroughput {
    /// `direct` or `indirect`.
    pub access: &'static str,
    /// `min`, `default` or `max`.
    pub cpu: &'static str,
    /// Version of the product.
    pub version: &'static str,
    /// Messages a second.
    pub messages_per_s: u64,
}

const fn latency(access: &'static str, cpu: &'static str, p50_us: f64, p99_us: f64, p99_9_us: f64) -> PublishedLatency {
    PublishedLatency { access, cpu, p50_us, p99_us, p99_9_us }
}

const fn throughput(
    access: &'static str,
    cpu: &'static str,
    version: &'static str,
    messages_per_s: u64,
) -> PublishedThroughput {
    PublishedThroughput { access, cpu, version, messages_per_s }
}

/// All published latencies.
pub const LATENCIES: [PublishedLatency; 6] = [
    latency("indirect", "min", 31.46, 34.09, 43.43),
    latency("indirect", "default", 26.31, 29.18, 37.39),
    latency("indirect", "max", 29.86, 31.12, 37.32),
    latency("direct", "min", 28.90, 31.56, 38.61),
    latency("direct", "default", 23.60, 26.40, 31.98),
    latency("direct", "max", 26.68, 27.78, 31.86),
];

/// All published throughputs. Direct is said to be three times indirect; no figure is published.
pub const THROUGHPUTS: [PublishedThroughput; 4] = [
    throughput("indirect", "min", "4.0", 139_875),
    throughput("indirect", "min", "3.16", 117_124),
    throughput("indirect", "default", "3.16", 90_974),
    throughput("indirect", "max", "3.16", 56_419),
];

/// Encoding of the Car message alone, ns: least and greatest published.
pub const ENCODE_NS: (u64, u64) = (240, 280);
/// Decoding of the Car message alone, ns: least and greatest published.
pub const DECODE_NS: (u64, u64) = (235, 275);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_in_order() {
        assert!(LATENCIES.iter().all(|row| row.p50_us < row.p99_us && row.p99_us < row.p99_9_us));
    }
}
