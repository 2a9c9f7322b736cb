//! Rumi (Neeve Research), the result pages of its canonical benchmark: a service on a primary with its backup.
//!
//! Xeon Gold 6334, two hosts, InfiniBand, clustered, 10,000 messages a second for a latency, uncapped for a throughput. About 23 µs
//! of each latency is said to be the wire. A flush there is not a sync. Of direct access no throughput is published, only the claims
//! in [`DIRECT_TIMES_INDIRECT`] and [`DIRECT_LATENCY_PERCENT`].

use serde_json::{Value, json};

use super::{Difference, FactAnswer, FigureUnit, LatencyPart, Publication, PublishedFact, PublishedSystem, RowFigure};

pub const SOURCE: &str = "published by Rumi, Feb 2025: Xeon Gold 6334, two hosts over InfiniBand, clustered; about 23 µs of each latency is said to be the wire; flush is not a sync";

const CLUSTERED: Publication = Publication {
    system: "Rumi",
    machine: "Xeon Gold 6334, two hosts",
    year: "2025",
    difference: Some(Difference::Wire("InfiniBand, about 23 µs of a latency; ours is loopback")),
};
const ENCODING: Publication = Publication { system: "Rumi", machine: "Xeon Gold 6334", year: "2025", difference: None };
const CLAIM: Publication = Publication {
    system: "Rumi, direct access by its own indirect access",
    machine: "Xeon Gold 6334, two hosts",
    year: "2025",
    difference: None,
};

/// Latency at 10,000 messages a second, version 4.0.
#[derive(Debug, Clone, Copy)]
pub struct ServiceLatency {
    pub access: &'static str,
    pub cpu: &'static str,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p99_9_us: f64,
}

#[derive(Debug, Clone, Copy)]
pub struct PublishedThroughput {
    pub access: &'static str,
    pub cpu: &'static str,
    pub version: &'static str,
    pub messages_per_s: u64,
}

const fn latency(access: &'static str, cpu: &'static str, p50_us: f64, p99_us: f64, p99_9_us: f64) -> ServiceLatency {
    ServiceLatency { access, cpu, p50_us, p99_us, p99_9_us }
}

const fn throughput(
    access: &'static str,
    cpu: &'static str,
    version: &'static str,
    messages_per_s: u64,
) -> PublishedThroughput {
    PublishedThroughput { access, cpu, version, messages_per_s }
}

pub const LATENCIES: [ServiceLatency; 6] = [
    latency("indirect", "min", 31.46, 34.09, 43.43),
    latency("indirect", "default", 26.31, 29.18, 37.39),
    latency("indirect", "max", 29.86, 31.12, 37.32),
    latency("direct", "min", 28.90, 31.56, 38.61),
    latency("direct", "default", 23.60, 26.40, 31.98),
    latency("direct", "max", 26.68, 27.78, 31.86),
];

pub const THROUGHPUTS: [PublishedThroughput; 4] = [
    throughput("indirect", "min", "4.0", 139_875),
    throughput("indirect", "min", "3.16", 117_124),
    throughput("indirect", "default", "3.16", 90_974),
    throughput("indirect", "max", "3.16", 56_419),
];

/// Car message alone: least and greatest published.
pub const ENCODE_NS: (u64, u64) = (240, 280);
/// Car message alone: least and greatest published.
pub const DECODE_NS: (u64, u64) = (235, 275);
/// Throughput of direct by indirect access: a claim.
pub const DIRECT_TIMES_INDIRECT: u64 = 3;
/// Latency of direct access, percent of indirect: a claim.
pub const DIRECT_LATENCY_PERCENT: u64 = 90;

const ENCODINGS: [&str; 2] = ["sbe.serial", "sbe.random"];
const ALL_ENCODINGS: [&str; 4] = ["sbe.serial", "sbe.random", "protobuf.serial", "protobuf.random"];

pub const LATENCY_RATE_PER_S: u64 = 10_000;

pub(super) fn facts() -> Vec<PublishedFact> {
    let mut facts = Vec::new();
    for row in &LATENCIES {
        let ServiceLatency { access, cpu, p50_us, p99_us, p99_9_us } = *row;
        let parts = [
            ("p50", p50_us, LatencyPart::P50),
            ("p99", p99_us, LatencyPart::P99),
            ("p99.9", p99_9_us, LatencyPart::P99_9),
        ];
        for (name, us, part) in parts {
            let key = format!("rumi/latency/{access}/{cpu}/{name}");
            let what = format!("{access} access, {} CPU, 10,000/s, {name}", plan(cpu));
            let mut answer = clustered("latency", access, RowFigure::Latency(part));
            answer.config.extend(at_a_rate());
            answer.config.push(("cpu", json!(cpu)));
            let figure = ((us * 1000.0).round(), FigureUnit::Nanoseconds);
            facts.push(PublishedFact::new(PublishedSystem::Rumi, key, what, figure, &CLUSTERED).answered(answer));
        }
    }
    for row in &THROUGHPUTS {
        let PublishedThroughput { access, cpu, version, messages_per_s } = *row;
        let key = format!("rumi/throughput/{access}/{cpu}/{version}");
        let what = format!("{access} access, {} CPU, version {version}, messages", plan(cpu));
        let mut answer = clustered("throughput", access, RowFigure::Throughput);
        answer.config.push(("cpu", json!(cpu)));
        let figure = (messages_per_s as f64, FigureUnit::PerSecond);
        facts.push(PublishedFact::new(PublishedSystem::Rumi, key, what, figure, &CLUSTERED).answered(answer));
    }
    facts.extend(claims());
    for (name, (least, greatest)) in [("encode", ENCODE_NS), ("decode", DECODE_NS)] {
        let key = format!("rumi/serialization/{name}");
        let config = vec![("name", json!(name)), ("encoding", json!(ALL_ENCODINGS))];
        let answer = FactAnswer::of("serialization", RowFigure::Latency(LatencyPart::Mean), config);
        let figure = (least as f64, greatest as f64, FigureUnit::Nanoseconds);
        facts.push(
            PublishedFact::new(PublishedSystem::Rumi, key, format!("{name} one message"), figure, &ENCODING)
                .answered(answer),
        );
    }
    facts
}

/// Answered at each CPU plan by our rows of direct and indirect access.
fn claims() -> [PublishedFact; 2] {
    let claim = |key: &str, what: &str, figure: (f64, FigureUnit), answer: FactAnswer| {
        let fact =
            PublishedFact::new(PublishedSystem::Rumi, format!("rumi/claim/{key}"), what.to_owned(), figure, &CLAIM);
        fact.roughly("about").answered(answer)
    };
    let mut latency = clustered("latency", "direct", RowFigure::Latency(LatencyPart::P50));
    latency.config.extend(at_a_rate());
    let throughput = clustered("throughput", "direct", RowFigure::Throughput);
    [
        claim(
            "throughput",
            "throughput of direct access by that of indirect access",
            (DIRECT_TIMES_INDIRECT as f64, FigureUnit::TimesIndirect),
            throughput,
        ),
        claim(
            "latency",
            "latency of direct access by that of indirect access, 10,000/s, p50",
            (DIRECT_LATENCY_PERCENT as f64, FigureUnit::PercentOfIndirect),
            latency,
        ),
    ]
}

fn at_a_rate() -> [(&'static str, Value); 2] {
    [("rate_per_s", json!(LATENCY_RATE_PER_S)), ("sessions", json!(1))]
}

/// Our rows like the published ones: event sourcing, SBE in place of their encoding.
fn clustered(mode: &str, access: &str, figure: RowFigure) -> FactAnswer {
    let config = vec![
        ("program", json!("es")),
        ("mode", json!(mode)),
        ("access", json!(access)),
        ("encoding", json!(ENCODINGS)),
        ("tier", json!("quorum")),
        ("clustered", json!(true)),
        ("transport", json!("tcp")),
    ];
    FactAnswer::of("canonical", figure, config)
}

fn plan(cpu: &str) -> &str {
    match cpu {
        "min" => "minimal",
        "max" => "maximal",
        other => other,
    }
}
