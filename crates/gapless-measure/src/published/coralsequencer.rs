//! CoralSequencer: loopback UDP on one machine, two processes for a latency, three nodes for a throughput.

use serde_json::json;

use super::{FactAnswer, FigureUnit, LatencyPart, Publication, PublishedFact, PublishedSystem, RowFigure};
use crate::numbers::grouped;

pub const LATENCY_SOURCE: &str =
    "published by CoralSequencer: UDP over loopback, 1,000,000 messages, desktop at 6.00 GHz";
pub const RATE_SOURCE: &str = "published by CoralSequencer: three nodes on one server at 3.7 GHz; messages a second \
through the sequencer, and in parentheses of each node, which do not add up";
pub const WIRE: &str = "between machines a packet of 256 B takes at least 382 ns from network card to network card at \
10 Gb/s, 3.82 µs at 1 Gb/s: nothing here has crossed a wire";

const LATENCY: Publication =
    Publication { system: "CoralSequencer", machine: "desktop at 6.00 GHz", year: "2015, revised", difference: None };
const RATE: Publication =
    Publication { system: "CoralSequencer", machine: "server at 3.7 GHz", year: "2015, revised", difference: None };

/// Fastest messages, percent of all.
pub const PERCENTS: [f64; 6] = [75.0, 90.0, 99.0, 99.9, 99.99, 99.999];

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamLatency {
    pub payload_bytes: u64,
    pub mean_ns: u64,
    pub rest: Option<PublishedSlices>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedSlices {
    pub min_ns: u64,
    pub max_ns: u64,
    /// Averages within each of [`PERCENTS`].
    pub average_ns: [u64; 6],
    /// Greatest values within each of [`PERCENTS`].
    pub greatest_ns: [u64; 6],
}

pub const LATENCIES: [StreamLatency; 2] = [
    StreamLatency { payload_bytes: 256, mean_ns: 4_700, rest: None },
    StreamLatency {
        payload_bytes: 1024,
        mean_ns: 3_379,
        rest: Some(PublishedSlices {
            min_ns: 2_717,
            max_ns: 73_174,
            average_ns: [3_236, 3_286, 3_359, 3_376, 3_378, 3_378],
            greatest_ns: [3_428, 3_775, 5_155, 5_547, 5_719, 11_311],
        }),
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedRate {
    pub payload_bytes: u64,
    pub batch: bool,
    pub sequencer_per_s: u64,
    pub node_per_s: u64,
}

const fn published(payload_bytes: u64, batch: bool, sequencer_per_s: u64, node_per_s: u64) -> PublishedRate {
    PublishedRate { payload_bytes, batch, sequencer_per_s, node_per_s }
}

pub const RATES: [PublishedRate; 4] = [
    published(256, true, 1_116_166, 470_483),
    published(64, true, 2_330_160, 1_641_239),
    published(256, false, 786_497, 275_861),
    published(1400, false, 328_025, 111_119),
];

#[must_use]
pub fn latency_of(payload_bytes: u64) -> Option<&'static StreamLatency> {
    LATENCIES.iter().find(|row| row.payload_bytes == payload_bytes)
}

#[must_use]
pub fn rate_of(payload_bytes: u64, batch: bool) -> Option<&'static PublishedRate> {
    RATES.iter().find(|row| row.payload_bytes == payload_bytes && row.batch == batch)
}

pub(super) fn facts() -> Vec<PublishedFact> {
    let mut facts = Vec::new();
    for row in &LATENCIES {
        let bytes = row.payload_bytes;
        let mut push = |name: &str, words: &str, ns: u64, figure: RowFigure| {
            let key = format!("coralsequencer/latency/{bytes}/{name}");
            let config = vec![
                ("mode", json!("latency")),
                ("payload_bytes", json!(bytes)),
                ("transport", json!(["udp", "multicast"])),
            ];
            let what = format!("round trip, {} B, {words}", grouped(bytes));
            let fact = PublishedFact::new(
                PublishedSystem::CoralSequencer,
                key,
                what,
                (ns as f64, FigureUnit::Nanoseconds),
                &LATENCY,
            )
            .answered(FactAnswer::of("sequencer", figure, config));
            facts.push(if row.rest.is_none() { fact.roughly("about") } else { fact });
        };
        push("mean", "average", row.mean_ns, RowFigure::Latency(LatencyPart::Mean));
        let Some(rest) = row.rest else { continue };
        push("min", "least", rest.min_ns, RowFigure::Latency(LatencyPart::Min));
        for (percent, ns) in PERCENTS.into_iter().zip(rest.average_ns) {
            let words = format!("average of the fastest {percent} %");
            push(&format!("{percent}/average"), &words, ns, RowFigure::SliceAverage(percent));
        }
        for (percent, ns) in PERCENTS.into_iter().zip(rest.greatest_ns) {
            let words = format!("greatest of the fastest {percent} %");
            push(&format!("{percent}/greatest"), &words, ns, RowFigure::SliceGreatest(percent));
        }
        push("max", "greatest", rest.max_ns, RowFigure::Latency(LatencyPart::Max));
    }
    for row in &RATES {
        let (bytes, packets) = (row.payload_bytes, if row.batch { "batched" } else { "one-per-packet" });
        let words = if row.batch { "batched" } else { "one per packet" };
        let of = [
            ("sequencer", "through the sequencer", row.sequencer_per_s, RowFigure::Throughput),
            ("node", "of each node", row.node_per_s, RowFigure::NodeRate),
        ];
        for (name, role, per_s, figure) in of {
            let config = vec![
                ("mode", json!("throughput")),
                ("payload_bytes", json!(bytes)),
                ("transport", json!(["udp", "multicast"])),
                ("batch_node", json!(row.batch)),
                ("batch_sequencer", json!(row.batch)),
                ("nodes", json!(3)),
            ];
            let key = format!("coralsequencer/throughput/{bytes}/{packets}/{name}");
            let what = format!("three nodes, {} B, {words}, messages {role}", grouped(bytes));
            let figure = ((per_s as f64, FigureUnit::PerSecond), FactAnswer::of("sequencer", figure, config));
            facts.push(
                PublishedFact::new(PublishedSystem::CoralSequencer, key, what, figure.0, &RATE).answered(figure.1),
            );
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_up() {
        assert_eq!(rate_of(64, true).unwrap().sequencer_per_s, 2_330_160);
        assert_eq!((rate_of(1312, false), rate_of(64, false)), (None, None));
        assert_eq!(latency_of(256).unwrap().rest, None);
        let slices = latency_of(1024).unwrap().rest.unwrap();
        assert!(slices.average_ns.is_sorted() && slices.average_ns[5] < latency_of(1024).unwrap().mean_ns);
        assert!(slices.greatest_ns.is_sorted() && slices.max_ns > slices.greatest_ns[5]);
    }
}
