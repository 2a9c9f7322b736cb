//! [`JavaClients`]: two plain Java clients that call over two topics, as Spring's `ReplyingKafkaTemplate` does.

use super::arguments::NetworkPlan;
use super::places::KafkaBrokers;
use gapless_load::rpc::payloads::cycles::{CycleTotals, forked_max};
use gapless_measure::Result;
use gapless_measure::child_process::Child;
use gapless_measure::histogram::LatencyHistogram;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const WARM_UP_BYTES: usize = 256;

/// The client ends first.
pub(super) struct JavaClients<'a> {
    client: Child<'a>,
    server: Child<'a>,
}

#[derive(Deserialize)]
struct LoneCalls {
    times_ns: Vec<u64>,
    wrong: u64,
}

#[derive(Deserialize)]
struct CyclesRun {
    elapsed_ns: Vec<u64>,
    cpu_ns: Vec<u64>,
    wrong: u64,
}

impl<'a> JavaClients<'a> {
    /// Starts both, and lets them warm up.
    ///
    /// # Errors
    /// No script, no Java; a process that ends too early.
    pub(super) fn start(broker: &KafkaBrokers<'a>, plan: &NetworkPlan, interrupted: &'a AtomicBool) -> Result<Self> {
        let mut server = broker.java("server", interrupted)?;
        server.receive::<Value>()?;
        let mut client = broker.java("client", interrupted)?;
        client.receive::<Value>()?;
        let mut clients = Self { client, server };
        for ways in [1, 2] {
            clients.cycles((WARM_UP_BYTES, ways), (plan.java_warm_up / 2, (1, 0)))?;
        }
        Ok(clients)
    }

    /// Returns their latencies, and the number of wrong replies.
    ///
    /// # Errors
    /// A process that ends too early; an interrupt.
    pub(super) fn lone_calls(&mut self, bytes: usize, (warm_up, count): (u64, u64)) -> Result<(LatencyHistogram, u64)> {
        self.server_cpu_ns(2)?;
        let calls: LoneCalls = self.client.ask(&json!(["lone", bytes, warm_up, count]))?;
        let mut latencies = LatencyHistogram::default();
        calls.times_ns.iter().for_each(|ns| latencies.record(*ns));
        Ok((latencies, calls.wrong))
    }

    /// Keeps as many calls in flight as ours; `cycles` are those in all and those that warm up. Returns the cycles that
    /// count, and the server's CPU time for a call, ns.
    ///
    /// # Errors
    /// A process that ends too early; an interrupt.
    pub(super) fn cycles(
        &mut self,
        (bytes, ways): (usize, usize),
        (calls, cycles): (u64, (usize, usize)),
    ) -> Result<(CycleTotals, f64)> {
        let before_ns = self.server_cpu_ns(ways)?;
        let order = json!(["cycles", bytes, ways, calls, cycles.0, forked_max(bytes)]);
        let run: CyclesRun = self.client.ask(&order)?;
        let server_ns = self.server_cpu_ns(ways)?.saturating_sub(before_ns);
        let counted = &run.elapsed_ns[cycles.1.min(run.elapsed_ns.len())..];
        let elapsed = Duration::from_nanos(counted.iter().sum());
        let measured = CycleTotals {
            rates: counted.iter().map(|ns| calls as f64 * 1e9 / (*ns).max(1) as f64).collect(),
            elapsed,
            calls: calls * counted.len() as u64,
            cpu_ns: run.cpu_ns.iter().skip(cycles.1).sum(),
            wrong: run.wrong,
        };
        Ok((measured, server_ns as f64 / (calls * cycles.0 as u64).max(1) as f64))
    }

    /// Returns the server's CPU time, ns, and sets the number of `ways` that it answers from now on.
    fn server_cpu_ns(&mut self, ways: usize) -> Result<u64> {
        self.server.ask(&if ways == 1 { "whole" } else { "echo" })
    }
}
