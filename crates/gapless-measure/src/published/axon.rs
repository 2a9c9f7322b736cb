//! Axon Framework with its command bus of the Disruptor: one aggregate, one event for each command, stores in memory.

use serde_json::json;

use super::{FactAnswer, FigureUnit, PeerSystem, Publication, PublishedFact, PublishedSystem, RowFigure};

const ARTICLE: Publication =
    Publication { system: "Axon Framework", machine: "laptop, i7 640M, 2 cores", year: "2011", difference: None };
const REPEATED: Publication = Publication {
    system: "Axon Framework, repeated runs",
    machine: "laptop, i7 640M, 2 cores",
    year: "2011",
    difference: None,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedBus {
    pub key: &'static str,
    /// `simple` or `disruptor`.
    pub bus: &'static str,
    /// `random`, `position` (assigned by the bus) or `time-ordered`, as in our rows.
    pub identifiers: &'static str,
    pub what: &'static str,
    /// Least and greatest of the published runs.
    pub runs_per_s: (u64, u64),
    /// Figure of repeated runs, not of the article.
    pub repeated: bool,
}

const fn bus(
    (key, bus, identifiers): (&'static str, &'static str, &'static str),
    what: &'static str,
    runs_per_s: (u64, u64),
    repeated: bool,
) -> PublishedBus {
    PublishedBus { key, bus, identifiers, what, runs_per_s, repeated }
}

pub const BUSES: [PublishedBus; 7] = [
    bus(("simple", "simple", "random"), "simple bus, locks and a caching repository", (150_000, 150_000), false),
    bus(("disruptor", "disruptor", "random"), "disruptor bus, random identifiers", (250_000, 250_000), false),
    bus(
        ("disruptor/time", "disruptor", "time-ordered"),
        "disruptor bus, time-based identifiers",
        (500_000, 500_000),
        false,
    ),
    bus(("disruptor/none", "disruptor", "position"), "disruptor bus, no identifiers", (700_000, 700_000), false),
    bus(
        ("disruptor/64-bit", "disruptor", "time-ordered"),
        "disruptor bus, 64-bit machine",
        (1_300_000, 1_300_000),
        false,
    ),
    bus(("simple/repeated", "simple", "time-ordered"), "simple bus, time-based, 64-bit", (214_730, 247_035), true),
    bus(
        ("disruptor/repeated", "disruptor", "time-ordered"),
        "disruptor bus, time-based, 64-bit",
        (1_353_546, 1_422_475),
        true,
    ),
];

const fn peer(name: &'static str, config: &'static [(&'static str, &'static str)]) -> PeerSystem {
    PeerSystem { name, config, ignored_keys: &["drive", "encoding", "in_flight"] }
}

/// Buses with our load, and with the published one, which awaits no answer. Rows without a setup are of an older
/// program, which was no fair comparison.
const PEERS: [PeerSystem; 4] = [
    peer("Axon 4, simple", &[("name", "axon simple"), ("setup", "ours")]),
    peer("Axon 4, simple, published load", &[("name", "axon simple"), ("setup", "published")]),
    peer("Axon 4, disruptor", &[("name", "axon disruptor"), ("setup", "ours")]),
    peer("Axon 4, disruptor, published load", &[("name", "axon disruptor"), ("setup", "published")]),
];

pub(super) fn facts() -> Vec<PublishedFact> {
    let facts = BUSES.iter().map(|row| {
        // The simple bus works on its caller's thread, as our direct drive with one in flight; the disruptor hands
        // over, as our pipelined drive.
        let is_simple = row.bus == "simple";
        let mut config = vec![
            ("name", serde_json::Value::Null),
            ("setup", serde_json::Value::Null),
            ("mode", json!("throughput")),
            ("encoding", json!("sbe")),
            ("tier", json!("memory")),
            ("payload_bytes", json!(0)),
            ("aggregates", json!(1)),
            ("drive", json!(if is_simple { "direct" } else { "pipelined" })),
            ("identifiers", json!(row.identifiers)),
        ];
        if is_simple {
            config.push(("in_flight", json!(1)));
        }
        let source = if row.repeated { &REPEATED } else { &ARTICLE };
        let (least, greatest) = row.runs_per_s;
        let figure = (least as f64, greatest as f64, FigureUnit::PerSecond);
        let fact =
            PublishedFact::new(PublishedSystem::Axon, format!("axon/{}", row.key), row.what.to_owned(), figure, source);
        fact.answered(FactAnswer::of("commands", RowFigure::Throughput, config).with_peers(&PEERS))
    });
    facts.collect()
}
