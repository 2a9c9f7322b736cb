//! Rumi (Neeve Research), the result pages of its canonical benchmark: a service on a primary with its backup.
//!
//! Xeon Gold 6334, two hosts, InfiniBand, clustered, 10,000 messages a second for a latency, uncapped for a throughput. About 23 µs
//! of each latency is said to be the wire. A flush there is not a sync. Direct access is said to have three times the throughput
//! of indirect; no figure of it is published.

use serde_json::json;

use super::{Answer, Fact, Figure, Part, Source, System, Unit};

/// For the line under a table.
pub const SOURCE: &str = "published by Rumi, Feb 2025: Xeon Gold 6334, two hosts over InfiniBand, clustered; about 23 µs of each latency is said to be the wire; flush is not a sync";

const CLUSTERED: Source = Source {
    system: "Rumi",
    machine: "Xeon Gold 6334, two hosts",
    year: "2025",
    wire: Some("InfiniBand, about 23 µs of a latency; ours is loopback"),
};
const ENCODING: Source = Source { system: "Rumi", machine: "Xeon Gold 6334", year: "2025", wire: None };

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

/// All published throughputs.
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

/// The rate of the latencies, messages a second.
const LATENCY_RATE_PER_S: u64 = 10_000;

pub(super) fn facts() -> Vec<Fact> {
    let mut facts = Vec::new();
    for row in &LATENCIES {
        let PublishedLatency { access, cpu, p50_us, p99_us, p99_9_us } = *row;
        let parts = [("p50", p50_us, Part::P50), ("p99", p99_us, Part::P99), ("p99.9", p99_9_us, Part::P99_9)];
        for (name, us, part) in parts {
            let key = format!("rumi/latency/{access}/{cpu}/{name}");
            let what = format!("{access} access, {} CPU, 10,000/s, {name}", plan(cpu));
            let mut answer = clustered("latency", access, Figure::Latency(part));
            answer.config.extend([
                ("cpu", json!(cpu)),
                ("rate_per_s", json!(LATENCY_RATE_PER_S)),
                ("sessions", json!(1)),
            ]);
            let figure = ((us * 1000.0).round(), Unit::Nanoseconds);
            facts.push(Fact::new(System::Rumi, key, what, figure, &CLUSTERED).answered(answer));
        }
    }
    for row in &THROUGHPUTS {
        let PublishedThroughput { access, cpu, version, messages_per_s } = *row;
        let key = format!("rumi/throughput/{access}/{cpu}/{version}");
        let what = format!("{access} access, {} CPU, version {version}, messages", plan(cpu));
        let mut answer = clustered("throughput", access, Figure::Throughput);
        answer.config.push(("cpu", json!(cpu)));
        let figure = (messages_per_s as f64, Unit::PerSecond);
        facts.push(Fact::new(System::Rumi, key, what, figure, &CLUSTERED).answered(answer));
    }
    for (name, (least, greatest)) in [("encode", ENCODE_NS), ("decode", DECODE_NS)] {
        let key = format!("rumi/serialization/{name}");
        let config = vec![("name", json!(name)), ("encoding", json!(["sbe.serial", "sbe.random"]))];
        let answer = Answer::of("serialization", Figure::Latency(Part::Mean), config);
        let figure = (least as f64, greatest as f64, Unit::Nanoseconds);
        facts.push(Fact::new(System::Rumi, key, format!("{name} one message"), figure, &ENCODING).answered(answer));
    }
    facts
}

/// Rows of our primary and backup that are like the published ones: event sourcing, SBE in the place of their encoding.
fn clustered(mode: &str, access: &str, figure: Figure) -> Answer {
    let config = vec![
        ("program", json!("es")),
        ("mode", json!(mode)),
        ("access", json!(access)),
        ("encoding", json!(["sbe.serial", "sbe.random"])),
        ("tier", json!("quorum")),
        ("clustered", json!(true)),
        ("transport", json!("tcp")),
    ];
    Answer::of("canonical", figure, config)
}

fn plan(cpu: &str) -> &str {
    match cpu {
        "min" => "minimal",
        "max" => "maximal",
        other => other,
    }
}
