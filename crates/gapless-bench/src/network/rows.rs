//! Rows of a system: lone calls, and calls in flight together.

use super::arguments::NetworkSystem;
use gapless_load::network::bare::{BARE_PAIR, BareExchange};
use gapless_load::rpc::payloads::cycles::{CycleTotals, forked_max};
use gapless_load::rpc::payloads::served::WORKERS;
use gapless_measure::histogram::LatencyHistogram;
use gapless_measure::reporting::{keys, put, put_rates, word};
use gapless_measure::{CpuPerMessage, FloorRow, Row, RowConfig};
use serde_json::json;

/// Index: number of ways less one.
const MODES: [&str; 2] = ["one_way", "two_way"];
pub(super) const LONE_CALL: &str = "lone_call";

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct EndsCpu {
    pub(super) server_ns: f64,
    /// Sum of both bridges.
    pub(super) bridges_ns: Option<f64>,
}

pub(super) fn lone_calls(system: NetworkSystem, bytes: usize, latencies: &LatencyHistogram, wrong: u64) -> Row {
    let count = latencies.count();
    let mut row = Row {
        config: config(system, LONE_CALL, bytes, count),
        latency_ns: latencies.latency_ns(),
        sent: Some(count),
        verified: Some(wrong == 0),
        ..Row::default()
    };
    row.config.extra.insert("in_flight".to_owned(), 1.into());
    row
}

pub(super) fn cycles(system: NetworkSystem, (bytes, ways): (usize, usize), cycles: &CycleTotals, cpu: EndsCpu) -> Row {
    let mut config = config(system, MODES[ways - 1], bytes, cycles.calls);
    let extra = json!({ "ways": ways, "cycles": cycles.rates.len(), "in_flight": forked_max(bytes) });
    config.extra.extend(keys(extra));
    let client_ns = cycles.cpu_ns as f64 / cycles.calls.max(1) as f64;
    let mut row = Row {
        config,
        sent: Some(cycles.calls),
        elapsed_ns: Some(cycles.elapsed.as_nanos() as u64),
        cpu_ns_per_message: Some(CpuPerMessage { driver: client_ns, service: cpu.server_ns }),
        verified: Some(cycles.wrong == 0),
        lost: Some(0),
        ..Row::default()
    };
    put_rates(&mut row, &cycles.rates);
    put(&mut row, "bytes_per_s", (cycles.rate() * (bytes * ways) as f64).round());
    if let Some(ns) = cpu.bridges_ns {
        put(&mut row, "bridges_cpu_ns", ns.round());
    }
    put(&mut row, "wrong", cycles.wrong);
    row
}

/// `None` for an exchange with wrong answers.
pub(super) fn bare_pair((bytes, ways): (usize, usize), exchange: &BareExchange) -> Option<FloorRow> {
    let rate = exchange.count as f64 / exchange.elapsed.as_secs_f64();
    (exchange.wrong == 0).then(|| FloorRow {
        name: BARE_PAIR.to_owned(),
        payload_bytes: bytes as u64,
        rate_per_s: Some(rate.round()),
        bytes_per_s: Some((rate * (bytes * ways) as f64).round()),
        samples: Some(exchange.count),
        ..FloorRow::default()
    })
}

pub(super) fn peer_config() -> RowConfig {
    RowConfig { extra: keys(json!({ "ends": "Kafka", "system": word(NetworkSystem::Java) })), ..RowConfig::default() }
}

fn config(system: NetworkSystem, mode: &str, bytes: usize, count: u64) -> RowConfig {
    let mut extra = keys(json!({ "ends": "Kafka", "system": word(system) }));
    if system == NetworkSystem::Gapless {
        extra.insert("workers".to_owned(), WORKERS.into());
    }
    RowConfig {
        mode: Some(mode.to_owned()),
        payload_bytes: Some(bytes as u64),
        count: Some(count),
        extra,
        ..RowConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_measure::published::fact;
    use gapless_measure::published::mercury::JAVA;
    use std::time::Duration;

    fn measured(wrong: u64) -> CycleTotals {
        let elapsed = Duration::from_secs(2);
        CycleTotals { rates: vec![1_000.0, 3_000.0, 2_000.0], elapsed, calls: 6_000, cpu_ns: 12_000_000, wrong }
    }

    #[test]
    fn rows_answer_the_published_figures() {
        let cpu = EndsCpu { server_ns: 5.0, bridges_ns: Some(7.0) };
        for (size, key) in [((72, 1), "mercury/kafka/one_way/72"), ((69, 2), "mercury/kafka/two_way/69")] {
            let (fact, row) = (fact(key).unwrap(), cycles(NetworkSystem::Gapless, size, &measured(0), cpu));
            assert!(fact.is_answered_by("network", &row));
            assert_eq!((row.throughput_per_s, row.verified), (Some(2_000.0), Some(true)));
            assert_eq!(row.extra["bytes_per_s"], 2_000.0 * (size.0 * size.1) as f64);
            let java = cycles(NetworkSystem::Java, size, &measured(1), EndsCpu::default());
            assert!(!fact.is_answered_by("network", &java));
            assert_eq!((java.config.value("system"), java.verified), (json!(JAVA), Some(false)));
        }
    }

    #[test]
    fn wrong_answers_are_no_floor() {
        let exchange =
            |wrong| BareExchange { count: 10, elapsed: Duration::from_secs(1), wrong, ..BareExchange::default() };
        assert_eq!(bare_pair((72, 2), &exchange(1)), None);
        let floor = bare_pair((72, 2), &exchange(0)).unwrap();
        assert_eq!((floor.rate_per_s, floor.bytes_per_s), (Some(10.0), Some(1440.0)));
    }
}
