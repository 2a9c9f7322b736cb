//! `gapless bench network`: calls between two domains with a bridge each, over Kafka, by the size of the payload, next to bare clients of the same
//! broker in the same run.
//!
//! | module | what lives there |
//! |---|---|
//! | `arguments` | its options |
//! | `places` | the broker, the domains, bridges and server |
//! | `table` | the printed table, and the picture |

mod arguments;
mod places;
mod table;

pub use arguments::NetworkArguments;

use arguments::Plan;
use gapless_load::network::bare::{BARE_PAIR, BARE_ROUND_TRIP, BarePair};
use gapless_load::network::failed;
use gapless_load::rpc::payloads::content::Payloads;
use gapless_load::rpc::payloads::cycles::{self, Cycles, forked_max};
use gapless_load::rpc::payloads::served::{TWO_WAY, WORKERS};
use gapless_measure::histogram::LatencyHistogram;
use gapless_measure::published::mercury::PublishedPayload;
use gapless_measure::reporting::{Run, Shown, check_interrupted, keys, put, put_rates};
use gapless_measure::{CpuPerMessage, FloorRow, Result, Row, RowConfig};
use gapless_rpc::{CallOptions, Reach};
use places::Places;
use serde_json::json;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Times the greatest published figure, by the size: the goal.
const GOALS: [(usize, f64); 4] = [(72, 20.0), (10_069, 5.0), (100_071, 3.0), (500_071, 3.0)];
/// Share of the rate of the bare pair: the goal.
const SHARE_OF_BARE: f64 = 0.6;
/// Times the bare round trip at p50: the goal.
const LATENCY_GOAL: f64 = 1.3;
/// Bytes of a payload that one record of a broker's default limit holds: calls go in segments beyond, bare clients not at all.
const BARE_BYTES_MAX: usize = 900_000;
/// Bytes of a lone call.
const LONE_BYTES: usize = 256;

/// Measures; returns the text to print.
///
/// # Errors
/// A broker that cannot be started or fails, a process that ends too early, a call that fails, a report or a picture that cannot be written.
pub fn run(arguments: &NetworkArguments, interrupted: &AtomicBool) -> Result<String> {
    let plan = arguments.plan()?;
    let steps = 2 + (plan.sizes.len() + plan.curve.len()) * 2;
    let shown = Shown { benchmark: "network", steps, notes: table::notes(&plan), text: table::text, draw: table::draw };
    Ok(Run::of(shown, &arguments.output, interrupted, |run| measure(&plan, run))?.1)
}

fn measure(plan: &Plan, run: &mut Run<'_>) -> Result<()> {
    run.next("broker and bridges start")?;
    let places = Places::start(plan, run.interrupted)?;
    let bare = BarePair::open(&places.brokers)?;
    let callers = cycles::Callers::new(&places.domain, Reach::OtherProcesses)?;
    let mut measurement = Measurement { plan, callers, bare, places };
    measurement.lone_calls(run)?;
    for published in &plan.sizes {
        measurement.one_size(run, (published.one_way, published.two_way), Some(published))?;
    }
    for &size in &plan.curve {
        measurement.one_size(run, (size, size), None)?;
    }
    Ok(())
}

/// Clients end before the broker and the domain that they use.
struct Measurement<'a> {
    plan: &'a Plan,
    callers: cycles::Callers,
    bare: BarePair,
    places: Places<'a>,
}

impl Measurement<'_> {
    /// Calls one at a time, next to bare round trips.
    fn lone_calls(&mut self, run: &mut Run<'_>) -> Result<()> {
        run.next("lone calls")?;
        let caller = self.places.domain.caller::<Vec<u8>, Vec<u8>>(TWO_WAY).map_err(failed)?;
        let payloads = Payloads::new(LONE_BYTES);
        let count = self.plan.lone_calls;
        let (mut latencies, mut wrong) = (LatencyHistogram::default(), 0);
        for number in 0..count + count / 4 {
            check_interrupted("network", run.interrupted)?;
            let request = payloads.of(number).to_vec();
            let begun = Instant::now();
            let reply = caller.call_with(request, &CallOptions::default()).map_err(failed)?;
            let took = begun.elapsed();
            wrong += u64::from(reply != payloads.of(number));
            // The first fifth warms up.
            if number >= count / 4 {
                latencies.record(took.as_nanos() as u64);
            }
        }
        self.bare.exchange((LONE_BYTES, 2), 1, count / 4)?;
        let bare = self.bare.exchange((LONE_BYTES, 2), 1, count)?;
        let floor = bare.latencies.floor_row(BARE_ROUND_TRIP, LONE_BYTES as u64);
        let extra = json!({ "ends": "Kafka", "in_flight": 1, "workers": WORKERS });
        let config = RowConfig {
            mode: Some("lone_call".to_owned()),
            payload_bytes: Some(LONE_BYTES as u64),
            count: Some(count),
            extra: keys(extra),
            ..RowConfig::default()
        };
        let mut row = Row {
            config,
            latency_ns: latencies.latency_ns(),
            sent: Some(count),
            verified: Some(wrong + bare.wrong == 0),
            ..Row::default()
        };
        let ratio = latencies.percentile_ns(50.0) as f64 / bare.latencies.percentile_ns(50.0).max(1) as f64;
        row.floor_ratio = Some((ratio * 100.0).round() / 100.0);
        row.floor_name = Some(BARE_ROUND_TRIP.to_owned());
        put(&mut row, "target_floor_ratio_max", LATENCY_GOAL);
        put(&mut row, "target_met", ratio <= LATENCY_GOAL);
        run.report.floor.extend(floor);
        run.add(row, &table::COLUMNS);
        Ok(())
    }

    /// The rows of one size, one way and two ways.
    fn one_size(
        &mut self,
        run: &mut Run<'_>,
        (one_way, two_way): (usize, usize),
        published: Option<&PublishedPayload>,
    ) -> Result<()> {
        for (way, size) in [one_way, two_way].into_iter().enumerate() {
            run.next(&format!("{size} B, {}", if way == 0 { "one way" } else { "two ways" }))?;
            let calls = self.plan.calls(size);
            let bare = match size <= BARE_BYTES_MAX {
                true => Some(self.bare.exchange((size, way + 1), forked_max(size), calls * 2)?),
                false => None,
            };
            let before = self.places.cpu_ns()?;
            let cycles = if published.is_some() { self.plan.cycles } else { self.plan.curve_cycles };
            let counts = (calls, cycles);
            let cycles = match way {
                0 => self.callers.one_way(size, counts, run.interrupted)?,
                _ => self.callers.two_way(size, counts, run.interrupted)?,
            };
            let after = self.places.cpu_ns()?;
            let made = (calls * counts.1.0 as u64) as f64;
            let cpu_ns = [after.0 - before.0, after.1 - before.1].map(|ns| ns as f64 / made);
            let mut row = row_of(size, way + 1, &cycles, cpu_ns);
            row.verified = Some(cycles.wrong + bare.as_ref().map_or(0, |bare| bare.wrong) == 0);
            let bare_rate = bare.as_ref().map(|bare| bare.count as f64 / bare.elapsed.as_secs_f64());
            if let Some(bare_rate) = bare_rate {
                row.floor_ratio = Some((bare_rate / cycles.rate() * 100.0).round() / 100.0);
                row.floor_name = Some(BARE_PAIR.to_owned());
            }
            if let Some(published) = published {
                let (least, greatest) = published.kafka[way];
                put(&mut row, "published", json!({ "through": "kafka", "min_per_s": least, "max_per_s": greatest }));
                let goal = GOALS.iter().find(|(bytes, _)| *bytes == published.one_way);
                let (_, times) = goal.expect("every published size has a goal");
                put(&mut row, "target_per_s", times * greatest);
                put(&mut row, "target_floor_ratio_max", 1.0 / SHARE_OF_BARE);
                let is_met =
                    cycles.rate() >= times * greatest && cycles.rate() >= SHARE_OF_BARE * bare_rate.unwrap_or(0.0);
                put(&mut row, "target_met", is_met);
            }
            run.report.floor.extend(bare_rate.zip(bare).map(|(rate, bare)| FloorRow {
                name: BARE_PAIR.to_owned(),
                payload_bytes: size as u64,
                rate_per_s: Some(rate.round()),
                bytes_per_s: Some((rate * (size * (way + 1)) as f64).round()),
                samples: Some(bare.count),
                ..FloorRow::default()
            }));
            run.add(row, &table::COLUMNS);
        }
        Ok(())
    }
}

fn row_of(size: usize, ways: usize, cycles: &Cycles, [server_ns, bridges_ns]: [f64; 2]) -> Row {
    let extra = json!({
        "ends": "Kafka", "ways": ways, "workers": WORKERS, "cycles": cycles.rates.len(), "in_flight": forked_max(size),
    });
    let config = RowConfig {
        mode: Some(if ways == 1 { "one_way" } else { "two_way" }.to_owned()),
        payload_bytes: Some(size as u64),
        count: Some(cycles.calls),
        extra: keys(extra),
        ..RowConfig::default()
    };
    let client_ns = cycles.cpu_ns as f64 / cycles.calls.max(1) as f64;
    let mut row = Row {
        config,
        sent: Some(cycles.calls),
        elapsed_ns: Some(cycles.elapsed.as_nanos() as u64),
        cpu_ns_per_message: Some(CpuPerMessage { driver: client_ns, service: server_ns }),
        lost: Some(0),
        ..Row::default()
    };
    put_rates(&mut row, &cycles.rates);
    put(&mut row, "bytes_per_s", (cycles.rate() * (size * ways) as f64).round());
    put(&mut row, "bridges_cpu_ns", bridges_ns.round());
    put(&mut row, "wrong", cycles.wrong);
    row
}
