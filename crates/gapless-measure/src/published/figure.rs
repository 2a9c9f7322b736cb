//! `RowFigure`: where the figure that answers a fact stands in a row.

use serde_json::Value;

use crate::{LatencyNs, Row};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowFigure {
    Throughput,
    Latency(LatencyPart),
    /// Average of this percentage of the fastest messages, ns.
    SliceAverage(f64),
    /// Greatest latency of this percentage of the fastest messages, ns.
    SliceGreatest(f64),
    /// Mean of all nodes, messages a second.
    NodeRate,
    /// All processes, percent of one core.
    CpuPercent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyPart {
    Min,
    Mean,
    P50,
    P99,
    P99_9,
    Max,
}

impl LatencyPart {
    #[must_use]
    pub fn of(self, latency: &LatencyNs) -> f64 {
        match self {
            Self::Min => latency.min as f64,
            Self::Mean => latency.mean,
            Self::P50 => latency.p50 as f64,
            Self::P99 => latency.p99 as f64,
            Self::P99_9 => latency.p99_9 as f64,
            Self::Max => latency.max as f64,
        }
    }
}

impl RowFigure {
    /// Figure in the unit of its fact; `None` where it was not measured.
    #[must_use]
    pub fn of(self, row: &Row) -> Option<f64> {
        match self {
            Self::Throughput => row.throughput_per_s,
            Self::Latency(part) => row.latency_ns.as_ref().map(|latency| part.of(latency)),
            Self::SliceAverage(percent) => slice(row, percent, "average_ns"),
            Self::SliceGreatest(percent) => slice(row, percent, "greatest_ns"),
            Self::NodeRate => node_rate(row),
            Self::CpuPercent => Some(cpu_ns_per_call(row)? * row.throughput_per_s? / 1e9 * 100.0),
        }
    }
}

fn slice(row: &Row, percent: f64, key: &str) -> Option<f64> {
    let slices = row.extra.get("slices")?.as_array()?;
    slices.iter().find(|slice| slice["percent"].as_f64() == Some(percent))?[key].as_f64()
}

fn node_rate(row: &Row) -> Option<f64> {
    let roles = row.extra.get("roles")?.as_array()?;
    let nodes = roles.iter().filter(|role| role["role"].as_str().is_some_and(|name| name.starts_with("node")));
    let rates: Vec<f64> = nodes.filter_map(|role| role["rate_per_s"].as_f64()).collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

/// All processes; `None` where it was not measured.
#[must_use]
pub fn cpu_ns_per_call(row: &Row) -> Option<f64> {
    let each = row.extra.get("cpu_ns_per_call")?.as_object()?;
    let ns: f64 = each.values().filter_map(Value::as_f64).sum();
    (ns > 0.0).then_some(ns)
}
