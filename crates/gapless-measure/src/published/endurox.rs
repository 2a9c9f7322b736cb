//! Enduro/X next to RabbitMQ: local calls against size, one way, CPU time, and a killed server.

use serde_json::{Value, json};

use super::{
    Difference, FactAnswer, FigureUnit, LatencyPart, PeerSystem, Publication, PublishedFact, PublishedSystem, RowFigure,
};
use crate::numbers::grouped;

const ENDUROX: Publication =
    Publication { system: "Enduro/X, Go", machine: "laptop, i5-4300U", year: "2018", difference: None };
const TIMEOUT: Publication = Publication {
    system: "Enduro/X, Go, killed server",
    machine: "laptop, i5-4300U",
    year: "2018",
    difference: Some(Difference::Setting("a time-out that was set, not a measured time")),
};
const RABBITMQ: Publication =
    Publication { system: "RabbitMQ, Go", machine: "laptop, i5-4300U", year: "2018", difference: None };
const LATER: Publication =
    Publication { system: "Enduro/X, C", machine: "laptop, i7", year: "not stated", difference: None };

/// `precision` says how exact it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedPoint {
    pub payload_bytes: u64,
    pub calls_per_s: u64,
    /// `about`, `below`, or nothing.
    pub precision: &'static str,
}

const fn point(payload_bytes: u64, calls_per_s: u64, precision: &'static str) -> PublishedPoint {
    PublishedPoint { payload_bytes, calls_per_s, precision }
}

pub const CURVE: [PublishedPoint; 3] =
    [point(1, 40_000, "about"), point(2_560, 5_000, "below"), point(4_096, 2_800, "")];
/// Curve with explicit acknowledgement.
pub const RABBITMQ_CURVE: [PublishedPoint; 2] = [point(1, 3_000, ""), point(4_096, 1_300, "")];
pub const RABBITMQ_AUTOMATIC: PublishedPoint = point(1, 3_632, "");
/// Client, server and broker together, percent of one core: Enduro/X and RabbitMQ.
pub const CPU_PERCENT: [u64; 2] = [100, 128];
/// Small messages, relative to RabbitMQ.
pub const ONE_WAY_TIMES_RABBITMQ: u64 = 2;
/// Calls a second at 1 KB in C: one client and one server, and five of each.
pub const LATER_CALLS_PER_S: [(u64, u64); 2] = [(1, 72_624), (5, 135_739)];
/// Messages a second at 1 KB in C, without a reply.
pub const LATER_SENDS_PER_S: u64 = 352_799;
/// Messages a second through a persistent queue, in C.
pub const LATER_QUEUED_PER_S: u64 = 1_791;
/// Delay until the caller of a killed server was told.
pub const KILLED_SERVER_TIMEOUT_S: u64 = 90;

const LATER_BYTES: u64 = 1024;

const PEERS: [PeerSystem; 3] = [
    PeerSystem {
        name: "RabbitMQ",
        config: &[("system", "rabbitmq"), ("acknowledgement", "explicit")],
        ignored_keys: &["acknowledgement"],
    },
    PeerSystem {
        name: "RabbitMQ, automatic acknowledgement",
        config: &[("system", "rabbitmq"), ("acknowledgement", "automatic")],
        ignored_keys: &["acknowledgement"],
    },
    PeerSystem { name: "NATS", config: &[("system", "nats")], ignored_keys: &[] },
];

pub(super) fn facts() -> Vec<PublishedFact> {
    let fact = |key: &str, what: String, figure: (f64, FigureUnit), source: &'static Publication| {
        PublishedFact::new(PublishedSystem::EnduroX, key.to_owned(), what, figure, source)
    };
    let mut facts = Vec::new();
    for point in &CURVE {
        let bytes = point.payload_bytes;
        let figure = (point.calls_per_s as f64, FigureUnit::PerSecond);
        let made = fact(&format!("endurox/call/{bytes}"), format!("call, {} B", grouped(bytes)), figure, &ENDUROX);
        facts.push(made.roughly(point.precision).answered(call(bytes, RowFigure::Throughput)));
    }
    let rabbitmq = RABBITMQ_CURVE.iter().map(|point| (point, "explicit")).chain([(&RABBITMQ_AUTOMATIC, "automatic")]);
    for (point, acknowledgement) in rabbitmq {
        let bytes = point.payload_bytes;
        let what = format!("call, {} B, {acknowledgement} acknowledgement", grouped(bytes));
        let figure = (point.calls_per_s as f64, FigureUnit::PerSecond);
        let made = fact(&format!("rabbitmq/call/{bytes}/{acknowledgement}"), what, figure, &RABBITMQ);
        facts.push(made.answered(call(bytes, RowFigure::Throughput)));
    }
    for (key, percent, source) in
        [("endurox/cpu", CPU_PERCENT[0], &ENDUROX), ("rabbitmq/cpu", CPU_PERCENT[1], &RABBITMQ)]
    {
        let what = "CPU time of all processes while calls of 1 B go round".to_owned();
        let made = fact(key, what, (percent as f64, FigureUnit::CpuPercent), source).roughly("about");
        facts.push(made.answered(call(1, RowFigure::CpuPercent)));
    }
    let what = "one way, small messages, by those of RabbitMQ".to_owned();
    let made = fact("endurox/one-way", what, (ONE_WAY_TIMES_RABBITMQ as f64, FigureUnit::TimesRabbitMq), &ENDUROX);
    facts.push(made.roughly("about").answered(one_way(1)));
    for (ends, per_s) in LATER_CALLS_PER_S {
        let key = format!("endurox/call/{LATER_BYTES}/{ends}x{ends}");
        let what = format!("call, {} B, {ends} × client, {ends} × server", grouped(LATER_BYTES));
        let made = fact(&key, what, (per_s as f64, FigureUnit::PerSecond), &LATER);
        facts.push(if ends == 1 { made.answered(call(LATER_BYTES, RowFigure::Throughput)) } else { made });
    }
    let what = format!("send without a reply, {} B", grouped(LATER_BYTES));
    let made = fact("endurox/send", what, (LATER_SENDS_PER_S as f64, FigureUnit::PerSecond), &LATER);
    facts.push(made.answered(one_way(LATER_BYTES)));
    let what = "persistent queue, messages put in and taken out".to_owned();
    facts.push(fact("endurox/queue", what, (LATER_QUEUED_PER_S as f64, FigureUnit::PerSecond), &LATER));
    let what = "one of two servers killed: the caller knows after, greatest".to_owned();
    let figure = ((KILLED_SERVER_TIMEOUT_S * 1_000_000_000) as f64, FigureUnit::Nanoseconds);
    facts.push(fact("endurox/killed-server", what, figure, &TIMEOUT).answered(killed()));
    facts
}

/// One after the other, with either way of waiting.
fn call(bytes: u64, figure: RowFigure) -> FactAnswer {
    let mut config = of_curve(bytes);
    config.extend([("mode", json!("call")), ("connected", json!(1)), ("in_flight", json!(1))]);
    FactAnswer::of("rpc curve", figure, config).with_peers(&PEERS)
}

fn one_way(bytes: u64) -> FactAnswer {
    let mut config = of_curve(bytes);
    config.push(("mode", json!("one_way")));
    FactAnswer::of("rpc curve", RowFigure::Throughput, config).with_peers(&PEERS)
}

fn of_curve(bytes: u64) -> Vec<(&'static str, Value)> {
    vec![
        ("payload_bytes", json!(bytes)),
        ("system", json!("gapless")),
        ("acknowledgement", Value::Null),
        ("waiting", json!(["blocking", "spinning"])),
    ]
}

fn killed() -> FactAnswer {
    let config = vec![
        ("system", json!("gapless")),
        ("copies", json!(2)),
        ("retry", json!("not_begun")),
        ("supervised", json!([null, "copy"])),
    ];
    FactAnswer::of("rpc faults", RowFigure::Latency(LatencyPart::Max), config)
}
