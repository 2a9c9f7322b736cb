//! Mercury: parallel calls by payload size, in memory and through Kafka, and many callers and workers.

use serde_json::{Value, json};

use super::{FactAnswer, FigureUnit, LatencyPart, PeerSystem, Publication, PublishedFact, PublishedSystem, RowFigure};
use crate::numbers::grouped;

const MEMORY: Publication =
    Publication { system: "Mercury, in memory", machine: "not stated", year: "not stated", difference: None };
const KAFKA: Publication =
    Publication { system: "Mercury, through Kafka", machine: "not stated", year: "not stated", difference: None };
const RUST: Publication =
    Publication { system: "Mercury, engine in Rust", machine: "laptop, 12 cores", year: "2026", difference: None };

/// Calls a second: least and greatest of the cycles that count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedPayload {
    /// Request bytes; the answer is a boolean.
    pub one_way: usize,
    /// Request bytes; they come back.
    pub two_way: usize,
    pub memory: [(f64, f64); 2],
    /// One way and two ways.
    pub kafka: [(f64, f64); 2],
}

pub const PAYLOADS: [PublishedPayload; 4] = [
    PublishedPayload {
        one_way: 72,
        two_way: 69,
        memory: [(16_340.0, 37_313.0), (19_841.0, 40_650.0)],
        kafka: [(514.0, 791.0), (674.0, 749.0)],
    },
    PublishedPayload {
        one_way: 10_069,
        two_way: 10_066,
        memory: [(10_504.0, 12_376.0), (9_901.0, 11_933.0)],
        kafka: [(704.0, 907.0), (988.0, 1_208.0)],
    },
    PublishedPayload {
        one_way: 100_071,
        two_way: 100_068,
        memory: [(3_509.0, 8_403.0), (6_250.0, 7_353.0)],
        kafka: [(413.907, 479.386), (340.0, 371.0)],
    },
    PublishedPayload {
        one_way: 500_071,
        two_way: 500_068,
        memory: [(1_976.0, 2_212.0), (951.0, 1_316.0)],
        kafka: [(91.0, 102.0), (62.0, 78.0)],
    },
];

pub const JAVA: &str = "java";
const KAFKA_PEERS: [PeerSystem; 1] =
    [PeerSystem { name: "plain Java clients", config: &[("system", JAVA)], ignored_keys: &["system"] }];

/// One caller, fifty workers.
pub const ONE_TO_FIFTY_PER_S: u64 = 155_089;
/// Fifty callers, fifty workers.
pub const FIFTY_TO_FIFTY_PER_S: u64 = 410_589;
/// A hundred callers, fifty workers, more requests than memory takes.
pub const OVERLOADED_PER_S: u64 = 100_599;
/// A call of another route during a flood.
pub const PROBE_NS: u64 = 17_000;

pub(super) fn facts() -> Vec<PublishedFact> {
    let mut facts = Vec::new();
    let through = [("memory", "rpc payloads", "one process", &MEMORY), ("kafka", "network", "Kafka", &KAFKA)];
    for (through, benchmark, ends, source) in through {
        for size in &PAYLOADS {
            let ranges = if through == "memory" { size.memory } else { size.kafka };
            let ways = [("one_way", "one way", size.one_way), ("two_way", "two ways", size.two_way)];
            for ((mode, words, bytes), (least, greatest)) in ways.into_iter().zip(ranges) {
                let key = format!("mercury/{through}/{mode}/{bytes}");
                let mut config = vec![("mode", json!(mode)), ("payload_bytes", json!(bytes)), ("ends", json!(ends))];
                let is_kafka = through == "kafka";
                if is_kafka {
                    // Older runs had no peer and name no system.
                    config.push(("system", json!(["gapless", Value::Null])));
                }
                let answer = FactAnswer::of(benchmark, RowFigure::Throughput, config);
                let answer = if is_kafka { answer.with_peers(&KAFKA_PEERS) } else { answer };
                let through = if through == "memory" { "in memory" } else { "through Kafka" };
                let what = format!("{words}, {} B, {through}", grouped(bytes as u64));
                let fact = PublishedFact::new(
                    PublishedSystem::Mercury,
                    key,
                    what,
                    (least, greatest, FigureUnit::PerSecond),
                    source,
                );
                facts.push(fact.answered(answer));
            }
        }
    }
    // 155,089/s are 6 µs a call: one at a time.
    let one_by_one = vec![("name", json!("one by one 1→50")), ("callers", json!(1)), ("in_flight", json!(1))];
    let many_in_flight = vec![("name", json!("parallel 1→50"))];
    let parallel = |callers: u64, in_flight: u64, name: &str| {
        vec![("name", json!(name)), ("callers", json!(callers)), ("in_flight", json!(in_flight))]
    };
    let of = |config| FactAnswer::of("rpc scenarios", RowFigure::Throughput, config);
    let scenarios = [
        (
            "1-50",
            "one by one 1→50",
            ONE_TO_FIFTY_PER_S,
            of(one_by_one).remarking("not compared: 64 in flight", many_in_flight),
        ),
        ("50-50", "parallel 50→50", FIFTY_TO_FIFTY_PER_S, of(parallel(50, 50, "parallel 50→50"))),
        ("overloaded", "overloaded 100→50", OVERLOADED_PER_S, of(parallel(100, 10_000, "overloaded 100→50"))),
    ];
    for (key, name, per_s, answer) in scenarios {
        let what = format!("{name}, callers to workers");
        let fact = PublishedFact::new(
            PublishedSystem::Mercury,
            format!("mercury/{key}"),
            what,
            (per_s as f64, FigureUnit::PerSecond),
            &RUST,
        );
        facts.push(fact.answered(answer));
    }
    let config = vec![("name", json!(["probe, flood on the other core", "probe, flood on all cores"]))];
    let answer = FactAnswer::of("rpc scenarios", RowFigure::Latency(LatencyPart::P50), config);
    let what = "probe of another route during a flood, p50 of ours".to_owned();
    let figure = (PROBE_NS as f64, FigureUnit::Nanoseconds);
    facts.push(
        PublishedFact::new(PublishedSystem::Mercury, "mercury/probe".to_owned(), what, figure, &RUST).answered(answer),
    );
    facts
}
