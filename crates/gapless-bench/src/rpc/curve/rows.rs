//! The rows of the report, and the keys that tell them apart.

use crate::rpc::rpc_under_test::{CpuTimes, OneWayStream, RpcUnderTest};
use gapless_load::rpc::exchange::CallTotals;
use gapless_load::rpc::subject::RpcSystem;
use gapless_measure::reporting::{config_number, keys, not_measured, word};
use gapless_measure::{CpuPerMessage, Row, RowConfig};
use serde_json::{Map, Value, json};

#[derive(Clone, Copy, Debug)]
pub(super) struct CallShape {
    pub(super) size: usize,
    /// `None` for one-way messages.
    pub(super) in_flight: Option<usize>,
    pub(super) connected: usize,
}

impl CallShape {
    pub(super) fn of_calls(self, stand: &RpcUnderTest<'_>, calls: &CallTotals, cpu: CpuTimes) -> Row {
        let count = calls.histogram.count();
        let mut row = self.row(stand, count, cpu);
        row.latency_ns = calls.histogram.latency_ns();
        row.throughput_per_s = Some((count as f64 * 1e9 / calls.elapsed_ns.max(1) as f64).round());
        row.elapsed_ns = Some(calls.elapsed_ns);
        row.verified = Some(calls.is_verified());
        (row.lost, row.duplicated) = (Some(0), Some(calls.doubled));
        row.extra.insert("wrong".to_owned(), calls.wrong.into());
        row
    }

    pub(super) fn of_stream(self, stand: &RpcUnderTest<'_>, one_way: &OneWayStream) -> Row {
        let mut row = self.row(stand, one_way.sent, one_way.cpu);
        let received = one_way.received;
        let lost = one_way.sent - received.received;
        if one_way.elapsed_ns > 0 {
            row.throughput_per_s = Some((one_way.sent as f64 * 1e9 / one_way.elapsed_ns as f64).round());
            row.elapsed_ns = Some(one_way.elapsed_ns);
        }
        row.verified = Some(lost == 0 && received.wrong == 0);
        row.lost = Some(lost);
        row.extra.insert("wrong".to_owned(), received.wrong.into());
        row
    }

    fn row(self, stand: &RpcUnderTest<'_>, count: u64, cpu: CpuTimes) -> Row {
        let mode = if self.in_flight.is_some() { "call" } else { "one_way" };
        let extra = [
            ("system", json!(stand.endpoint.system())),
            ("acknowledgement", json!(stand.endpoint.acknowledgement())),
            ("in_flight", json!(self.in_flight)),
            ("waiting", json!(word(stand.waiting))),
            ("connected", json!(self.connected)),
        ];
        let extra = extra.into_iter().filter(|(_, value)| !value.is_null());
        let config = RowConfig {
            mode: Some(mode.to_owned()),
            payload_bytes: Some(self.size as u64),
            count: Some(count),
            extra: extra.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>(),
            ..RowConfig::default()
        };
        let of_one = |ns: u64| ns as f64 / count.max(1) as f64;
        let mut row = Row { config, sent: Some(count), ..Row::default() };
        let (client, server) = (of_one(cpu.client_ns), of_one(cpu.server_ns));
        let broker = cpu.broker_ns.map(of_one);
        row.cpu_ns_per_message = Some(CpuPerMessage { driver: client, service: server + broker.unwrap_or(0.0) });
        let mut each = json!({ "client": client.round(), "server": server.round() });
        if let Some(broker) = broker {
            each["broker"] = json!(broker.round());
        }
        row.extra.insert("cpu_ns_per_call".to_owned(), each);
        row
    }
}

pub(super) fn missing(system: RpcSystem, reason: &str) -> Row {
    not_measured(RowConfig { extra: keys(json!({ "system": word(system) })), ..RowConfig::default() }, reason)
}

pub(super) fn of_config<'a>(row: &'a Row, key: &str) -> Option<&'a str> {
    row.config.extra.get(key).and_then(Value::as_str)
}

/// Names the row's curve: system, acknowledgement, waiting, calls. `None` without a figure.
pub(super) fn curve(row: &Row) -> Option<String> {
    row.throughput_per_s?;
    let mut words: Vec<String> = ["system", "acknowledgement", "waiting"]
        .iter()
        .filter_map(|key| of_config(row, key).map(str::to_owned))
        .collect();
    words.push(what(row));
    Some(words.join(", "))
}

pub(super) fn what(row: &Row) -> String {
    let mut text = match config_number(row, "in_flight") {
        None => "one way".to_owned(),
        Some(1) => "call".to_owned(),
        Some(in_flight) => format!("{in_flight} calls in flight"),
    };
    if let Some(connected) = config_number(row, "connected").filter(|&connected| connected > 1) {
        text += &format!(", {connected} callers connected");
    }
    text
}
